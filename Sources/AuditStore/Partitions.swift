import Postgres
import Reconciliation

/// Evidence and answers lie in one partition for each month (UTC) in which they were recorded, so that what
/// `evidence.retention` lets go is a table to drop and not a scan.
package enum Partitions {
  /// Sees to partitions for this month and the next, and moves what the default one has taken meanwhile. Cheap to repeat.
  package static func ensure(on connection: borrowing BlockingConnection) throws(PostgresError) {
    try connection.executeScript(
      """
      DO $$
      DECLARE
        parent text; partition text; first timestamptz; next timestamptz; covered timestamptz;
      BEGIN
        PERFORM pg_advisory_xact_lock(\(Migrator.lockKey.0), \(Migrator.lockKey.1));
        FOREACH parent IN ARRAY ARRAY['evidence', 'answers'] LOOP
          FOR ahead IN 0..1 LOOP
            first := (date_trunc('month', now() AT TIME ZONE 'UTC') + make_interval(months => ahead)) AT TIME ZONE 'UTC';
            next := (date_trunc('month', now() AT TIME ZONE 'UTC') + make_interval(months => ahead + 1)) AT TIME ZONE 'UTC';
            SELECT max(\(upperBound)) INTO covered FROM pg_inherits h JOIN pg_class c ON c.oid = h.inhrelid
            WHERE h.inhparent = ('night_audit.' || parent)::regclass;
            CONTINUE WHEN first < covered;
            partition := parent || to_char(first AT TIME ZONE 'UTC', '_YYYY_MM');
            EXECUTE format('CREATE TABLE night_audit.%I (LIKE night_audit.%I INCLUDING DEFAULTS)', partition, parent);
            EXECUTE format(
              'WITH moved AS (DELETE FROM night_audit.%I WHERE recorded_at >= %L AND recorded_at < %L RETURNING *)
                INSERT INTO night_audit.%I SELECT * FROM moved', parent || '_default', first, next, partition);
            EXECUTE format('ALTER TABLE night_audit.%I ATTACH PARTITION night_audit.%I FOR VALUES FROM (%L) TO (%L)',
              parent, partition, first, next);
          END LOOP;
        END LOOP;
      END $$
      """)
  }

  /// Of a partition as `pg_class` aliased `c`: the first instant after it; null for the default one.
  private static let upperBound =
    "substring(pg_get_expr(c.relpartbound, c.oid) from 'TO \\(''([^'']+)''\\)')::timestamptz"

  /// Lets go of what is older than `cutoff` and of which a newer word stands.
  ///
  /// Answers of such a month go as a whole. Of evidence those facts stay of which the same proof has no newer one by the same
  /// channel, or without which the transaction would be another: they move into a table of the month's name, and the rest
  /// is dropped with the old one. A month is looked at once.
  ///
  /// - Returns: the partitions that were let go.
  @discardableResult
  package static func release(
    before cutoff: Instant, on connection: borrowing BlockingConnection
  ) throws -> [String] {
    var released: [String] = []
    for parent in ["answers", "evidence"] {
      let rows = try connection.execute(
        """
        SELECT c.relname::text FROM pg_inherits h JOIN pg_class c ON c.oid = h.inhrelid
        WHERE h.inhparent = ('night_audit.' || $1)::regclass AND \(upperBound) <= $2
          AND obj_description(c.oid, 'pg_class') IS DISTINCT FROM '\(mark)'
        ORDER BY 1
        """, [.text(parent), .timestamp(cutoff.microseconds)])
      for row in rows {
        let name = try row.text(0)
        let table = try PostgresIdentifier("night_audit", name).sql
        try connection.transaction { connection in
          if parent == "answers" {
            try connection.executeScript("DROP TABLE \(table)")
          } else {
            try thin(table, on: connection)
          }
        }
        released.append(name)
      }
    }
    return released
  }

  /// The comment on a month that was looked at.
  private static let mark = "what nobody needs any more was let go"

  private static func thin(_ table: String, on connection: borrowing BlockingConnection) throws {
    try connection.executeScript(
      """
      CREATE TEMPORARY TABLE kept (evidence_id bigint PRIMARY KEY) ON COMMIT DROP;
      DECLARE keys NO SCROLL CURSOR FOR SELECT DISTINCT transaction_id, environment FROM \(table)
      """)
    while true {
      let keys = try connection.execute("FETCH 1000 FROM keys").map { row throws(PostgresError) in
        (transactionId: try row.text(0), environment: try row.text(1))
      }
      if keys.isEmpty { break }
      let rows = try connection.execute(
        """
        SELECT e.evidence_id, e.tableoid = $3::text::regclass AS is_old, \
        \(EvidenceTable.columns.map { "e.\($0)" }.joined(separator: ", "))
        FROM night_audit.evidence e
        JOIN unnest($1::text[], $2::text[]) AS wanted (transaction_id, environment) USING (transaction_id, environment)
        ORDER BY e.evidence_id
        """,
        [.textArray(keys.map(\.transactionId)), .textArray(keys.map(\.environment)), .text(table)])
      var statements: [TransactionKey: [EvidenceRetention.Statement]] = [:]
      for row in rows {
        let fact = try EvidenceTable.fact(row)
        let key = TransactionKey(environment: fact.environment, transactionId: Identifier(fact.transactionId))
        statements[key, default: []].append(
          EvidenceRetention.Statement(
            id: try row.int64("evidence_id"), subject: try row.optionalText("subject_id"), fact: fact,
            isOld: try row.bool("is_old")))
      }
      let kept = statements.values.flatMap { EvidenceRetention.kept($0) }.sorted()
      if !kept.isEmpty {
        try connection.execute("INSERT INTO kept SELECT * FROM unnest($1::bigint[])", [.intArray(kept)])
      }
    }
    let bounds = try connection.execute(
      "SELECT pg_get_expr(relpartbound, oid) FROM pg_class WHERE oid = $1::text::regclass", [.text(table)]
    ).single().text(0)
    let aside = "night_audit.evidence_aside"
    let name = table.split(separator: ".").last.map(String.init) ?? table
    try connection.executeScript(
      """
      CLOSE keys;
      CREATE TABLE \(aside) (LIKE night_audit.evidence INCLUDING DEFAULTS);
      INSERT INTO \(aside) SELECT e.* FROM \(table) e JOIN kept USING (evidence_id);
      ALTER TABLE night_audit.evidence DETACH PARTITION \(table);
      DROP TABLE \(table);
      ALTER TABLE \(aside) RENAME TO \(name);
      ALTER TABLE night_audit.evidence ATTACH PARTITION \(table) \(bounds);
      COMMENT ON TABLE \(table) IS '\(mark)'
      """)
  }
}

