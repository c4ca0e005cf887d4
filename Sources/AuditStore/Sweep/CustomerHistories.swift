import AppStore
import Postgres
import Reconciliation

/// The table `histories`: customers whose whole history is read, and how far it was read.
/// Wanted for unclaimed or double payments, for upgrades without a known successor, and for a sample: one error is
/// seldom a customer's only one. Get Transaction History includes refunds. Earlier decisions play no part.
package struct CustomerHistories: Sendable {
  private static let customersToASample = 256
  private static let largestSample = 50

  package struct Customer: Hashable, Sendable {
    package var bundleId: String
    package var transactionId: String
    package var revision: String?
  }

  package enum Outcome: Hashable, Sendable {
    /// All is known, or there is nothing.
    case read
    case more
    case short(SweepShortfall)
  }

  package static func outcome(of answer: HistoryAnswer, after revision: String?) -> Outcome {
    switch answer.end {
    case .complete: answer.refused == 0 ? .read : .short(.notBelieved)
    // An unchanged revision would return the same page forever, because nothing on it is believed.
    case .pageLimit: answer.revision == revision ? .short(.notBelieved) : .more
    case .notFound, .malformedId, .accountGone: .read
    case .unanswered(let silence): .short(SweepShortfall(silence))
    case .fault: .short(.refused)
    }
  }

  package let bundleId: String

  package init(bundleId: String) { self.bundleId = bundleId }

  /// SQL for the transaction ID that identifies a customer, on `transactions` aliased `t`.
  private static let customer = "coalesce(t.original_transaction_id, t.transaction_id)"
  /// SQL: a history `h` is due in the night of as-of `$3`; answers before `$4` are stale.
  private static let isDue = """
    (h.last_attempt <= $3 AND (h.read_at IS NULL OR h.reason IS NOT NULL OR h.read_at <= $4))
    """

  /// The customers of some transactions whose histories are due in this night.
  package static func wanted(
    of transactionIds: Set<Identifier>, bundleIds: [String], asOf: Instant, staleAfter: Span,
    on connection: borrowing BlockingConnection
  ) throws(PostgresError) -> Set<Customer> {
    if transactionIds.isEmpty || bundleIds.isEmpty { return [] }
    let rows = try connection.execute(
      """
      SELECT DISTINCT t.bundle_id, \(customer) FROM unnest($1::text[]) AS found (id)
      JOIN night_audit.transactions t ON t.transaction_id = found.id AND t.environment = $2
      LEFT JOIN night_audit.histories h
        ON h.bundle_id = t.bundle_id AND h.environment = $2 AND h.transaction_id = \(customer)
      WHERE t.bundle_id = ANY ($5) AND (h.transaction_id IS NULL OR \(isDue))
      """,
      [
        .textArray(transactionIds.map(\.text).sorted()), .text(SweepTable.environment.rawValue),
        .timestamp(asOf.microseconds), .timestamp((asOf - staleAfter).microseconds), .textArray(bundleIds),
      ])
    var customers: Set<Customer> = []
    for row in rows { customers.insert(Customer(bundleId: try row.text(0), transactionId: try row.text(1))) }
    return customers
  }

  /// Marks histories as wanted. Stored before any request, so that a killed run leaves the wish behind.
  package func want(
    _ transactionIds: [String], asOf: Instant, staleAfter: Span, on connection: borrowing BlockingConnection
  ) throws(PostgresError) {
    if transactionIds.isEmpty { return }
    try want(
      "SELECT unnest($5::text[])", [.textArray(transactionIds.sorted())], asOf: asOf, staleAfter: staleAfter,
      on: connection)
  }

  /// Marks customers with an upgrade without a known successor, and the sample. That depends only on customers and day.
  package func requestUpgradedAndSample(
    asOf: Instant, staleAfter: Span, on connection: borrowing BlockingConnection
  ) throws(PostgresError) {
    try want(
      """
      SELECT \(Self.customer) FROM night_audit.transactions t
      WHERE t.is_upgraded AND t.environment = $2 AND t.bundle_id = $1 AND NOT EXISTS (
        SELECT FROM night_audit.transactions s
        WHERE s.original_transaction_id = t.original_transaction_id AND s.environment = t.environment
          AND s.expires_at IS NOT NULL AND s.purchased_at > t.purchased_at)
      UNION
      SELECT * FROM (
        SELECT DISTINCT \(Self.customer) AS id FROM night_audit.transactions t
        WHERE t.environment = $2 AND t.bundle_id = $1
          AND hashtextextended(\(Self.customer), $5) % \(Self.customersToASample) = 0
        ORDER BY 1 LIMIT \(Self.largestSample)) AS sampled
      """, [.int(asOf.seconds / 86_400)], asOf: asOf, staleAfter: staleAfter, on: connection)
  }

  private func want(
    _ customers: String, _ parameters: [PostgresValue], asOf: Instant, staleAfter: Span,
    on connection: borrowing BlockingConnection
  ) throws(PostgresError) {
    try connection.execute(
      """
      INSERT INTO night_audit.histories AS h (bundle_id, environment, transaction_id, last_attempt, reason)
      SELECT DISTINCT $1, $2, asked.id, $3::timestamptz, '\(SweepShortfall.unfinished.rawValue)'
      FROM (\(customers)) AS asked (id)
      ON CONFLICT (bundle_id, environment, transaction_id) DO UPDATE
      SET last_attempt = excluded.last_attempt, reason = excluded.reason WHERE \(Self.isDue)
      """,
      [
        .text(bundleId), .text(SweepTable.environment.rawValue), .timestamp(asOf.microseconds),
        .timestamp((asOf - staleAfter).microseconds),
      ] + parameters)
  }

  /// Customers whose wanted histories are not read to the end, longest waiting first.
  package func pending(asOf: Instant, _ connection: borrowing BlockingConnection) throws(PostgresError) -> [Customer] {
    let rows = try connection.execute(
      """
      SELECT h.transaction_id, h.revision FROM night_audit.histories h
      WHERE h.bundle_id = $1 AND h.environment = $2 AND h.last_attempt = $3 AND h.reason IS NOT NULL
      ORDER BY h.unanswered_since NULLS FIRST, h.read_at NULLS FIRST, h.transaction_id
      """, [.text(bundleId), .text(SweepTable.environment.rawValue), .timestamp(asOf.microseconds)])
    return try rows.map { row throws(PostgresError) in
      Customer(bundleId: bundleId, transactionId: try row.text(0), revision: try row.optionalText(1))
    }
  }

  /// Stores the position of a reading, with its facts. `hasSkipped`: it skipped a transaction that is not believed.
  package func save(
    _ customer: Customer, asOf: Instant, _ outcome: Outcome, hasSkipped: Bool,
    on connection: borrowing BlockingConnection
  ) throws(PostgresError) {
    let (shortfall, isAnswered): (SweepShortfall?, Bool) =
      switch outcome {
      case .read: (nil, true)
      case .more: (.unfinished, true)
      case .short(let shortfall): (shortfall, false)
      }
    try connection.execute(
      """
      INSERT INTO night_audit.histories AS h
        (bundle_id, environment, transaction_id, revision, read_at, last_attempt, reason, passed_over_at, unanswered_since)
      VALUES ($1, $2, $3, $4, CASE WHEN $5 THEN $6::timestamptz END, $6, $7,
        CASE WHEN $8 THEN \(PublishedReport.noted("$6::timestamptz")) END, CASE WHEN NOT $9 THEN $6::timestamptz END)
      ON CONFLICT (bundle_id, environment, transaction_id) DO UPDATE SET
        revision = excluded.revision, read_at = greatest(h.read_at, excluded.read_at),
        last_attempt = excluded.last_attempt, reason = excluded.reason,
        unanswered_since = CASE WHEN NOT $5 THEN least(h.unanswered_since, excluded.unanswered_since) END,
        passed_over_at = coalesce(excluded.passed_over_at, h.passed_over_at)
      """,
      [
        .text(bundleId), .text(SweepTable.environment.rawValue), .text(customer.transactionId),
        .text(customer.revision), .bool(outcome == .read), .timestamp(asOf.microseconds), .text(shortfall?.rawValue),
        .bool(hasSkipped), .bool(isAnswered),
      ])
  }
}
