import Postgres
import Reconciliation
import Streams

/// A column of a table, with its content for a stored value.
package enum TableColumn<Value>: Sendable {
  /// Text, or another type that the server reads as text.
  case text(String, as: String = "text", @Sendable (Value) -> String?)
  case integer(String, @Sendable (Value) -> Int32?)
  case bigint(String, @Sendable (Value) -> Int64?)
  case bool(String, @Sendable (Value) -> Bool?)
  case instant(String, @Sendable (Value) -> Instant?)
  case money(String, @Sendable (Value) -> Money?)

  package var name: String {
    switch self {
    case .text(let name, _, _), .integer(let name, _), .bigint(let name, _), .bool(let name, _), .instant(let name, _),
      .money(let name, _):
      name
    }
  }

  /// The type that the server reads from text; nil for text itself and other types.
  var castType: String? {
    if case .text(_, let type, _) = self, type != "text" { type } else { nil }
  }

  /// SQL: the column as it is sent and read.
  package var selection: String { castType == nil ? name : "\(name)::text" }

  package func write(_ value: Value, to row: inout CopyWriter) throws(PostgresError) {
    switch self {
    case .text(_, _, let content): try row.text(content(value))
    case .integer(_, let content): try row.int(content(value).map(Int64.init))
    case .bigint(_, let content): try row.int(content(value))
    case .bool(_, let content): try row.bool(content(value))
    case .instant(_, let content): try row.timestamp(content(value)?.microseconds)
    case .money(_, let content): try row.numeric(content(value)?.numeric)
    }
  }

  /// SQL: a relation of the columns of the values, and its parameters.
  static func relation(_ columns: [TableColumn], of values: [Value]) -> (sql: String, parameters: [PostgresValue]) {
    var arrays: [String] = []
    var parameters: [PostgresValue] = []
    for column in columns {
      let (elementType, array): (String, PostgresValue) =
        switch column {
        case .text(_, let type, let content): (type, .textArray(values.map(content)))
        case .integer(_, let content): ("integer", .intArray(values.map { content($0).map(Int64.init) }))
        case .bigint(_, let content): ("bigint", .intArray(values.map(content)))
        case .bool(_, let content): ("boolean", .boolArray(values.map(content)))
        case .instant(_, let content): ("timestamptz", .timestampArray(values.map { content($0)?.microseconds }))
        case .money(_, let content): ("numeric", .numericArray(values.map { content($0)?.numeric }))
        }
      parameters.append(array)
      arrays.append("$\(parameters.count)::\(elementType)[]")
    }
    return ("unnest(\(arrays.joined(separator: ", ")))", parameters)
  }
}
