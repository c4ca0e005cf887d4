/// A column of the shop's relations and the type to which it is cast.
package struct SalesColumn: Encodable, Sendable {
  package enum Reading: String, Encodable, Sendable {
    case text, bigint, numeric, timestamptz
    /// A text; NULL if empty.
    case presentText
    /// A Boolean: true if the column is NULL.
    case absence
    case always
  }

  package let name: String
  package let reading: Reading

  package static let listed = SalesColumn("listed", .always)

  init(_ name: String, _ reading: Reading = .text) {
    self.name = name
    self.reading = reading
  }

  init(_ column: SalesContract.Column) {
    let reading: Reading =
      switch column.kind {
      case .text: .text
      case .integer: .bigint
      case .numeric: .numeric
      case .timestamptz: .timestamptz
      }
    self.init(column.name, reading)
  }

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
