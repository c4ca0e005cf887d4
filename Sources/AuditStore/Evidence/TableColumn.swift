import Postgres
import Reconciliation

/// A column of a table: its name, its type, and its contents for the stored values.
struct TableColumn<Value>: Sendable {
  let name: String
  fileprivate let type: String
  fileprivate let contents: @Sendable ([Value]) -> PostgresValue

  static func text(_ name: String, _ content: @escaping @Sendable (Value) -> String?) -> TableColumn {
    TableColumn(name: name, type: "text") { .textArray($0.map(content)) }
  }

  static func integer(_ name: String, _ content: @escaping @Sendable (Value) -> Int32?) -> TableColumn {
    TableColumn(name: name, type: "integer") { .intArray($0.map { content($0).map(Int64.init) }) }
  }

  static func bigint(_ name: String, _ content: @escaping @Sendable (Value) -> Int64?) -> TableColumn {
    TableColumn(name: name, type: "bigint") { .intArray($0.map(content)) }
  }

  static func bool(_ name: String, _ content: @escaping @Sendable (Value) -> Bool?) -> TableColumn {
    TableColumn(name: name, type: "boolean") { .boolArray($0.map(content)) }
  }

  static func instant(_ name: String, _ content: @escaping @Sendable (Value) -> Instant?) -> TableColumn {
    TableColumn(name: name, type: "timestamptz") { .timestampArray($0.map { content($0)?.microseconds }) }
  }

  /// SQL: a relation of the columns of the values, and its parameters.
  static func relation(_ columns: [TableColumn], of values: [Value]) -> (sql: String, parameters: [PostgresValue]) {
    let arrays = columns.enumerated().map { "$\($0 + 1)::\($1.type)[]" }
    return ("unnest(\(arrays.joined(separator: ", ")))", columns.map { $0.contents(values) })
  }
}

extension Statement {
  /// What is stated; nil if it is absent.
  func content<Content>() -> Content? where Value == Content? {
    switch self {
    case .absent: nil
    case .stated(let content): content
    }
  }
}
