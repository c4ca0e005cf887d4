import Postgres
import Reconciliation
import Reporting

/// A finding as the nights and the people left it.
package struct StoredFinding: Sendable {
  /// One thing that happened to a finding.
  package struct Event: Sendable {
    /// As-of of the night, or when a person did it.
    package var at: Instant
    /// `opened`, `reopened`, `closed` by a night; `kept_open` by the same night made again, where it had closed it first;
    /// `forgotten` where what a run did was taken back; `status`, `owner`, `remark`, `due` by a person.
    package var event: String
    /// The person; nil: a night.
    package var actor: String?
    /// What was set; nil: cleared.
    package var detail: String?
  }

  package var reported: ReportedFinding
  /// As-of of the newest night that met it.
  package var lastSeen: Instant
  /// As-of of the night that did not meet it any more.
  package var closedAt: Instant?
  package var history: [Event] = []

  /// When a finding aliased `f` was met last: what is open, by the newest run that said what is.
  package static let lastSeen = """
    CASE WHEN f.closed_at IS NULL
      THEN greatest(f.last_seen, (SELECT max(m.as_of) FROM night_audit.findings_met m)) ELSE f.last_seen END AS last_seen
    """

  package static let columns = """
    f.finding_id, f.kind, f.subject_kind, f.subject, f.reason, f.order_id, f.user_id, f.product_id, f.bundle_id,
    f.transaction_id, f.receipt_id, f.delivery_id, f.environment, f.currency, f.amount, f.at_stake, f.paid_at,
    f.delivered_at, f.first_seen,
    \(lastSeen), f.closed_at, f.status, f.owner, f.remark, f.occurred_at, f.at_stake_unknown, f.due::text AS due,
    f.severity
    """

  /// From a row of `columns`; nil for a kind, of finding or of subject, that this program does not know.
  package init?(_ row: PostgresRow) throws(PostgresError) {
    guard let kind = FindingKind(rawValue: try row.text("kind")),
      let subjectKind = Subject.Kind(rawValue: try row.text("subject_kind"))
    else { return nil }
    func id(_ column: String) throws(PostgresError) -> Identifier? {
      try row.optionalText(column).map { Identifier($0) }
    }
    func instant(_ column: String) throws(PostgresError) -> Instant? {
      try row.optionalTimestamp(column).map { Instant(microseconds: $0) }
    }
    let currency = try row.optionalText("currency").flatMap { Currency(code: $0) }
    func money(_ column: String) throws(PostgresError) -> Money? {
      guard let currency, let amount = try row.optionalNumeric(column),
        let minorUnits = try? amount.scaledInt64(decimals: Int(currency.digits))
      else { return nil }
      return Money(minorUnits: minorUnits, currency: currency)
    }
    let subject = Subject(subjectKind, Identifier(try row.text("subject")))
    var finding = Finding(kind: kind, subject: subject, reason: Reason(try row.text("reason")))
    finding.severity = Severity(rawValue: try row.text("severity")) ?? finding.severity
    finding.orderId = try id("order_id")
    finding.userId = try id("user_id")
    finding.productId = try id("product_id")
    finding.bundleId = try row.optionalText("bundle_id")
    finding.transactionId = try id("transaction_id")
    finding.receiptId = try id("receipt_id")
    finding.deliveryId = try id("delivery_id")
    finding.environment = try row.optionalText("environment").flatMap { AppleEnvironment(rawValue: $0) }
    finding.amount = try money("amount")
    finding.atStake = try money("at_stake")
    finding.paidAt = try instant("paid_at")
    finding.deliveredAt = try instant("delivered_at")
    finding.occurredAt = try instant("occurred_at")
    finding.isStakeUnknown = try row.bool("at_stake_unknown")
    reported = ReportedFinding(
      finding, firstSeen: Instant(microseconds: try row.timestamp("first_seen")), status: try row.text("status"),
      owner: try row.optionalText("owner"), remark: try row.optionalText("remark"),
      due: try row.optionalText("due"))
    reported.findingId = try row.text("finding_id")
    lastSeen = Instant(microseconds: try row.timestamp("last_seen"))
    closedAt = try instant("closed_at")
  }
}

/// Gets findings one after the other, such as a table that is printed.
package protocol FindingsOutput: SendableMetatype, ~Copyable {
  associatedtype Result: Sendable

  /// Whether findings come with their history.
  static var wantsHistory: Bool { get }

  mutating func add(_ finding: StoredFinding) throws

  /// Ends the output after the last finding.
  mutating func finish() throws -> Result
}
