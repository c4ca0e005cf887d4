import AppStore
import Postgres
import Reconciliation

/// `night_audit.histories`: whose purchases are read as a whole, and where the last reading ended.
///
/// A payment that no order claims, or a second one for the same order, is seldom the only thing that went wrong for a
/// customer. Get Transaction History shows everything of theirs, refunds included, so that Get Refund History has nothing
/// to add. Histories are read in the night that wants them: of customers with such a payment, of customers with an upgraded
/// transaction whose successor is unknown, and of a sample of all customers. What an earlier night has decided plays no part.
package struct CustomerHistories: Sendable {
  /// One customer of so many is in the sample of a night.
  private static let customersToASample = 256
  /// How many customers of an app are in the sample at most.
  private static let largestSample = 50

  /// One customer, by a transaction of theirs.
  package struct Customer: Hashable, Sendable {
    package var bundleId: String
    package var transactionId: String
    /// Where the last reading ended; nil to read all.
    package var revision: String?
  }

  /// What a page of a history has come to.
  package enum Outcome: Hashable, Sendable {
    /// Everything is known, or there is nothing to know.
    case read
    /// More pages follow.
    case more
    case short(SweepShortfall)
  }

  /// - Parameter revision: where the page began.
  package static func outcome(of answer: HistoryAnswer, after revision: String?) -> Outcome {
    switch answer.end {
    case .complete: answer.refused == 0 ? .read : .short(.notBelieved)
    // The same page would come for ever: one of which nothing is believed holds the revision back.
    case .pageLimit: answer.revision == revision ? .short(.notBelieved) : .more
    case .notFound, .malformedId, .accountGone: .read
    case .unanswered(let silence): .short(SweepShortfall(silence))
    case .fault: .short(.refused)
    }
  }

  package let bundleId: String

  package init(bundleId: String) { self.bundleId = bundleId }

  /// The transaction by which a customer is asked for, of `night_audit.transactions` aliased `t`.
  private static let customer = "coalesce(t.original_transaction_id, t.transaction_id)"
  /// Whether a history aliased `h` is to be read in the night of the as-of `$3`, `$4` being when answers become stale.
  private static let isDue = """
    (h.last_attempt <= $3 AND (h.read_at IS NULL OR h.reason IS NOT NULL OR h.read_at <= $4))
    """

  /// The customers of some transactions whose histories are to be read in this night.
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

  /// Wants the histories of customers read in the night of an as-of. Stored before anything is asked: a kill leaves behind
  /// that they are wanting.
  package func want(
    _ transactionIds: [String], asOf: Instant, staleAfter: Span, on connection: borrowing BlockingConnection
  ) throws(PostgresError) {
    if transactionIds.isEmpty { return }
    try want(
      "SELECT unnest($5::text[])", [.textArray(transactionIds.sorted())], asOf: asOf, staleAfter: staleAfter,
      on: connection)
  }

  /// The same of customers with an upgraded transaction whose successor is unknown, and of a sample of all customers.
  ///
  /// The sample depends on the customers and the day alone.
  package func wantUpgradedAndSample(
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
          AND hashtextextended(\(Self.customer), $5) % \(Self.customersToASample) = 0) AS sampled
      ORDER BY 1 LIMIT \(Self.largestSample)
      """, [.int(asOf.seconds / 86_400)], asOf: asOf, staleAfter: staleAfter, on: connection)
  }

  /// - Parameter customers: a query of the transactions of customers, its parameters from `$5` on.
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

  /// The customers whose histories are wanted in the night of an as-of and not read to their ends; those who have waited
  /// longest come first.
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

  /// Stores where a reading has come to; part of the transaction that stores what it has brought.
  ///
  /// - Parameter hasPassedOver: whether it has moved on past what is not believed.
  package func save(
    _ customer: Customer, asOf: Instant, _ outcome: Outcome, hasPassedOver: Bool,
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
        .bool(hasPassedOver), .bool(isAnswered),
      ])
  }
}
