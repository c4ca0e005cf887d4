import Postgres
import Reconciliation

extension BlockingConnection {
  /// Runs `query` by COPY over some ids, which it reads as `(SELECT id FROM ids)`: COPY takes no parameters, and ids are no part
  /// of a statement. In a transaction only. Throws `PostgresError`.
  public func copyOut(_ query: String, ids: some Sequence<Identifier>) throws(PostgresError) -> CopyReader {
    let list = StoredIds(name: "ids")
    try store(ids, as: list)
    return try copyOut("WITH ids AS (\(list.query)) \(query)")
  }

  /// Stores some ids with the transaction, for the queries that read `list.query` in it. Throws `PostgresError`.
  public func store(_ ids: some Sequence<Identifier>, as list: StoredIds) throws(PostgresError) {
    try execute(
      "SELECT set_config($1, $2::text[]::text, true)",
      [.text(list.setting), .textArray(Set(ids).sorted().map(\.text))])
  }
}

/// A list of ids that a connection holds until its transaction ends.
public struct StoredIds: Sendable {
  fileprivate let setting: String

  /// - Parameter name: a word; another list of that name takes its place.
  public init(name: String) { setting = "night_audit.\(name)" }

  /// The ids, as the rows of one column `id`.
  public var query: String { "SELECT unnest(current_setting('\(setting)')::text[]) AS id" }

  /// A condition that a column has one of the ids; it compares as the column does.
  public func contain(_ column: String) -> String { "\(column) IN (\(query))" }
}
