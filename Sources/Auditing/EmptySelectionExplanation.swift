import Foundation
import Postgres
import Reconciliation
import Run
import SalesStore

/// Why a report with filters lists no order.
package struct EmptySelectionExplanation {
  let selection: Selection
  let period: Period
  /// The days of the first and the last order that pass the filters, in any period; nil if none does.
  var days: (first: String, last: String)?

  /// nil if an order is listed, none was asked for, or the orders have no displayable date.
  package init?(
    _ plan: AuditPlan, _ sales: SalesRows, in zone: TimeZone, on shop: borrowing BlockingConnection
  ) throws(PostgresError) {
    selection = plan.selection
    period = plan.period
    if !selection.isNarrowing { return nil }
    let row = try shop.execute(
      """
      SELECT count(*), count(*) FILTER (WHERE o.created_at >= $1 AND o.created_at < $2),
        min(o.created_at) FILTER (WHERE o.created_at >= '1900-01-01Z' AND o.created_at < '9999-12-31Z'),
        max(o.created_at) FILTER (WHERE o.created_at >= '1900-01-01Z' AND o.created_at < '9999-12-31Z')
      FROM \(sales.schema).orders o
      WHERE \(try sales.isKnown("o.created_at")) AND \(try selection.orderCondition(onlyBundleId: plan.onlyBundleId))
      """,
      [.timestamp(period.start.microseconds), .timestamp(period.end.microseconds)]
    ).single()
    if try row.int64(1) > 0 { return nil }
    if try row.int64(0) == 0 { return }
    guard let first = try row.optionalTimestamp(2), let last = try row.optionalTimestamp(3) else { return nil }
    func day(_ instant: Int64) -> String { Period.dayText(of: Instant(microseconds: instant), in: zone) }
    days = (day(first), day(last))
  }

  init(_ selection: Selection, _ period: Period, days: (first: String, last: String)?) {
    self.selection = selection
    self.period = period
    self.days = days
  }

  private var filters: String {
    [
      selection.orderId.map { "--order \($0.text)" }, selection.userId.map { "--user \($0.text)" },
      selection.productId.map { "--product \($0.text)" }, selection.bundleId.map { "--app \($0)" },
    ].compactMap(\.self).joined(separator: " ")
  }

  /// A sentence if the shop has no order for the filters; nil if it has one, in any period.
  package var missing: String? { days == nil ? "the shop has no order for \(filters)" : nil }

  var words: String {
    guard let days else { return "no order is listed: the shop has none for \(filters)" }
    let (first, last) = days
    let listed = period.since == period.until ? period.until : "\(period.since) to \(period.until)"
    let found = first == last ? "of \(first)" : "from \(first) to \(last)"
    let option = first == last ? "--date \(first)" : "--since \(first) --until \(last)"
    let explained = selection.orderId.map { ", or run: night-audit explain \($0.text)" } ?? ""
    return "no order is listed: the orders for \(filters) are \(found), and the report covers \(listed); add \(option)"
      + explained
  }
}
