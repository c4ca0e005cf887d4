import AuditStore
import Postgres
import Reconciliation
import Reporting
import Run
import Streams

/// The refunds of an audit, and the open refund requests.
final class CollectedRefunds {
  private static let batch = 1_000

  /// Rows of refunds by transaction ID, each with all transaction IDs of its purchase.
  private(set) var rows: SpillSorter
  /// True if the rows are those of earlier nights, which no run stores again.
  private(set) var areStored = false
  let requests: RefundRequests
  private let directory: String
  private var record = RecordBytes()

  init(directory: String) {
    self.directory = directory
    rows = SpillSorter(directory: directory, budget: 1 << 20)
    requests = RefundRequests(directory: directory)
  }

  /// Takes over the refunds of another part.
  func join(_ other: CollectedRefunds) throws {
    try rows.absorb(other.rows)
    try requests.join(other.requests)
  }

  /// Adds the refunds of an order, and its open refund requests.
  func add(of facts: OrderFacts, judgement: Judgement, plan: AuditPlan) throws {
    let order = facts.order
    let person = plan.rules.people.person(order.userId)
    for transaction in facts.claims.owned where transaction.hasRefundableMoney {
      let isFurther = judgement.furtherCharges.contains(transaction.purchaseKey)
      if let refund = transaction.revocation {
        try requests.add(refundOf: transaction, at: refund.date, person: person)
        if !facts.awaitsShare(of: transaction) {
          let row = RefundRow(
            transaction, order: order, isFurther: isFurther, disposition: judgement.disposition)
          try add(row, of: transaction, plan: plan)
        }
      }
      if let row = RefundRequestRow(transaction, facts: facts, isFurther: isFurther, userId: nil) {
        try requests.add(row, person: person)
      }
    }
  }

  /// Adds the refund and the open refund request of a transaction without an owner.
  func add(of transaction: TransactionRecord, userId: Identifier?, plan: AuditPlan) throws {
    // Each purchase has one row, whatever IDs it has.
    guard transaction.hasRefundableMoney, transaction.transactionId == transaction.smallestId,
      let bundle = transaction.bundleId, plan.rules.bundleIds.contains(bundle),
      plan.selection.includes(
        orderId: nil, userId: nil, productId: transaction.productId, bundleId: transaction.bundleId)
    else { return }
    try add(RefundRow(transaction, order: nil, disposition: nil), of: transaction, plan: plan)
    let person = userId.map(plan.rules.people.person)
    if let person, let refund = transaction.revocation {
      try requests.add(refundOf: transaction, at: refund.date, person: person)
    }
    if let row = RefundRequestRow(transaction, facts: nil, userId: userId) {
      try requests.add(row, person: person)
    }
  }

  /// Keeps a refund from before the end of the period. Which of them belong to the period is decided at the end.
  private func add(_ row: RefundRow?, of transaction: TransactionRecord, plan: AuditPlan) throws {
    guard let row, row.refundedAt < plan.period.end else { return }
    record.clear()
    row.write(to: &record)
    record.put(transaction.keys.map(\.transactionId)) { $1.put($0) }
    try rows.add(row.transactionId, record)
  }

  /// Replaces the rows by those that earlier nights stored, if nights of later days list their changes.
  func takeStored(_ reported: ReportedRefunds, plan: AuditPlan, on own: borrowing BlockingConnection) throws {
    guard let limit = reported.storedBefore else { return }
    rows = try RefundNights.stored(insteadOf: rows, before: limit, plan, temporaryDirectory: directory, on: own)
    areStored = true
  }

  /// Passes the refunds that were first reported in the period to `body`, by transaction ID.
  func passReported(
    _ reported: ReportedRefunds, on own: borrowing BlockingConnection, _ body: (RefundRow) throws -> Void
  ) throws {
    var batch: [(row: RefundRow, refund: ReportedRefunds.Refund)] = []
    func passBatch() throws {
      let isReported = try reported.areReported(batch.map(\.refund), on: own)
      for (row, isReported) in zip(batch.map(\.row), isReported) where isReported { try body(row) }
      batch.removeAll(keepingCapacity: true)
    }
    while let refund = try rows.next() {
      var reader = RecordReader(refund.content)
      let row = try RefundRow(from: &reader)
      let ids = try reader.list { (reader) throws(RecordReader.Mismatch) in try reader.id() }
      batch.append((row, ReportedRefunds.Refund(transactionIds: ids, date: row.refundedAt)))
      if batch.count == Self.batch { try passBatch() }
    }
    try passBatch()
  }
}

extension TransactionRecord {
  /// True if a refund of it moves money: sandbox money is no money, and a family member paid nothing.
  fileprivate var hasRefundableMoney: Bool { self.environment == .production && !isFamilyShared }
}
