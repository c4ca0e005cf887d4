import AuditStore
import Postgres
import Reconciliation
import Streams

/// Writes `night_audit.receipt_checks`. Each change stores the due date that follows from it.
package struct CheckTable: Sendable {
  package let policy: Dueness.Policy

  private static let page: Int64 = 5_000

  /// Stores checks with their due dates. A row that a run of the same or a later as-of has asked about since it was
  /// read stays as it is, because this worker has lost its lease.
  package func save(_ rows: [CheckRow], on connection: borrowing BlockingConnection) throws(PostgresError) {
    if rows.isEmpty { return }
    let due = rows.map { Dueness(of: $0.history, policy: policy) }
    func instants(_ value: (CheckHistory) -> Instant?) -> PostgresValue {
      .timestampArray(rows.map { value($0.history)?.microseconds })
    }
    func texts(_ value: (CheckRow) -> String?) -> PostgresValue { .textArray(rows.map(value)) }
    try connection.postpone(
      """
      UPDATE night_audit.receipt_checks c SET
        received_at = now.received_at, known_since = now.known_since, is_urgent = now.is_urgent, is_wanted = now.is_wanted,
        outcome = now.outcome, reason = now.reason, attempts = now.attempts, last_attempt = now.last_attempt,
        answered_at = now.answered_at, outcome_since = now.outcome_since, unanswered_since = now.unanswered_since,
        critical_since = now.critical_since, app = now.app, fingerprint = now.fingerprint, refusal = now.refusal,
        deferred_outcome = now.deferred_outcome, deferred_reason = now.deferred_reason, due_from = now.due_from,
        due_until = now.due_until, due_rank = coalesce(now.due_rank, c.due_rank), gone_at = now.gone_at,
        accused_since = now.accused_since
      FROM unnest($1::text[], $2::text[], $3::timestamptz[], $4::timestamptz[], $5::boolean[], $6::boolean[], $7::text[],
        $8::text[], $9::int[], $10::timestamptz[], $11::timestamptz[], $12::timestamptz[], $13::timestamptz[],
        $14::timestamptz[], $15::text[], $16::text[], $17::text[], $18::text[], $19::text[], $20::timestamptz[],
        $21::timestamptz[], $22::int[], $23::timestamptz[], $24::timestamptz[], $25::timestamptz[])
        AS now (subject_kind, subject_id, received_at, known_since, is_urgent, is_wanted, outcome, reason, attempts,
          last_attempt, answered_at, outcome_since, unanswered_since, critical_since, app, fingerprint, refusal,
          deferred_outcome, deferred_reason, due_from, due_until, due_rank, gone_at, accused_since, attempt_when_read)
      WHERE c.subject_kind = now.subject_kind AND c.subject_id = now.subject_id
        AND (c.last_attempt IS NULL OR c.last_attempt = now.attempt_when_read OR c.last_attempt < now.last_attempt)
      """,
      [
        texts(\.subject.kind.rawValue), texts(\.subject.id.text), instants(\.dated), instants(\.knownSince),
        .boolArray(rows.map(\.history.isUrgent)), .boolArray(rows.map(\.history.isWanted)),
        texts(\.history.outcome.rawValue), texts(\.history.reason?.rawValue),
        .intArray(rows.map { Int64($0.history.attempts) }), instants(\.lastAttempt), instants(\.answeredAt),
        instants(\.outcomeSince), instants(\.unansweredSince), instants(\.criticalSince), texts(\.app),
        texts(\.fingerprint), texts(\.storedRefusal?.refusal.rawValue), texts(\.storedRefusal?.outcome.rawValue),
        texts(\.storedRefusal?.reason?.rawValue), .timestampArray(due.map { $0?.from.microseconds }),
        .timestampArray(due.map { $0?.until?.microseconds }), .intArray(due.map { $0.map { Int64($0.rank.rawValue) } }),
        .timestampArray(rows.map { $0.missingSince?.microseconds }), instants(\.accusedSince),
        .timestampArray(rows.map { $0.attemptWhenRead?.microseconds }),
      ])
  }

  /// Adds new checks, and moves known receipts to their present order. Returns the number of both.
  /// A moved receipt keeps its order of the last complete night, until it is back or such a night has the new one.
  package func insert(_ rows: [CheckRow], on connection: borrowing BlockingConnection) throws(PostgresError) -> Int {
    if rows.isEmpty { return 0 }
    let due = rows.map { Dueness(of: $0.history, policy: policy) }
    return try connection.execute(
      """
      INSERT INTO night_audit.receipt_checks AS known (subject_kind, subject_id, order_id, received_at, known_since,
        is_urgent, reason, due_from, due_rank)
      SELECT DISTINCT ON (subject_kind, subject_id) subject_kind, subject_id, order_id, received_at, known_since, is_urgent,
        'never_checked', due_from, due_rank
      FROM unnest($1::text[], $2::text[], $3::text[], $4::timestamptz[], $5::timestamptz[], $6::boolean[],
        $7::timestamptz[], $8::int[])
        AS found (subject_kind, subject_id, order_id, received_at, known_since, is_urgent, due_from, due_rank)
      ORDER BY subject_kind, subject_id, order_id IS NULL, received_at, order_id
      ON CONFLICT (subject_kind, subject_id) DO UPDATE SET order_id = excluded.order_id,
          order_before = nullif(\(FormerOrder.inLastNight("known")), excluded.order_id),
          moved_since = excluded.known_since
        WHERE known.subject_kind = 'receipt' AND known.order_id IS DISTINCT FROM excluded.order_id
      """,
      [
        .textArray(rows.map(\.subject.kind.rawValue)), .textArray(rows.map(\.subject.id.text)),
        .textArray(rows.map { $0.orderId?.text }), .timestampArray(rows.map(\.history.dated.microseconds)),
        .timestampArray(rows.map(\.history.knownSince.microseconds)), .boolArray(rows.map(\.history.isUrgent)),
        .timestampArray(due.map { $0?.from.microseconds }), .intArray(due.map { Int64($0?.rank.rawValue ?? 0) }),
      ]
    ).affectedRows
  }

  /// Changes the checks that satisfy `condition` (aliased `c`), each page in its own transaction, or all in the caller's.
  /// `change` returns false if it has changed nothing. Returns the number of changed checks.
  @discardableResult
  package func change(
    where condition: String, _ parameters: [PostgresValue] = [], isWithinTransaction: Bool = false,
    on connection: borrowing BlockingConnection, _ change: (inout CheckRow) -> Bool
  ) throws -> Int {
    var (count, last): (Int, CheckSubject?) = (0, nil)
    func turn(_ connection: borrowing BlockingConnection) throws {
      count += try page(condition, parameters, after: &last, on: connection, change)
    }
    repeat {
      if isWithinTransaction { try turn(connection) } else { try connection.transaction { try turn($0) } }
    } while last != nil
    return count
  }

  @discardableResult
  func change(
    where condition: String, _ parameters: [PostgresValue] = [], in store: OpenSession,
    _ change: @Sendable (inout CheckRow) -> Bool
  ) async throws -> Int {
    try await store.withConnection { try self.change(where: condition, parameters, on: $0, change) }
  }

  @discardableResult
  func change(
    receipts ids: [Identifier], in store: OpenSession, _ change: @Sendable (inout CheckRow) -> Bool
  ) async throws -> Int {
    let isOne = "c.subject_kind = 'receipt' AND c.subject_id = ANY ($1)"
    return try await self.change(where: isOne, [.textArray(ids.map(\.text))], in: store, change)
  }

  private func page(
    _ condition: String, _ parameters: [PostgresValue], after last: inout CheckSubject?,
    on connection: borrowing BlockingConnection, _ change: (inout CheckRow) -> Bool
  ) throws(PostgresError) -> Int {
    let rows = try connection.execute(
      """
      SELECT \(CheckRow.columns) FROM night_audit.receipt_checks c
      WHERE (\(condition)) AND (c.subject_kind, c.subject_id) > ($\(parameters.count + 1), $\(parameters.count + 2))
      ORDER BY c.subject_kind, c.subject_id LIMIT \(Self.page) FOR UPDATE
      """, parameters + [.text(last?.kind.rawValue ?? ""), .text(last?.id.text ?? "")])
    var changed: [CheckRow] = []
    var newest: CheckSubject?
    for row in rows {
      var check = try CheckRow(row)
      newest = check.subject
      if change(&check) { changed.append(check) }
    }
    try save(changed, on: connection)
    last = rows.count < Int(Self.page) ? nil : newest
    return changed.count
  }
}

extension Sequence<CheckSubject> {
  /// The parameters of `CheckQueue.isListed`.
  var parameters: [PostgresValue] { [.textArray(map(\.kind.rawValue)), .textArray(map(\.id.text))] }
}
