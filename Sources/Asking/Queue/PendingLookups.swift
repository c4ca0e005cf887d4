import AuditStore
import Postgres
import Reconciliation

/// Decides which orders wait for a look-up of their stated transaction ID (`night_audit.lookups`). An order waits if
/// none of its receipts proves the ID: there is none, none can be read, or none contains it. A receipt that lists only
/// a renewal does not prove the original purchase. Answers about the other entries of a signed list do not change what
/// it contains. Several orders may wait for one question, which is an app and an ID.
struct PendingLookups: Sendable {
  struct Candidate: Sendable {
    var orderId: Identifier
    var bundleId: String
    var transactionId: String
    /// When the order was made, or its receipt came.
    var dated: Instant
    var isUrgent: Bool
    /// A receipt whose verified answer contains the ID.
    var provenBy: Identifier?

    var question: CheckSubject { .lookup(transactionId, of: bundleId) }
  }

  let table: CheckTable
  let bundleIds: [String]
  let asOf: Instant

  /// Finds proven candidates that must still be decided: the order waits, or the receipt has moved. The rows are
  /// available after the next statement.
  func doubtful(_ candidates: [Candidate], on connection: borrowing BlockingConnection) throws -> PostponedRows? {
    let proven = candidates.enumerated().filter { $0.element.provenBy != nil }
    if proven.isEmpty { return nil }
    return try connection.postpone(
      """
      SELECT w.place FROM unnest($1::int[], $2::text[], $3::text[]) AS w (place, order_id, receipt_id)
      CROSS JOIN LATERAL (
        SELECT count(*) > 0 AS is_waiting FROM night_audit.lookups l WHERE l.order_id = w.order_id) l
      CROSS JOIN LATERAL (
        SELECT count(*) > 0 AS is_proven FROM night_audit.receipt_checks c
        WHERE c.subject_kind = 'receipt' AND c.subject_id = w.receipt_id AND c.order_id = w.order_id AND c.is_wanted) c
      WHERE l.is_waiting OR NOT c.is_proven
      """,
      [
        .intArray(proven.map { Int64($0.offset) }), .textArray(proven.map(\.element.orderId.text)),
        .textArray(proven.map { $0.element.provenBy?.text }),
      ])
  }

  static func open(_ candidates: [Candidate], _ doubtful: PostponedRows?) throws -> [Candidate] {
    guard let doubtful else { return candidates }
    let places = Set(try doubtful.get().map { Int(try $0.int64(0)) })
    return candidates.enumerated().filter { $0.element.provenBy == nil || places.contains($0.offset) }.map(\.element)
  }

  /// Decides again which orders wait. Returns the number of questions that are new or wanted again.
  @discardableResult
  func decide(_ all: [Candidate], on connection: borrowing BlockingConnection) throws -> Int {
    var seen: Set<Identifier> = []
    let candidates = all.filter { bundleIds.contains($0.bundleId) && seen.insert($0.orderId).inserted }
    if candidates.isEmpty { return 0 }
    // Aggregates, because the server may turn EXISTS into a hash of all receipts, made anew for each batch.
    let rows = try connection.execute(
      """
      SELECT w.position, s.is_proven, s.is_open
      FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS w (order_id, transaction_id, position)
      CROSS JOIN LATERAL (
        SELECT coalesce(bool_or(l.is_contained AND c.outcome = 'verified'), false) AS is_proven,
          coalesce(bool_or(c.outcome IN ('pending', 'unanswered') AND (c.brought_count = 0 OR l.is_contained)), false)
            AS is_open
        FROM night_audit.receipt_checks c CROSS JOIN LATERAL (
          SELECT count(*) > 0 AS is_contained FROM night_audit.receipt_transactions l
          WHERE l.subject_kind = c.subject_kind AND l.subject_id = c.subject_id
            AND l.transaction_id = w.transaction_id) l
        WHERE c.order_id = w.order_id AND c.subject_kind = 'receipt' AND c.is_wanted
          AND c.outcome IN ('verified', 'pending', 'unanswered')) s
      """, [.textArray(candidates.map(\.orderId.text)), .textArray(candidates.map(\.transactionId))])
    var waiting: [Candidate] = []
    var questions: [(orderId: Identifier, question: CheckSubject?)] = []
    for row in rows {
      let candidate = candidates[Int(try row.int64(0)) - 1]
      // An unanswered receipt may still prove the ID, unless its signed list is known.
      let isDone = try row.bool(1) || row.bool(2)
      if !isDone { waiting.append(candidate) }
      questions.append((candidate.orderId, isDone ? nil : candidate.question))
    }
    try release(questions, on: connection)
    return try want(waiting, on: connection)
  }

