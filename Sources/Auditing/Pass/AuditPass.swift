import AuditStore
import Postgres
import Reconciliation
import Run
import SalesStore
import Streams

/// The passes over one part. Each relation is one ordered stream of its own store, merge-joined in this process.
///
/// 1. Receipts with checks and transactions, by receipt ID.
/// 2. Orders with those, by order ID; their references to transactions go on by transaction ID.
/// 3. Transactions with those: one with a single possible owner goes back to it, others are contested. Transactions of
///    one purchase, such as restores, are grouped first.
/// 4. Contested claims are matched, batch by batch.
/// 5. Orders with deliveries, transactions and claims, by order ID: each is judged, written and dropped.
///
/// Memory grows with users, discrepancies and contested IDs, not with orders. `AuditStages` combines the parts.
struct AuditPass {
  let plan: AuditPlan
  let sales: SalesRows
  let rows: any AuditRows
  let collector: AuditCollector
  let temporaryDirectory: String
  let stop: StopSignal
  let progress: WorkProgress
  /// Fingerprints of purchases that more than one transaction is of, and of subscriptions with a refunded renewal, in
  /// whatever part. An equal fingerprint of another purchase costs it a detour, and changes nothing.
  var sharedPurchases: Set<UInt64> = []

  func endIfStopped() throws { try stop.check() }
}

extension SalesTotals {
  func control(against counted: SalesTotals, of name: String = "orders in the database") -> [ControlTotal] {
    [ControlTotal(name: "\(name) = orders read", left: String(counted.orders), right: String(orders))]
      + counted.differences(from: self).map {
        ControlTotal(name: "orders of a currency", left: $0, right: "the same")
      }
  }
}
