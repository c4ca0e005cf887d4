enum JSONValue: Decodable, Hashable, Sendable {
  case text(String)
  case integer(Int64)
  case fraction(Double)
  case boolean(Bool)
  case list([JSONValue])
  case fields([String: JSONValue])
  case null

  init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    if container.decodeNil() {
      self = .null
    } else if let flag = try? container.decode(Bool.self) {
      self = .boolean(flag)
    } else if let number = try? container.decode(Int64.self) {
      self = .integer(number)
    } else if let number = try? container.decode(Double.self) {
      self = .fraction(number)
    } else if let text = try? container.decode(String.self) {
      self = .text(text)
    } else if let list = try? container.decode([JSONValue].self) {
      self = .list(list)
    } else {
      self = .fields(try container.decode([String: JSONValue].self))
    }
  }

  /// The Foundation value; nil for null, which leaves the field out.
  var value: Any? {
    switch self {
    case .text(let text): text
    case .integer(let number): number
    case .fraction(let number): number
    case .boolean(let flag): flag
    case .list(let list): list.compactMap(\.value)
    case .fields(let fields): fields.compactMapValues(\.value)
    case .null: nil
    }
  }
}