  func reconsider(_ orderIds: [Identifier], on connection: borrowing BlockingConnection) throws {
    if orderIds.isEmpty { return }
    let rows = try connection.execute(
      "SELECT l.order_id, l.subject_id FROM night_audit.lookups l WHERE l.order_id = ANY ($1)",
      [.textArray(orderIds.map(\.text))])
    var candidates: [Candidate] = []
    for row in rows {
      let lookedUp = CheckSubject(kind: .lookup, id: Identifier(try row.text(1))).lookedUp
      candidates.append(
        Candidate(
          orderId: Identifier(try row.text(0)), bundleId: lookedUp.bundleId, transactionId: lookedUp.transactionId,
          dated: asOf, isUrgent: false))
    }
    try decide(candidates, on: connection)
  }

  /// Removes waiting orders whose question is not among the given ones. Two rows with one order ID keep both questions.
  func release(
    _ questions: [(orderId: Identifier, question: CheckSubject?)], on connection: borrowing BlockingConnection
  ) throws {
    if questions.isEmpty { return }
    let freed = try connection.execute(
      """
      DELETE FROM night_audit.lookups l
      WHERE l.order_id = ANY ($1) AND NOT EXISTS (
        SELECT FROM unnest($1::text[], $2::text[]) AS now (order_id, subject_id)
        WHERE now.order_id = l.order_id AND now.subject_id = l.subject_id)
      RETURNING l.subject_id
      """, [.textArray(questions.map(\.orderId.text)), .textArray(questions.map { $0.question?.id.text })]
    ).map { Identifier(try $0.text(0)) }
    try abandon(Set(freed), on: connection)
  }

  private func abandon(_ subjectIds: Set<Identifier>, on connection: borrowing BlockingConnection) throws {
    if subjectIds.isEmpty { return }
    try table.change(
      where:
        "c.subject_kind = 'lookup' AND c.subject_id = ANY ($1) AND NOT EXISTS (SELECT 1 FROM night_audit.lookups l WHERE l.subject_id = c.subject_id)",
      [.textArray(subjectIds.sorted().map(\.text))], isWithinTransaction: true, on: connection
    ) { row in
      row.history.isWanted = false
      return true
    }
  }

  private func want(_ candidates: [Candidate], on connection: borrowing BlockingConnection) throws -> Int {
    if candidates.isEmpty { return 0 }
    let ids = candidates.map(\.question.id)
    let changed = try connection.execute(
      """
      INSERT INTO night_audit.lookups AS l (order_id, subject_id)
      SELECT * FROM unnest($1::text[], $2::text[])
      ON CONFLICT (order_id) DO UPDATE SET subject_id = excluded.subject_id WHERE l.subject_id <> excluded.subject_id
      RETURNING order_id
      """, [.textArray(candidates.map(\.orderId.text)), .textArray(ids.map(\.text))]
    ).map { Identifier(try $0.text(0)) }
    let isNew = Set(changed)
    var questions: [Identifier: (dated: Instant, isUrgent: Bool, orderId: Identifier)] = [:]
    for (candidate, id) in zip(candidates, ids) where isNew.contains(candidate.orderId) {
      let other = questions[id]
      questions[id] = (
        max(candidate.dated, other?.dated ?? candidate.dated), candidate.isUrgent || other?.isUrgent ?? false,
        min(candidate.orderId, other?.orderId ?? candidate.orderId)
      )
    }
    if questions.isEmpty { return 0 }
    var known: Set<Identifier> = []
    var count = try table.change(
      where: "c.subject_kind = 'lookup' AND c.subject_id = ANY ($1)",
      [.textArray(questions.keys.sorted().map(\.text))], isWithinTransaction: true, on: connection
    ) { row in
      let id = row.subject.id
      known.insert(id)
      guard let question = questions[id] else { return false }
      row.history.dated = max(row.history.dated, question.dated)
      row.history.isUrgent = row.history.isUrgent || question.isUrgent
      row.history.isWanted = true
      // A newer order may state an ID that Apple did not know for an older one.
      if row.history.outcome == .notFound { row.history.renew(asOf: asOf) }
      return true
    }
    let new = questions.filter { !known.contains($0.key) }.sorted { $0.key < $1.key }.map { id, question -> CheckRow in
      var history = CheckHistory(dated: question.dated, knownSince: asOf)
      history.isUrgent = question.isUrgent
      var row = CheckRow(subject: CheckSubject(kind: .lookup, id: id), history: history)
      row.orderId = question.orderId
      return row
    }
    count += try table.insert(new, on: connection)
    return count
  }
}
