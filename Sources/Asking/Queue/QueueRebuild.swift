import AuditStore
import Postgres
import Reconciliation
import SalesStore
import Settings
import Streams

/// Derives rows, outcomes, due dates and transaction counts of the queue again, and compares them.
package enum QueueRebuild {
  package struct Outcome: Hashable, Sendable, Encodable {
    package var proofs = 0
    /// Proofs with an answer that are not in the queue.
    package var missingProofs = 0
    package var differentOutcomes = 0
    package var differentDueness = 0
    /// Proofs whose transaction count is zero although they have transactions, or the other way round.
    package var differentBrought = 0
    /// At most twenty of these proofs.
    package var examples: [String] = []

    package var agrees: Bool { missingProofs + differentOutcomes + differentDueness + differentBrought == 0 }
  }

  private static let page = 5_000

  /// Compares, and corrects if asked to. Due dates follow the policy of the newest run.
  /// - Parameter shopDates: the dates that `shopDates(ofEarlierChecks:store:sales:)` found.
  package static func run(
    isRepairing: Bool, shopDates: [CheckSubject: Instant], on connection: borrowing BlockingConnection
  ) throws -> Outcome {
    var outcome = Outcome()
    // No due dates exist before the first run.
    guard let table = try CheckTable.ofNewestRun(on: connection) else { return outcome }
    let missing = try missingProofs(connection)
    if isRepairing { try add(missing, to: table, on: connection) }
    let added = Set(missing.map(\.subject))
    outcome.missingProofs = missing.count
    outcome.examples = missing.prefix(20).map(\.subject.id.text)
    let accusations = try CheckTable.changedAccusations(on: connection)
    let misplaced = try proofsWantedUnlikeRule(connection)
    let doubtful = try proofsWithWrongCount(connection)
    let answers = try answersUnlikeStored(connection)
    let unfounded = try Set(unfoundedOutcomes(connection))
    let newestTime = try connection.execute("SELECT \(InterNightState.newestTime)").single().instant(0)
    try table.change(where: "TRUE", on: connection) { row in
      outcome.proofs += 1
      let stored = row.history
      row.history.correctDates(shop: shopDates[row.subject], newest: newestTime)
      let answer = answers[row.subject]
      let isUnfounded = unfounded.contains(row.subject)
      if isUnfounded {
        // Asked again, as if the proof were new.
        outcome.differentOutcomes += 1
        row.history.renew(asOf: row.history.knownSince)
        row.storedRefusal = nil
      } else if let answer {
        outcome.differentOutcomes += 1
        (row.history.outcome, row.history.reason) = (answer.outcome, answer.reason)
        row.storedRefusal = Refusal(answer.outcome, reason: answer.reason).map { .decided($0) }
      }
      if let accusedSince = accusations[row.subject] { row.history.accusedSince = accusedSince }
      if misplaced.contains(row.subject) { row.history.isWanted.toggle() }
      let isDifferent =
        isUnfounded || answer != nil || row.history != stored
        || row.due != Dueness(of: row.history, policy: table.policy)
      if added.contains(row.subject) { return isDifferent }
      let isDoubtful = doubtful.contains(row.subject)
      if isDifferent, !isUnfounded, answer == nil { outcome.differentDueness += 1 }
      if isDoubtful { outcome.differentBrought += 1 }
      if isDifferent || isDoubtful, outcome.examples.count < 20 { outcome.examples.append(row.subject.id.text) }
      return isDifferent && isRepairing
    }
    if isRepairing, !doubtful.isEmpty { try count(doubtful.sorted { $0.id < $1.id }, on: connection) }
    return outcome
  }

  /// The shop's dates of checks with an earlier date: Apple would be asked about them for a shorter time, or never. A
  /// later date only prolongs the asking, and a look-up keeps that of an order that waits no more.
  package static func shopDates(
    ofEarlierChecks settings: Settings, store: PostgresSession, sales: OpenSession
  ) async throws -> [CheckSubject: Instant] {
    let source = ProofSource(session: sales, sales: try SalesRows(schema: settings.salesSchema))
    var dates: [CheckSubject: Instant] = [:]
    for (kind, checks) in [(CheckSubject.Kind.receipt, datedReceipts), (.lookup, datedLookups)] {
      var last = ""
      while true {
        let rows = try await store.execute(checks, [.text(last)])
        let ids = try rows.map { Identifier(try $0.text(0)) }
        guard let newest = ids.last else { break }
        last = newest.text
        let found = try await kind == .receipt ? source.receiptDates(ids) : source.orderDates(ids)
        for (id, row) in zip(ids, rows) {
          guard let date = found[id], try row.instant(2) < date else { continue }
          let subject = CheckSubject(kind: kind, id: Identifier(try row.text(1)))
          dates[subject] = max(date, dates[subject] ?? date)
        }
      }
    }
    return dates
  }

  private static let datedReceipts = """
    SELECT c.subject_id, c.subject_id, c.received_at FROM night_audit.receipt_checks c
    WHERE c.subject_kind = 'receipt' AND c.subject_id > $1 ORDER BY c.subject_id LIMIT \(page)
    """

  /// SQL: orders that wait for a look-up, with the look-up and its date.
  private static let datedLookups = """
    SELECT l.order_id, l.subject_id, c.received_at FROM night_audit.lookups l
    JOIN night_audit.receipt_checks c ON c.subject_kind = 'lookup' AND c.subject_id = l.subject_id
    WHERE l.order_id > $1 ORDER BY l.order_id LIMIT \(page)
    """

  /// Proofs with an answer and without a row, because no run removes a row. The date is that of the first answer. The
  /// order is one that waits for the look-up; the next reading of the shop's receipts restores theirs.
  private static func missingProofs(
    _ connection: borrowing BlockingConnection
  ) throws -> [(subject: CheckSubject, since: Instant, orderId: Identifier?)] {
    let rows = try connection.execute(
      """
      SELECT a.subject_kind, a.subject_id, a.since, l.order_id FROM (
        SELECT subject_kind, subject_id, min(as_of) AS since FROM night_audit.answers
        WHERE subject_kind IN ('receipt', 'lookup') GROUP BY subject_kind, subject_id) a
      LEFT JOIN night_audit.receipt_checks c ON c.subject_kind = a.subject_kind AND c.subject_id = a.subject_id
      LEFT JOIN (
        SELECT subject_id, min(order_id) AS order_id FROM night_audit.lookups GROUP BY subject_id) l
        ON a.subject_kind = 'lookup' AND l.subject_id = a.subject_id
      WHERE c.subject_id IS NULL ORDER BY a.subject_kind, a.subject_id
      """)
    return try rows.map { row in
      (subject: try CheckSubject(of: row), since: try row.instant(2), orderId: try row.optionalId(3))
    }
  }

  /// Adds these proofs as if they were new, to be asked about again.
  private static func add(
    _ missing: [(subject: CheckSubject, since: Instant, orderId: Identifier?)], to table: CheckTable,
    on connection: borrowing BlockingConnection
  ) throws {
    if missing.isEmpty { return }
    for start in stride(from: 0, to: missing.count, by: page) {
      let rows = missing[start..<min(start + page, missing.count)].map { proof -> CheckRow in
        var row = CheckRow(
          subject: proof.subject, history: CheckHistory(dated: proof.since, knownSince: proof.since))
        row.orderId = proof.orderId
        return row
      }
      _ = try table.insert(rows, on: connection)
    }
    // Makes the next run read all rows of the shop.
    try connection.execute("DELETE FROM night_audit.asking_state WHERE key = 'definition'")
  }

  /// The last answers that differ from the stored outcomes: of the latest as-of, or the last one stored. Pending and
  /// unanswered checks are skipped, and answers of removed months are missing.
  private static func answersUnlikeStored(
    _ connection: borrowing BlockingConnection
  ) throws -> [CheckSubject: (outcome: CheckOutcome, reason: PaymentReason?)] {
    let rows = try connection.execute(
      """
      WITH last AS (
        SELECT * FROM (
          SELECT subject_kind, subject_id, outcome, reason, answer_id,
            rank() OVER (PARTITION BY subject_kind, subject_id ORDER BY as_of DESC) AS by_as_of,
            row_number() OVER (PARTITION BY subject_kind, subject_id ORDER BY answer_id DESC) AS by_id
          FROM night_audit.answers
          WHERE outcome NOT IN ('unanswered', 'pending') AND subject_kind IN ('receipt', 'lookup')) answered
        WHERE by_as_of = 1 OR by_id = 1)
      SELECT DISTINCT ON (subject_kind, subject_id) subject_kind, subject_id, outcome, reason FROM (
        SELECT c.subject_kind, c.subject_id, l.outcome, l.reason, l.by_as_of, l.answer_id,
          bool_or(l.outcome = CASE WHEN is_deferred THEN c.deferred_outcome ELSE c.outcome END
            AND l.reason IS NOT DISTINCT FROM CASE WHEN is_deferred THEN c.deferred_reason ELSE c.reason END)
            OVER (PARTITION BY c.subject_kind, c.subject_id) AS is_stored
        FROM night_audit.receipt_checks c JOIN last l USING (subject_kind, subject_id)
        CROSS JOIN LATERAL (SELECT c.outcome = 'review' AND c.reason = 'systemic' AS is_deferred) systemic
        WHERE c.outcome NOT IN ('pending', 'unanswered') AND NOT (is_deferred AND c.deferred_outcome IS NULL)) compared
      WHERE NOT is_stored ORDER BY subject_kind, subject_id, by_as_of, answer_id DESC
      """)
    return try rows.reduce(into: [:]) { answers, row in
      guard let outcome = CheckOutcome(rawValue: try row.text(2)) else { return }
      let reason = try row.optionalText(3).flatMap(PaymentReason.init)
      answers.updateValue((outcome, reason), forKey: try CheckSubject(of: row))
    }
  }

  /// A sentence about outcomes that no answer gives; nil if there are none.
  package static func problem(on connection: borrowing BlockingConnection) throws -> String? {
    let subjects = try unfoundedOutcomes(connection)
    return subjects.first.map {
      """
      \(subjects.count) proof\(subjects.count == 1 ? " has" : "s have") an outcome that no answer gives, for example \
      \($0.id.text); to mend it: night-audit rebuild --write
      """
    }
  }

  /// Proofs with an outcome but without an answer, with a later answer than the last one, or asked after all runs.
  /// Answers of removed months are missing.
  private static func unfoundedOutcomes(_ connection: borrowing BlockingConnection) throws -> [CheckSubject] {
    let rows = try connection.execute(
      """
      SELECT c.subject_kind, c.subject_id FROM night_audit.receipt_checks c
      LEFT JOIN (
        SELECT subject_kind, subject_id, max(as_of) AS as_of FROM night_audit.answers
        WHERE outcome NOT IN ('unanswered', 'pending') AND subject_kind IN ('receipt', 'lookup')
        GROUP BY subject_kind, subject_id) a USING (subject_kind, subject_id)
      WHERE c.last_attempt > \(InterNightState.newestTime)
        OR c.outcome NOT IN ('pending', 'unanswered') AND CASE WHEN a.as_of IS NULL
          THEN (c.answered_at < \(InterNightState.released("answers"))) IS NOT TRUE ELSE c.answered_at > a.as_of END
      ORDER BY c.subject_kind, c.subject_id
      """)
    return try rows.map { try CheckSubject(of: $0) }
  }

  /// Proofs that the queue leaves out although they are wanted, or the other way round. A receipt is wanted while the
  /// shop has it and its app is configured, and a look-up while an order waits for it and its app has a key.
  private static func proofsWantedUnlikeRule(_ connection: borrowing BlockingConnection) throws -> Set<CheckSubject> {
    let rows = try connection.execute(
      """
      SELECT c.subject_kind, c.subject_id FROM night_audit.receipt_checks c
      LEFT JOIN (SELECT DISTINCT subject_id FROM night_audit.lookups) l
        ON c.subject_kind = 'lookup' AND l.subject_id = c.subject_id
      WHERE c.is_wanted <> CASE c.subject_kind WHEN 'receipt' THEN c.gone_at IS NULL
        ELSE l.subject_id IS NOT NULL AND split_part(c.subject_id, '/', 1) = ANY (ARRAY(
          SELECT split_part(app, '=', 1)
          FROM night_audit.asking_state s CROSS JOIN LATERAL unnest(string_to_array(s.value, ' ')) AS app
          WHERE s.key = 'apps' AND split_part(app, '=', 2) = '\(Settings.Channel.serverApi.rawValue)')) END
      """)
    return Set(try rows.map { try CheckSubject(of: $0) })
  }

  private static func proofsWithWrongCount(_ connection: borrowing BlockingConnection) throws -> Set<CheckSubject> {
    let rows = try connection.execute(
      """
      SELECT c.subject_kind, c.subject_id FROM night_audit.receipt_checks c
      LEFT JOIN (SELECT DISTINCT subject_kind, subject_id FROM night_audit.receipt_transactions) l
        USING (subject_kind, subject_id)
      WHERE (c.brought_count > 0) <> (l.subject_id IS NOT NULL)
      """)
    return Set(try rows.map { try CheckSubject(of: $0) })
  }

  private static func count(_ subjects: [CheckSubject], on connection: borrowing BlockingConnection) throws {
    try connection.execute(
      """
      UPDATE night_audit.receipt_checks c SET brought_count = (
        SELECT count(*) FROM night_audit.receipt_transactions l
        WHERE l.subject_kind = c.subject_kind AND l.subject_id = c.subject_id)
      WHERE \(CheckQueue.isListed("$1", "$2"))
      """, subjects.parameters)
  }
}

extension CheckHistory {
  /// Takes the shop's date, and replaces times that no run can have written and that would put off the next question.
  /// A run writes the time of the next night at the latest.
  fileprivate mutating func correctDates(shop date: Instant?, newest: Instant) {
    if let date { dated = max(dated, date) }
    knownSince = min(knownSince, newest)
    if let since = criticalSince, since > newest + .days(1) { criticalSince = newest }
  }
}
