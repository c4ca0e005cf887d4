import Postgres
import Reconciliation
import Streams

/// Derives `transactions` and `receipt_transactions` again from the evidence, and compares. Both tables exist for speed
/// only: `transactions` is the fold, `receipt_transactions` has the transactions of each proof.
package struct Rebuild {
  package struct Outcome: Hashable, Sendable, Encodable {
    package var transactions: Int64 = 0
    package var missingTransactions: Int64 = 0
    package var surplusTransactions: Int64 = 0
    package var differentTransactions: Int64 = 0
    package var missingLinks: Int64 = 0
    package var surplusLinks: Int64 = 0
    package var examples: [String] = []
    /// Problems, one sentence each: changed rows for later nights, and state that no run can have left.
    package var steering: [String] = []
    /// The first fact that is not credible and therefore not folded, or else the first event that does not count.
    package var uncounted: String?
    /// True if a problem remains that only a new night or re-check resolves.
    package var isNightNeeded = false
    package var isMended = false

    package var agrees: Bool {
      missingTransactions + surplusTransactions + differentTransactions + missingLinks + surplusLinks == 0
        && steering.isEmpty
    }
  }

  private static let batchSize = 5_000
  private static let derived = "pg_temp.derived"
  private static let derivedLinks = "pg_temp.derived_links"
  private static let uncounted = "pg_temp.uncounted"

  private static func isCounted(_ fact: String) -> String {
    "NOT EXISTS (SELECT FROM \(uncounted) u WHERE u.evidence_id = \(fact).evidence_id)"
  }

  /// Compares, also findings with their events, and mends all or nothing if asked to.
  package static func run(isRepairing: Bool, on connection: borrowing BlockingConnection) throws -> Outcome {
    try connection.transaction { connection in
      // Locked so that no answer arrives between reading the evidence and comparing.
      try EvidenceTable.lock(on: connection)
      try connection.executeScript(
        """
        CREATE TEMPORARY TABLE derived (LIKE night_audit.transactions INCLUDING INDEXES) ON COMMIT DROP;
        CREATE TEMPORARY TABLE uncounted ON COMMIT DROP AS \(EvidenceTable.uncountedFacts); ANALYZE \(uncounted)
        """)
      try derive(connection)
      try deriveLinks(connection)
      var outcome = try compare(connection)
      let entries = try TrailVerification(entriesOn: connection).entries.map(\.content)
      let differences = try NightsTrail.differences(by: entries, on: connection)
      let findings = try FindingsTrail.compare(by: entries, on: connection)
      let finding = findings.problem
      outcome.uncounted = try EvidenceTable.firstUncounted(in: uncounted, on: connection) ?? findings.uncounted
      outcome.steering =
        differences.map { "\($0)" } + (try InterNightState.problems(on: connection)) + (finding.map { [$0] } ?? [])
      if isRepairing, !outcome.agrees {
        try ForgottenRun.removeRows(on: connection)
        var lost = try InterNightState.lost(on: connection)
        if finding != nil {
          try FindingsTrail.mend(by: entries, on: connection)
          if let remedy = try FindingsTrail.compare(by: entries, on: connection).remedy { lost.append(remedy) }
        }
        outcome.steering += lost
        try mend(connection)
        try NightsTrail.mend(differences, on: connection)
        try InterNightState.mend(on: connection)
        outcome.isNightNeeded = !lost.isEmpty || differences.contains { $0.table != NightsTrail.findingsMet }
        outcome.isMended = true
      }
      return outcome
    }
  }

  private static func derive(_ connection: borrowing BlockingConnection) throws {
    let columns = EvidenceTable.columns.dropFirst().joined(separator: ", ")
    let evidence = ForgottenRun.tableWithCorrectedAsOf(
      "evidence", EvidenceTable.columns.filter { $0 != "as_of" }, where: isCounted("t"))
    try connection.executeScript(
      """
      DECLARE facts NO SCROLL CURSOR FOR SELECT \(columns) FROM \(evidence) e ORDER BY transaction_id, environment
      """)
    var facts: [TransactionFact] = []
    var checkedAt: Instant?
    var records: [TransactionRecord] = []
    func fold() {
      guard var record = TransactionRecord.folding(facts) else { return }
      record.checkedAt = checkedAt
      records.append(record)
      facts.removeAll(keepingCapacity: true)
      checkedAt = nil
    }
    while true {
      let rows = try connection.execute("FETCH \(batchSize) FROM facts")
      var count = 0
      for row in rows {
        count += 1
        let fact = try EvidenceTable.fact(row, from: EvidenceTable.firstOfFact - 1)
        let asOf = try row.instant("as_of")
        if let last = facts.last, last.transactionId != fact.transactionId || last.environment != fact.environment {
          fold()
        }
        if fact.channel.isAnswer { checkedAt = max(checkedAt ?? asOf, asOf) }
        facts.append(fact)
      }
      if count == 0 { break }
      try TransactionTable.write(records, into: derived, on: connection)
      records.removeAll(keepingCapacity: true)
    }
    fold()
    try TransactionTable.write(records, into: derived, on: connection)
    try connection.executeScript("CLOSE facts")
    try connection.executeScript("ANALYZE \(derived)")
    try TransactionTable.spreadOverPeriods(of: nil, in: derived, on: connection)
  }

  private static let linkColumns = "subject_kind, subject_id, environment, transaction_id"

  /// Derives the transactions of each proof. A signed transaction contains only itself.
  private static func deriveLinks(_ connection: borrowing BlockingConnection) throws(PostgresError) {
    try connection.executeScript(
      """
      CREATE TEMPORARY TABLE derived_links ON COMMIT DROP AS
      SELECT DISTINCT e.subject_kind, e.subject_id, e.environment, e.transaction_id FROM night_audit.evidence e
      LEFT JOIN night_audit.receipt_checks c ON c.subject_kind = e.subject_kind AND c.subject_id = e.subject_id
        AND c.payload_kind = 'signed' AND c.signed_transaction_id <> e.transaction_id
      LEFT JOIN (
        SELECT DISTINCT subject_kind, subject_id, transaction_id FROM night_audit.evidence WHERE channel <> 'serverApi'
      ) o ON o.subject_kind = e.subject_kind AND o.subject_id = e.subject_id AND o.transaction_id = e.transaction_id
      WHERE \(isCounted("e")) AND e.subject_id IS NOT NULL AND (c.subject_id IS NULL OR o.subject_id IS NOT NULL);
      ANALYZE \(derivedLinks)
      """)
  }

  private static func compare(_ connection: borrowing BlockingConnection) throws(PostgresError) -> Outcome {
    var outcome = Outcome()
    outcome.transactions = try connection.execute("SELECT count(*) FROM \(derived)").single().int64(0)
    let columns = try columns(connection)
    let row = try connection.execute(
      """
      SELECT count(*) FILTER (WHERE t.transaction_id IS NULL), count(*) FILTER (WHERE d.transaction_id IS NULL),
        count(*) FILTER (WHERE t.transaction_id IS NOT NULL AND d.transaction_id IS NOT NULL),
        coalesce((array_agg(coalesce(t.transaction_id, d.transaction_id)
          ORDER BY coalesce(t.transaction_id, d.transaction_id)))[1:20], '{}')
      FROM night_audit.transactions t
      FULL JOIN \(derived) d ON d.transaction_id = t.transaction_id AND d.environment = t.environment
      WHERE (\(columns.map { "t.\($0)" }.joined(separator: ", ")))
        IS DISTINCT FROM (\(columns.map { "d.\($0)" }.joined(separator: ", ")))
      """
    ).single()
    (outcome.missingTransactions, outcome.surplusTransactions) = (try row.int64(0), try row.int64(1))
    outcome.differentTransactions = try row.int64(2)
    outcome.examples = try row.textArray(3).compactMap { $0 }
    let stored = "SELECT \(linkColumns) FROM night_audit.receipt_transactions"
    outcome.missingLinks = try connection.execute(
      "SELECT count(*) FROM (SELECT \(linkColumns) FROM \(derivedLinks) EXCEPT \(stored)) missing"
    ).single().int64(0)
    outcome.surplusLinks = try connection.execute(
      "SELECT count(*) FROM (\(stored) EXCEPT SELECT \(linkColumns) FROM \(derivedLinks)) surplus"
    ).single().int64(0)
    return outcome
  }

  private static func columns(_ connection: borrowing BlockingConnection) throws(PostgresError) -> [String] {
    let rows = try connection.execute(
      """
      SELECT attname::text FROM pg_attribute
      WHERE attrelid = 'night_audit.transactions'::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum
      """)
    return try rows.texts()
  }

  private static func mend(_ connection: borrowing BlockingConnection) throws(PostgresError) {
    let columns = try columns(connection)
    let names = columns.joined(separator: ", ")
    let news = columns.filter { $0 != "transaction_id" && $0 != "environment" }
    try connection.executeScript(
      """
      DELETE FROM night_audit.transactions t WHERE NOT EXISTS (
        SELECT 1 FROM \(derived) d WHERE d.transaction_id = t.transaction_id AND d.environment = t.environment);
      INSERT INTO night_audit.transactions AS t (\(names)) SELECT \(names) FROM \(derived)
      ON CONFLICT (transaction_id, environment) DO UPDATE SET
        \(news.map { "\($0) = excluded.\($0)" }.joined(separator: ", "))
      WHERE (\(news.map { "t.\($0)" }.joined(separator: ", ")))
        IS DISTINCT FROM (\(news.map { "excluded.\($0)" }.joined(separator: ", ")));
      DELETE FROM night_audit.receipt_transactions l WHERE NOT EXISTS (
        SELECT 1 FROM \(derivedLinks) d WHERE d.subject_kind = l.subject_kind AND d.subject_id = l.subject_id
          AND d.environment = l.environment AND d.transaction_id = l.transaction_id);
      INSERT INTO night_audit.receipt_transactions (\(linkColumns)) SELECT \(linkColumns) FROM \(derivedLinks)
      ON CONFLICT DO NOTHING
      """)
  }
}
