import Postgres

/// The scope of a snapshot of the shop's relations.
package enum SnapshotScope: Hashable, Sendable {
  /// The snapshot can be exported to other connections.
  case everyConnection
  /// Each connection has its own snapshot of a foreign server (PostgreSQL documentation, "postgres_fdw").
  case oneConnection
  /// No snapshot spans the rows. They are in several databases, each with a snapshot of its own. Or they are behind a
  /// Citus coordinator, whose workers take a new snapshot for each statement and shard.
  case noConnection

  package init(of schema: String, on connection: borrowing BlockingConnection) throws(PostgresError) {
    let isCluster = try connection.execute("SELECT to_regclass('pg_catalog.pg_dist_partition') IS NOT NULL")
    if try isCluster.single().bool(0) {
      let distributed = try connection.execute(
        Self.used + "SELECT EXISTS (SELECT 1 FROM pg_dist_partition p JOIN used u ON u.oid = p.logicalrelid)",
        Self.parameters(schema))
      if try distributed.single().bool(0) {
        self = .noConnection
        return
      }
    }
    let databases = try connection.execute(
      Self.used + """
        SELECT count(DISTINCT f.ftserver), count(*) FILTER (WHERE c.relkind IN ('r', 'm'))
        FROM used u JOIN pg_class c USING (oid) LEFT JOIN pg_foreign_table f ON f.ftrelid = c.oid
        """, Self.parameters(schema)
    ).single()
    let (foreign, hasOwnRows) = (try databases.int64(0), try databases.int64(1) > 0)
    self = foreign == 0 ? .everyConnection : foreign == 1 && !hasOwnRows ? .oneConnection : .noConnection
  }

  private static func parameters(_ schema: String) -> [PostgresValue] {
    [.text(schema), .textArray(["orders", "receipts", "deliveries"])]
  }

  /// SQL: the relations of schema $1 with the names $2, and all their underlying relations. A materialized view has rows
  /// of its own.
  static let used = """
    WITH RECURSIVE used(oid) AS (
      SELECT c.oid FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
      WHERE n.nspname = $1 AND c.relname = ANY ($2)
      UNION
      SELECT next.oid FROM used u CROSS JOIN LATERAL (
        SELECT d.refobjid FROM pg_rewrite r JOIN pg_class v ON v.oid = r.ev_class JOIN pg_depend d ON d.objid = r.oid
        WHERE r.ev_class = u.oid AND v.relkind = 'v' AND d.classid = 'pg_rewrite'::regclass AND d.refclassid = 'pg_class'::regclass
        UNION ALL
        SELECT i.inhrelid FROM pg_inherits i WHERE i.inhparent = u.oid) AS next(oid)
    )

    """
}
