import Postgres
import Reconciliation

/// The columns of a value by its description, with their contents.
public struct ColumnContents: FieldCoder {
  public typealias Failure = Never

  public static var isReading: Bool { false }

  public struct Column {
    public let name: String
    public let content: Content
    /// True if the field may have no value.
    public let isOptional: Bool
  }

  public enum Content {
    case text(String?)
    case number(Int64?, type: String)
    case amount(Money?)
    case flag(Bool?)
    case instant(Instant?)
  }

  public private(set) var columns: [Column] = []
  private var name = ""
  private var isOptional = false
  /// True within a value that is not there, whose columns are NULL.
  private var isMissing = false

  public init(_ code: (inout ColumnContents) -> Void) { code(&self) }

  public init(of value: some FieldCoded) {
    var value = value
    value.code(with: &self)
  }

  /// SQL: a relation of the columns of values, and its parameters. There is at least one value.
  public static func relation(of values: [ColumnContents]) -> (sql: String, parameters: [PostgresValue]) {
    var arrays: [String] = []
    var parameters: [PostgresValue] = []
    for place in values[0].columns.indices {
      let contents = values.map { $0.columns[place].content }
      let (type, array): (String, PostgresValue) =
        switch contents[0] {
        case .text: ("text", .textArray(contents.map { if case .text(let text) = $0 { text } else { nil } }))
        case .number(_, let type):
          (type, .intArray(contents.map { if case .number(let number, _) = $0 { number } else { nil } }))
        case .amount:
          (
            "numeric",
            .numericArray(contents.map { if case .amount(let amount) = $0 { amount?.numeric } else { nil } })
          )
        case .flag: ("boolean", .boolArray(contents.map { if case .flag(let flag) = $0 { flag } else { nil } }))
        case .instant:
          (
            "timestamptz",
            .timestampArray(contents.map { if case .instant(let instant) = $0 { instant?.microseconds } else { nil } })
          )
        }
      parameters.append(array)
      arrays.append("$\(parameters.count)::\(type)[]")
    }
    return ("unnest(\(arrays.joined(separator: ", ")))", parameters)
  }

  private mutating func add(_ content: Content) {
    columns.append(Column(name: name, content: content, isOptional: isOptional))
  }

  public mutating func name(_ column: String) { name = column }

  public mutating func code(flag: inout Bool) { add(.flag(isMissing ? nil : flag)) }

  public mutating func code(optionalFlag flag: inout Bool?) { add(.flag(isMissing ? nil : flag)) }

  public mutating func code(number: inout Int64) { add(.number(isMissing ? nil : number, type: "bigint")) }

  public mutating func code(integer: inout Int32) { add(.number(isMissing ? nil : Int64(integer), type: "integer")) }

  public mutating func code(instant: inout Instant) { add(.instant(isMissing ? nil : instant)) }

  public mutating func code(amount: inout Money, currency: String) {
    add(.amount(isMissing ? nil : amount))
    name = currency
    add(.text(isMissing ? nil : amount.currency.code))
  }

  public mutating func code<Text: FieldText>(text: inout Text) {
    add(.text(isMissing ? nil : text.withBytes { String(decoding: $0, as: UTF8.self) }))
  }

  public mutating func code<Word>(word: inout Word?, of vocabulary: Vocabulary<Word>) {
    add(.text(isMissing ? nil : word?.rawValue))
  }

  public mutating func code<Value: FieldCoded>(optional value: inout Value?) {
    let outer = (isOptional, isMissing)
    (isOptional, isMissing) = (true, isMissing || value == nil)
    var content = value ?? Value.blank
    code(&content)
    (isOptional, isMissing) = outer
  }

  public mutating func fail() {}
}

extension Money {
  /// The amount in major units.
  public var numeric: PostgresNumeric { PostgresNumeric(scaled: minorUnits, decimals: Int(currency.digits)) }
}
