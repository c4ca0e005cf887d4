import Postgres
import Reconciliation
import Reporting
import Streams

/// A finding as nights and people left it.
package struct StoredFinding: Sendable {
  package struct Event: Sendable {
    /// The as-of of the night, or the time of the decision.
    package var at: Instant
    /// Of a night: `opened`, `reopened`, `closed`, `kept_open` (closed by an earlier run of the night), `returned` (an
    /// acceptance ended). `forgotten`: a run was undone. Of a person: `status`, `owner`, `remark`, `due`, `acceptance`.
    package var event: String
    package var actor: String?
    /// The new value; nil: cleared.
    package var detail: String?
  }

  package var reported: ReportedFinding
  /// The as-of of the newest night that met it.
  package var lastSeen: Instant
  /// The as-of of the first night that no longer met it.
  package var closedAt: Instant?
  package var history: [Event] = []

  /// SQL for the last night that met a finding `f`. An open one was met by the newest run in `findings_met`.
  package static let lastSeen = """
    CASE WHEN f.closed_at IS NULL
      THEN greatest(f.last_seen, (SELECT max(m.as_of) FROM night_audit.findings_met m)) ELSE f.last_seen END AS last_seen
    """

  package static let columns = """
    f.finding_id, f.kind, f.subject_kind, f.subject, f.reason, f.order_id, f.user_id, f.product_id, f.bundle_id,
    f.transaction_id, f.receipt_id, f.delivery_id, f.environment, f.currency, f.amount, f.at_stake, f.paid_at,
    f.delivered_at, f.first_seen,
    \(lastSeen), f.closed_at, f.status, f.owner, f.remark, f.occurred_at, f.at_stake_unknown, f.due::text AS due,
    f.severity, f.action, f.subscription_expires_at
    """

  /// nil for a kind of finding or subject that this version does not know.
  package init?(_ row: PostgresRow) throws(PostgresError) {
    guard let kind = FindingKind(rawValue: try row.text("kind")),
      let subjectKind = Subject.Kind(rawValue: try row.text("subject_kind"))
    else { return nil }
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
    (finding.orderId, finding.userId) = (try row.optionalId("order_id"), try row.optionalId("user_id"))
    (finding.productId, finding.bundleId) = (try row.optionalId("product_id"), try row.optionalText("bundle_id"))
    finding.transactionId = try row.optionalId("transaction_id")
    (finding.receiptId, finding.deliveryId) = (try row.optionalId("receipt_id"), try row.optionalId("delivery_id"))
    finding.environment = try row.optionalText("environment").flatMap { AppleEnvironment(rawValue: $0) }
    (finding.amount, finding.atStake) = (try money("amount"), try money("at_stake"))
    finding.paidAt = try row.optionalInstant("paid_at")
    finding.deliveredAt = try row.optionalInstant("delivered_at")
    finding.occurredAt = try row.optionalInstant("occurred_at")
    finding.isAmountAtRiskUnknown = try row.bool("at_stake_unknown")
    finding.action = FindingAction(rawValue: try row.text("action")) ?? .look
    finding.subscriptionExpiresDate = try row.optionalInstant("subscription_expires_at")
    reported = ReportedFinding(
      finding, firstSeen: try row.instant("first_seen"), status: try row.text("status"),
      owner: try row.optionalText("owner"), remark: try row.optionalText("remark"), due: try row.optionalText("due"))
    reported.findingId = try row.text("finding_id")
    lastSeen = try row.instant("last_seen")
    closedAt = try row.optionalInstant("closed_at")
  }
}

/// A destination for findings, such as a printed table.
package protocol FindingsOutput: SendableMetatype, ~Copyable {
  associatedtype Result: Sendable

  static var requestsHistory: Bool { get }

  mutating func add(_ finding: StoredFinding) throws

  mutating func finish() throws -> Result
}
