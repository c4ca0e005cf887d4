import AuditStore
import Foundation
import Postgres
import Reconciliation
import Reporting
import Run

/// Gathers what is different from the night that tonight is compared with.
///
/// Memory grows with what changed. Used by one thread at a time; not `Sendable`.
final class NightChanges {
  /// nil: nothing to compare with, and so nothing has changed.
  let base: BaseNight?
  private var rows: [ChangeRow] = []
  /// Findings that are gone; why is looked for at the end.
  private var closed: [ChangeRow] = []

  init(base: BaseNight?) { self.base = base }

  /// Notes a change; what has closed waits for its reason.
  func add(_ row: ChangeRow) {
    guard base != nil else { return }
    if row.change == .closed { closed.append(row) } else { rows.append(row) }
  }

  /// Orders of findings that have closed.
  var closedOrders: Set<Identifier> { Set(closed.compactMap(\.orderId)) }

  /// Beyond so many, what arrived about each is not looked for.
  private static let explained = 2_000

  /// Says why findings have closed.
  ///
  /// - Parameter standing: the orders of `closedOrders` that are audited, as tonight has them.
  func explainClosed(
    _ standing: [Identifier: OrderNights.Standing], plan: AuditPlan, on connection: borrowing BlockingConnection
  ) throws {
    guard let base, !closed.isEmpty else { return }
    closed.sort { $0.urgency.lexicographicallyPrecedes($1.urgency) }
    let ids = closed.prefix(Self.explained).compactMap(\.findingId)
    let reasons = try ChangeReasons(
      findingIds: ids, condition: "(e.as_of > $1 AND e.as_of <= $2 AND $3::uuid IS NULL)",
      parameters: [.timestamp(base.asOf.microseconds), .timestamp(plan.asOf.microseconds), .text(nil)], sales: nil,
      on: connection)
    for var row in closed {
      row.because = because(
        row, row.orderId.flatMap { standing[$0] }, row.findingId.map { reasons[$0] } ?? [], plan: plan)
      rows.append(row)
    }
    closed = []
  }

  private func because(
    _ row: ChangeRow, _ order: OrderNights.Standing?, _ reasons: [String], plan: AuditPlan
  ) -> String {
    var parts: [String] = []
    if let order {
      parts.append("the order is \(order.disposition.rawValue.replacing("_", with: " ")) now: \(order.because)")
    } else if row.orderId != nil {
      parts.append(
        "the order is not audited any more: it is older than the lookback of \((plan.asOf - plan.rules.lookbackStart).words), "
          + "or gone from the shop's tables")
    } else {
      parts.append("what it stood on is no longer so, or older than the lookback")
    }
    parts += reasons.suffix(3)
    return parts.joined(separator: "; ")
  }

  /// Writes all of them, each way in its order.
  func write(to collector: AuditCollector) throws -> ChangesSummary {
    var summary = ChangesSummary(since: base?.asOf)
    for row in rows.sorted(by: { $0.sortingKey.lexicographicallyPrecedes($1.sortingKey) }) {
      try collector.write(change: row)
    }
    for row in rows.sorted(by: { $0.urgency.lexicographicallyPrecedes($1.urgency) }) {
      try collector.writeToSheet(change: row)
      summary.add(row)
    }
    return summary
  }
}
