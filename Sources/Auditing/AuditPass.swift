import AuditStore
import Postgres
import Reconciliation
import Run
import SalesStore
import Streams

/// One reading of everything. Each relation comes once, as an ordered stream of its own store; what belongs together is
/// brought together in this process, and nothing that an earlier audit decided is read.
///
/// 1. Receipts, the state of their checks and the transactions that they brought, merged by receipt id; put aside by order.
/// 2. Orders with those, merged by order id; put aside as they are, and what they have to do with transactions by its id.
/// 3. Transactions with those, merged by transaction id: whoever could own one is known now. What one order alone could own
///    goes back to it by its id; what several could is contested.
/// 4. Orders that contest anything are matched, batch by batch.
/// 5. Orders with their deliveries, transactions and claims, merged by order id: each is judged, written and forgotten.
///
/// Memory grows with users, discrepancies and the ids of contests, not with orders.
struct AuditPass {
  let plan: AuditPlan
  let sales: SalesRows
  let collector: AuditCollector
  let temporaryDirectory: String
  let contestBatchSize: Int
  let stop: StopSignal
  let progress: WorkProgress

  /// Reads and judges everything.
  func run(_ connections: borrowing AuditConnections) throws {
    let proofs = try readReceipts(connections)
    let reading = try readOrders(connections, proofs: proofs)
    // Counted by the server in the same snapshot: a view that hides rows from the stream alone is found out.
    collector.control = reading.totals.control(against: try SalesTotals(sales, on: connections.sales))
    let contests = try Contests(directory: temporaryDirectory)
    let byOrder = sorter()
    let tokens = TokenQuestions(directory: temporaryDirectory, people: plan.rules.people)
    try readTransactions(connections, reading.mentions, into: byOrder, contests, tokens)
    try tokens.answer(from: reading.groups, into: byOrder)
    let matched = try match(contests, reading.groups, byOrder, open: reading.open)
    try judge(reading.groups, byOrder, matched, connections, open: reading.open)
  }

  /// A sorter for as many records as there are orders.
  func sorter() -> SpillSorter { SpillSorter(directory: temporaryDirectory, budget: 8 << 20) }

  func endIfStopped() throws {
    if let reason = stop.stopped { throw StopSignal.Stopped(reason: reason) }
  }
}

extension SalesTotals {
  /// The receiver is what was read.
  func control(against counted: SalesTotals) -> [ControlTotal] {
    [ControlTotal(name: "orders in the database = orders read", left: String(counted.orders), right: String(orders))]
      + counted.differences(from: self).map {
        ControlTotal(name: "orders of a currency", left: $0, right: "the same")
      }
  }
}

/// The connections of an audit: each store is read in one snapshot.
struct AuditConnections: ~Copyable {
  /// To the shop's relations, which are only ever read.
  let sales: BlockingConnection
  /// To our own schema.
  let own: BlockingConnection
  /// A second one, in the snapshot of the first.
  let ownBeside: BlockingConnection
}
