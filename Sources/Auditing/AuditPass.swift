import AuditStore
import Postgres
import Reconciliation
import Run
import SalesStore
import Streams

/// The reading of one part. Each relation comes once, as an ordered stream of its own store; what belongs together is
/// brought together in this process, and nothing that an earlier audit decided is read.
///
/// 1. Receipts, the state of their checks and the transactions that they brought, merged by receipt id; put aside by order.
/// 2. Orders with those, merged by order id; put aside as they are, and what they have to do with transactions by its id.
/// 3. Transactions with those, merged by transaction id: whoever could own one is known now. What one order alone could own
///    goes back to it by its id; what several could is contested. Transactions of one purchase, such as its restores, are
///    brought together by the purchase before that is decided.
/// 4. Orders that contest anything are matched, batch by batch.
/// 5. Orders with their deliveries, transactions and claims, merged by order id: each is judged, written and forgotten.
///
/// Memory grows with users, discrepancies and the ids of contests, not with orders. How parts go together is in `AuditStages`.
struct AuditPass {
  let plan: AuditPlan
  let sales: SalesRows
  let rows: any AuditRows
  let collector: AuditCollector
  let temporaryDirectory: String
  let stop: StopSignal
  let progress: WorkProgress
  /// Sales that more than one transaction is of, in whatever part.
  var sharedSales: Set<TransactionKey> = []

  /// The same, whose findings are for nobody.
  func rehearsal() throws -> AuditPass {
    AuditPass(
      plan: plan, sales: sales, rows: rows, collector: try AuditCollector(behind: collector),
      temporaryDirectory: temporaryDirectory, stop: stop, progress: progress, sharedSales: sharedSales)
  }

  func endIfStopped() throws {
    if let reason = stop.stopped { throw StopSignal.Stopped(reason: reason) }
  }
}

extension SalesTotals {
  /// The receiver is what was read.
  ///
  /// - Parameter name: of the orders that were counted.
  func control(against counted: SalesTotals, of name: String = "orders in the database") -> [ControlTotal] {
    [ControlTotal(name: "\(name) = orders read", left: String(counted.orders), right: String(orders))]
      + counted.differences(from: self).map {
        ControlTotal(name: "orders of a currency", left: $0, right: "the same")
      }
  }
}
