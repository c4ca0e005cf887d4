import Postgres
import Reconciliation

/// Monthly partitions (UTC, by recording time) of evidence and answers. `evidence.retention` drops whole tables.
package enum Partitions {
  /// Creates the partitions of this month and the next, and moves rows out of the default one. Cheap to repeat.
  package static func ensure(on connection: borrowing BlockingConnection) throws {
    try connection.migration(under: Migrator.lockKey) { try $0.execute("SELECT night_audit.keep_partitions()") }
  }

  /// Records the retentions, which limit what nights may remove. Only the owner of the schema may change them.
  package static func record(
    retention: Span?, ofReports reports: Span? = nil, on connection: borrowing BlockingConnection
  ) throws {
    let mayChange = try connection.execute("SELECT has_table_privilege('night_audit.retention', 'INSERT')")
    guard try mayChange.single().bool(0) else { return }
    try connection.transaction { connection in
      try connection.execute("DELETE FROM night_audit.retention")
      try connection.execute(
        """
        INSERT INTO night_audit.retention (evidence, reports)
        VALUES ($1::bigint * interval '1 microsecond', $2::bigint * interval '1 microsecond')
        """, [.int(retention?.microseconds), .int(reports?.microseconds)])
    }
  }

  /// Releases months before `cutoff` once: drops their tables, except for facts that `EvidenceRetention` keeps.
  @discardableResult
  package static func release(
    before cutoff: Instant, on connection: borrowing BlockingConnection
  ) throws -> [String] {
    var released: [String] = []
    for parent in ["answers", "evidence"] {
      let rows = try connection.execute(
        """
        SELECT c.relname::text FROM pg_inherits h JOIN pg_class c ON c.oid = h.inhrelid
        WHERE h.inhparent = ('night_audit.' || $1)::regclass AND night_audit.partition_end(c.oid) <= $2
          AND obj_description(c.oid, 'pg_class') IS DISTINCT FROM '\(mark)'
        ORDER BY 1
        """, [.text(parent), .timestamp(cutoff.microseconds)])
      for row in rows {
        let name = try row.text(0)
        let table = try PostgresIdentifier("night_audit", name).sql
        try connection.migration(under: Migrator.lockKey) { connection in
          let problem = try TrailVerification(entriesOn: connection).problem(of: parent, on: connection)
          if let problem { throw AlteredPartitionError(table: parent, problem: problem) }
          let kept = parent == "answers" ? [] : try kept(table, on: connection)
          try connection.execute(
            "SELECT night_audit.release_partition($1, $2)", [.text(name), .intArray(kept.map { $0 })])
        }
        released.append(name)
      }
    }
    return released
  }

  private static let mark = "what nobody needs any more was let go"

  /// Rows differ from the trail. The remaining rows must not be covered by a new entry.
  package struct AlteredPartitionError: Error, CustomStringConvertible {
    var table: String
    var problem: String
    package var description: String { "\(table) differs from the trail, so no month of it is deleted: \(problem)" }
  }

  private static func kept(_ table: String, on connection: borrowing BlockingConnection) throws -> [Int64] {
    try connection.executeScript(
      """
      DECLARE keys NO SCROLL CURSOR FOR SELECT DISTINCT transaction_id, environment
      FROM night_audit.evidence e WHERE e.tableoid = \(PostgresLiteral.text(table))::regclass
      """)
    var found: [Int64] = []
    while true {
      let keys = try connection.execute("FETCH 1000 FROM keys").map { row throws(PostgresError) in
        (transactionId: try row.text(0), environment: try row.text(1))
      }
      if keys.isEmpty { break }
      let rows = try connection.execute(
        """
        SELECT e.evidence_id, e.tableoid = $3::text::regclass AS is_old, \(EvidenceTable.isCredible("e")) AS is_credible, \
        \(EvidenceTable.columns.map { "e.\($0)" }.joined(separator: ", "))
        FROM night_audit.evidence e
        JOIN unnest($1::text[], $2::text[]) AS wanted (transaction_id, environment) USING (transaction_id, environment)
        ORDER BY e.evidence_id
        """, [.textArray(keys.map(\.transactionId)), .textArray(keys.map(\.environment)), .text(table)])
      var statements: [TransactionKey: [EvidenceRetention.Statement]] = [:]
      for row in rows {
        // A fact that is not credible replaces none and stays as reported.
        if try !row.bool("is_credible") {
          if try row.bool("is_old") { found.append(try row.int64("evidence_id")) }
          continue
        }
        let fact = try EvidenceTable.fact(row, from: 3 + EvidenceTable.firstOfFact)
        statements[fact.key, default: []].append(
          EvidenceRetention.Statement(
            id: try row.int64("evidence_id"), subject: try row.optionalText("subject_id"), fact: fact,
            isOld: try row.bool("is_old")))
      }
      found += statements.values.flatMap { EvidenceRetention.kept($0) }
    }
    try connection.executeScript("CLOSE keys")
    return found.sorted()
  }
}

package enum EvidenceRetention {
  package struct Statement {
    package var id: Int64
    /// The proof it answers; nil for notifications.
    package var subject: String?
    package var fact: TransactionFact
    package var isOld: Bool
  }

  /// IDs of old facts to keep: the first, the last of each proof and channel, or all if the fold would change.
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
