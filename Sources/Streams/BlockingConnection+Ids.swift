import Postgres
import Reconciliation

extension BlockingConnection {
  /// Runs `query` by COPY over some ids, which it reads as `(SELECT id FROM ids)`: COPY takes no parameters, and ids are no part
  /// of a statement. In a transaction only. Throws `PostgresError`.
  public func copyOut(_ query: String, ids: some Sequence<Identifier>) throws(PostgresError) -> CopyReader {
    try execute(
      "SELECT set_config('night_audit.ids', $1::text[]::text, true)", [.textArray(Set(ids).sorted().map(\.text))])
    return try copyOut("WITH ids AS (SELECT unnest(current_setting('night_audit.ids')::text[]) AS id) \(query)")
  }
}
