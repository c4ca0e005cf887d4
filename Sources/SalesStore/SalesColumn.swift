/// A column of the shop's relations as it is read: its name, and the type that the sales schema promises.
package struct SalesColumn: Encodable, Sendable {
  /// What stands in a row.
  package enum Reading: String, Encodable, Sendable {
    case text, bigint, numeric, timestamptz
    /// A text; an empty one is missing.
    case presentText
    /// Whether there is nothing, as a boolean.
    case absence
    /// TRUE, whatever there is.
    case always
  }

  package let name: String
  package let reading: Reading

  /// That a row is among those that are listed.
  package static let listed = SalesColumn("listed", .always)

  init(_ name: String, _ reading: Reading = .text) {
    self.name = name
    self.reading = reading
  }

  /// As expressions on a table with an alias, in their order.
  static func list(_ columns: [SalesColumn], of alias: String) -> String {
    columns.map { column in
      switch column.reading {
      case .text, .bigint, .numeric, .timestamptz: "\(alias).\(column.name)::\(column.reading.rawValue)"
      case .presentText: "nullif(\(alias).\(column.name)::text COLLATE \"C\", '')"
      case .absence: "\(alias).\(column.name) IS NULL"
      case .always: "TRUE"
      }
    }.joined(separator: ", ")
  }
}
