import Postgres
import Reconciliation

/// Evidence and answers lie in one partition for each month (UTC) in which they were recorded, so that what
/// `evidence.retention` lets go is a table to drop and not a scan.
package enum Partitions {
  /// Sees to partitions for this month and the next, and moves what the default one has taken meanwhile. Cheap to repeat.
  package static func ensure(on connection: borrowing BlockingConnection) throws {
    try connection.migration(under: Migrator.lockKey) { try $0.execute("SELECT night_audit.keep_partitions()") }
  }

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
        WHERE h.inhparent = ('night_audit.' || $1)::regclass AND night_audit.partition_end(c.oid) <= $2
          AND obj_description(c.oid, 'pg_class') IS DISTINCT FROM '\(mark)'
        ORDER BY 1
        """, [.text(parent), .timestamp(cutoff.microseconds)])
      for row in rows {
        let name = try row.text(0)
        let table = try PostgresIdentifier("night_audit", name).sql
        try connection.migration(under: Migrator.lockKey) { connection in
          let problem = try TrailVerification(entriesOn: connection).problem(of: parent, on: connection)
          if let problem { throw Altered(table: parent, problem: problem) }
          let kept = parent == "answers" ? [] : try kept(table, on: connection)
          try connection.execute(
            "SELECT night_audit.release_partition($1, $2)", [.text(name), .intArray(kept.map { $0 })])
        }
        released.append(name)
      }
    }
    return released
  }

  /// The comment on a month that was looked at.
  private static let mark = "what nobody needs any more was let go"

  /// What the trail covers is not as it was: what is left of it shall not be covered anew.
  package struct Altered: Error, CustomStringConvertible {
    var table: String
    var problem: String
    package var description: String { "\(table) is not what the trail says, and nothing of it is let go: \(problem)" }
  }

  /// The ids of facts of a month that stay.
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
        """,
        [.textArray(keys.map(\.transactionId)), .textArray(keys.map(\.environment)), .text(table)])
      var statements: [TransactionKey: [EvidenceRetention.Statement]] = [:]
      for row in rows {
        // What does not count replaces nothing, and stays as it was reported.
        if try !row.bool("is_credible") {
          if try row.bool("is_old") { found.append(try row.int64("evidence_id")) }
          continue
        }
        let fact = try EvidenceTable.fact(row)
        let key = TransactionKey(environment: fact.environment, transactionId: Identifier(fact.transactionId))
        statements[key, default: []].append(
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
