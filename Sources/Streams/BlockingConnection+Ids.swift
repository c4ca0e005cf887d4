import Postgres
import Reconciliation

extension BlockingConnection {
  /// Runs `query` by COPY with ids, which it reads as `(SELECT id FROM ids)`, in a transaction. COPY takes no
  /// parameters.
  public func copyOut(_ query: String, ids: some Sequence<Identifier>) throws(PostgresError) -> CopyReader {
    let list = StoredIds(name: "ids")
    try store(ids, as: list)
    return try copyOut("WITH ids AS (\(list.query)) \(query)")
  }

  public func store(_ ids: some Sequence<Identifier>, as list: StoredIds) throws(PostgresError) {
    try execute(
      "SELECT set_config($1, $2::text[]::text, true)",
      [.text(list.setting), .textArray(Set(ids).sorted().map(\.text))])
  }
}

/// A list of ids that a connection keeps until its transaction ends.
public struct StoredIds: Sendable {
  fileprivate let setting: String

  /// - Parameter name: a word; another list of the same name is replaced.
  public init(name: String) { setting = "night_audit.\(name)" }

  public var query: String { "SELECT unnest(current_setting('\(setting)')::text[]) AS id" }

  /// A condition that a column has one of the ids, with the column's own comparison.
  public func contain(_ column: String) -> String { "\(column) IN (\(query))" }
}
