import AppStore
import Postgres
import Reconciliation

/// `night_audit.histories`: whose purchases are read as a whole, and where the last reading ended.
///
/// A payment that no order claims, or a second one for the same order, is seldom the only thing that went wrong for a
/// customer. Get Transaction History shows everything of theirs, refunds included, so that Get Refund History has nothing
/// to add.
package struct CustomerHistories: Sendable {
  /// How many customers a night reads at most: the rest has its turn in the nights after.
  package static let customersPerNight: Int64 = 50

  /// One customer, by a transaction of theirs.
  package struct Customer: Hashable, Sendable {
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

  /// Customers with an open finding whose history was never read to its end, or is stale by now; those who have waited
  /// longest come first.
  package func due(
    asOf: Instant, staleAfter: Span, _ connection: borrowing BlockingConnection
  ) throws(PostgresError) -> [Customer] {
    let rows = try connection.execute(
      """
      SELECT asked.id, h.revision FROM (
        SELECT coalesce(t.original_transaction_id, t.transaction_id) AS id, min(f.first_seen) AS first_seen
        FROM night_audit.findings f
        JOIN night_audit.transactions t ON t.transaction_id = f.transaction_id AND t.environment = f.environment
        WHERE f.closed_at IS NULL AND f.kind IN ('orphan_payment', 'charged_twice')
          AND t.environment = $1 AND t.bundle_id = $2
        GROUP BY 1) asked
      LEFT JOIN night_audit.histories h
        ON h.bundle_id = $2 AND h.environment = $1 AND h.transaction_id = asked.id
      WHERE h.read_at IS NULL OR h.reason IS NOT NULL OR h.read_at <= $3
      ORDER BY h.last_attempt NULLS FIRST, asked.first_seen, asked.id LIMIT $4
      """,
      [
        .text(SweepTable.environment.rawValue), .text(bundleId), .timestamp((asOf - staleAfter).microseconds),
        .int(Self.customersPerNight),
      ])
    return try rows.map { row throws(PostgresError) in
      Customer(transactionId: try row.text(0), revision: try row.optionalText(1))
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