/// Which of the old facts about one transaction have to stay.
package enum EvidenceRetention {
  /// A stored fact.
  package struct Statement {
    package var id: Int64
    /// The proof that it was said about; nil for what Apple told unasked.
    package var subject: String?
    package var fact: TransactionFact
    /// Whether it is old enough to go.
    package var isOld: Bool

    package init(id: Int64, subject: String?, fact: TransactionFact, isOld: Bool) {
      self.id = id
      self.subject = subject
      self.fact = fact
      self.isOld = isOld
    }
  }

  /// The ids of old facts that stay: the first word of all, those of which the same proof has no newer one by the same
  /// channel, and all of them where the transaction would be another without the rest.
  package static func kept(_ statements: [Statement]) -> [Int64] {
    let old = statements.filter(\.isOld)
    let first = statements.min { ($0.fact.signedDate, $0.id) < ($1.fact.signedDate, $1.id) }?.id
    let needed = old.filter { one in
      one.id == first
        || !statements.contains { other in
          !other.isOld && other.subject == one.subject && other.fact.channel == one.fact.channel
            && other.fact.signedDate >= one.fact.signedDate
        }
    }
    let ids = Set(needed.map(\.id))
    let left = statements.filter { !$0.isOld || ids.contains($0.id) }.map(\.fact)
    let isSame = TransactionRecord.folding(left) == TransactionRecord.folding(statements.map(\.fact))
    return (isSame ? needed : old).map(\.id)
  }
}
