import Postgres
import Reconciliation

package struct FindingsFilter: Hashable, Sendable {
  package enum State: String, CaseIterable, Sendable {
    case open
    case closed
    case any
  }

  package var state = State.open
  package var kinds: [FindingKind] = []
  package var severities: [Severity] = []
  package var statuses: [FindingStatus] = []
  package var userId: String?
  package var orderId: String?
  package var owner: String?
  package var isUnassigned = false
  package var currency: Currency?
  /// Decimal text in major units of any currency.
  package var amount: String?
  package var minAmount: String?
  package var maxAmount: String?
  /// Time since the first report, as in the column `age_days`.
  package var minAge: Span?
  package var maxAge: Span?
  /// Time since the purchase, refund or delivery, as in the column `days_since`.
  package var minSince: Span?
  package var maxSince: Span?

  package init() {}

  /// The condition on `night_audit.findings f` and its parameters, from `$1` on. Ages end at `asOf`.
  package func condition(asOf: Instant) -> (sql: String, parameters: [PostgresValue]) {
    var terms: [String] = []
    var parameters: [PostgresValue] = []
    func add(_ term: (String) -> String, _ value: PostgresValue) {
      parameters.append(value)
      terms.append(term("$\(parameters.count)"))
    }
    switch state {
    case .open: terms.append("f.closed_at IS NULL")
    case .closed: terms.append("f.closed_at IS NOT NULL")
    case .any: break
    }
    if !kinds.isEmpty { add({ "f.kind = ANY (\($0))" }, .textArray(kinds.map(\.rawValue))) }
    if !severities.isEmpty { add({ "f.severity = ANY (\($0))" }, .textArray(severities.map(\.rawValue))) }
    if !statuses.isEmpty { add({ "f.status = ANY (\($0))" }, .textArray(statuses.map(\.rawValue))) }
    if let userId { add({ "f.user_id = \($0)" }, .text(userId)) }
    if let orderId { add({ "f.order_id = \($0)" }, .text(orderId)) }
    if let owner { add({ "f.owner = \($0)" }, .text(owner)) }
    if isUnassigned { terms.append("f.owner IS NULL") }
    if let currency { add({ "f.currency = \($0)" }, .text(currency.code)) }
    let amounts = [("=", amount), (">=", minAmount), ("<=", maxAmount)]
    for case (let comparison, let bound?) in amounts {
      add({ "coalesce(f.amount, f.at_stake) \(comparison) \($0)::numeric" }, .text(bound))
    }
    if let minAge { add({ "f.first_seen <= \($0)" }, .timestamp((asOf - minAge).microseconds)) }
    if let maxAge { add({ "f.first_seen >= \($0)" }, .timestamp((asOf - maxAge).microseconds)) }
    if let minSince { add({ "f.occurred_at <= \($0)" }, .timestamp((asOf - minSince).microseconds)) }
    if let maxSince { add({ "f.occurred_at >= \($0)" }, .timestamp((asOf - maxSince).microseconds)) }
    return (terms.isEmpty ? "TRUE" : terms.joined(separator: " AND "), parameters)
  }

  package static func isAmount(_ text: String) -> Bool {
    let parts = text.split(separator: ".", omittingEmptySubsequences: false)
    return text.utf8.count <= 30 && (1...2).contains(parts.count)
      && parts.allSatisfy { !$0.isEmpty && $0.utf8.allSatisfy { (48...57).contains($0) } }
  }
}
