import AuditStore
import Postgres
import Reconciliation
import Run
import SalesStore
import Streams

/// The stages of an audit over any number of parts. Records meet by key between stages, so cuts do not affect results.
struct AuditStages {
  /// One reader for each part. The first one collects the results of all.
  let readers: [AuditPass]
  let partition: AuditPartition
  let contestBatchSize: Int
  let temporaryDirectory: String
  var counted = "orders in the database"

  private var plan: AuditPlan { readers[0].plan }

  /// Reads and judges everything; the first reader collects the results. `counted` returns the server's totals in the
  /// same snapshot. They detect a view that hides rows only from the stream.
  func run(counted: () throws -> SalesTotals, repeated: () throws -> RepeatedDeliveries) throws {
    let proofs = exchange(from: partition.receipts, to: partition.orders)
    _ = try inParallel(partition.receipts.count) { try readers[$0].readReceipts(into: proofs.outlet($0)) }
    for reader in readers.dropFirst() { try readers[0].collector.joinReceipts(reader.collector) }
    let proofsByOrder = try proofs.gathered()

    let references = exchange(from: partition.orders, to: partition.transactions)
    let readings = try inParallel(partition.orders.count) {
      try readers[$0].readOrders(proofs: proofsByOrder[$0], into: references.outlet($0))
    }
    var (open, totals, openTokens) = (PeopleWithOpenReceipts(plan.rules), SalesTotals(), BloomFilter())
    for reading in readings {
      open.join(reading.open)
      totals.join(reading.totals)
      openTokens.formUnion(reading.openTokens)
    }
    readers[0].collector.control = totals.control(against: try counted(), of: self.counted)
    let referencesById = try references.gathered()

    let transactionsByOrder = exchange(from: partition.transactions, to: partition.orders)
    let findings = try inParallel(partition.transactions.count) {
      try readers[$0].readTransactions(
        referencesById[$0], openTokens: openTokens, into: transactionsByOrder.outlet($0))
    }
    let groups = readings.map(\.groups)
    let (contests, questions) = (findings[0].contests, findings[0].linkQuestions)
    for further in findings.dropFirst() {
      try contests.join(further.contests)
      try questions.join(further.linkQuestions)
    }
    try readers[0].answer(
      questions, among: questions.linkableOrders(in: groups), into: transactionsByOrder.outlet(0), contests)
    try readers[0].decide(contests, into: transactionsByOrder.outlet(0))
    let gatheredTransactions = try transactionsByOrder.gathered()
    func orders(of part: Int) throws -> GroupReading { try GroupReading(groups[part], gatheredTransactions[part]) }

    let marks = try repeated()
    let matched = try match(contests, repeated: marks, orders)
    var boughtTwice: [Identifier: Finding] = [:]
    if plan.rules.catalogue != nil || questions.hasSharedSubscriptions {
      let periods = exchange(from: partition.orders, to: .none)
      boughtTwice = try comparedPurchases(matched, open: open, orders, into: periods)
      let neighbors = exchange(from: .none, to: partition.orders)
      try readers[0].compareOwners(ofPeriods: try periods.gathered()[0], into: neighbors.outlet(0))
      for (part, neighbors) in try neighbors.gathered().enumerated() {
        gatheredTransactions[part].reopen()
        try gatheredTransactions[part].absorb(neighbors)
      }
    }
    _ = try inParallel(partition.orders.count) {
      try readers[$0].judge(orders(of: $0), matched[$0], repeated: marks, boughtTwice, open: open)
    }
    for reader in readers.dropFirst() { try readers[0].collector.join(reader.collector) }
  }

  private func exchange(from sources: Cuts, to targets: Cuts) -> Exchange {
    Exchange(from: sources.count, to: targets, directory: temporaryDirectory)
  }

  private func match(
    _ contests: ConflictGroups, repeated: RepeatedDeliveries, _ orders: (Int) throws -> GroupReading
  ) throws -> [SpillSorter] {
    let matched = exchange(from: .none, to: partition.orders)
    if !contests.isEmpty {
      let batches = contests.batches(ofAtLeast: contestBatchSize)
      var material = try inParallel(partition.orders.count) {
        try readers[$0].contestedOrders(of: batches, among: orders($0), repeated: repeated)
      }
      for further in material.dropFirst() { try material[0].absorb(further) }
      try readers[0].match(contests, batches, material[0], into: matched.outlet(0))
    }
    return try matched.gathered()
  }

  /// Findings about non-consumables bought twice by one person, by order. `periods` gets the owned periods of shared
  /// subscriptions.
  private func comparedPurchases(
    _ matched: [SpillSorter], open: PeopleWithOpenReceipts, _ orders: (Int) throws -> GroupReading,
    into periods: Exchange
  ) throws -> [Identifier: Finding] {
    var repeated = RepeatedPurchases(rules: plan.rules)
    let purchases = try inParallel(partition.orders.count) {
      try readers[$0].comparedPurchases(orders($0), matched[$0], open: open, into: periods.outlet($0))
    }
    for part in purchases { repeated.join(part) }
    return Dictionary(repeated.findings().map { ($0.orderId ?? "", $0) }) { first, _ in first }
  }
}
