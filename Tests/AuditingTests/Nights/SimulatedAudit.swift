import Foundation
import Reconciliation
import Reporting
import SalesStore
import Streams
import TestSupport

@testable import AuditStore
@testable import Auditing
@testable import Run
@testable import SampleWorlds

struct SimulatedAudit {
  /// All results as frames, in order.
  let pieces: [Frame]
  let agedCriticals: Set<CheckSubject>
  let isBalanced: Bool

  init(
    _ world: World, partition: AuditPartition, contestBatchSize: Int, openCriticals: Set<Identifier>, folder: String
  ) throws {
    var rules = world.rules
    rules.catalogue = world.products.map { Catalogue($0) }
    let plan = AuditPlan(
      rules: rules,
      period: try Period(since: "2020-01-01", until: "2030-12-31", in: TimeZone(identifier: "UTC") ?? .gmt),
      selection: Selection(), staleAfter: .days(7), refundWindow: .days(90))
    let horizon = Horizon(asOf: rules.asOf, clock: rules.asOf + World.moment, isPastAudit: false)
    let rows = StoredRows(world)
    let sales = Dictionary(grouping: world.transactions) { $0.purchaseKey }
    let sharedPurchases = Set(sales.lazy.filter { $1.count > 1 }.map(\.key.fingerprint))
    let readers = try (0..<partition.readers).map { part in
      let collector = try AuditCollector(waitingIn: folder, days: [], storesClaims: true)
      collector.openCriticals = openCriticals
      return AuditPass(
        plan: plan, sales: try SalesRows(schema: "sales", bundleIds: [ShopFixture.bundle], horizon: horizon),
        rows: rows.part(part, of: partition), collector: collector, temporaryDirectory: folder, stop: StopSignal(),
        progress: .quiet, sharedPurchases: sharedPurchases)
    }
    var counted = SalesTotals()
    for row in world.orders { counted.add(row) }
    let deliveries = world.deliveries.map { RepeatedDeliveries.row($0) }
    let whole = counted
    try AuditStages(
      readers: readers, partition: partition, contestBatchSize: contestBatchSize, temporaryDirectory: folder
    ).run(counted: { whole }, repeated: { RepeatedDeliveries(RepeatedDeliveries.firstOrders(among: deliveries)) })
    let collector = readers[0].collector
    isBalanced = (collector.control + collector.totals.control).allSatisfy(\.isBalanced)
    agedCriticals = collector.agedCriticals
    let path = folder + "/pieces"
    let output = try FrameStream(path: path, isWritten: true)
    var writer = AuditFrameWriter(output)
    try collector.write(to: &writer)
    try output.flush()
    let input = try FrameStream(path: path)
    var frames: [Frame] = []
    while let frame = try input.next() { frames.append(frame) }
    pieces = frames.sorted {
      if $0.tag != $1.tag { return $0.tag < $1.tag }
      return $0.key == $1.key
        ? $0.content.lexicographicallyPrecedes($1.content) : $0.key.lexicographicallyPrecedes($1.key)
    }
  }

  private func read<Value>(_ frame: AuditFrame, _ body: (inout RecordReader) throws -> Value) throws -> [Value] {
    try pieces.filter { $0.tag == frame.rawValue }.map {
      var reader = RecordReader($0.content)
      return try body(&reader)
    }
  }

  func orders() throws -> [OrderLine] { try read(.orderLine) { try OrderLine(from: &$0) } }
  func findings() throws -> [Finding] { try read(.finding) { try Finding(from: &$0) } }
  func claims() throws -> [ClaimsTable.Claim] { try read(.claim) { try ClaimsTable.Claim(from: &$0) } }
}

extension StoredRows {
  init(_ world: World) {
    self.init()
    for row in world.orders { add(.orders, row.orderId, RowBytes(row, changedLater: world.rules.asOf + World.moment)) }
    for delivery in world.deliveries { add(.deliveries, delivery.orderId, RowBytes(delivery)) }
    for receipt in world.receipts {
      add(.receipts, receipt.receiptId, RowBytes(receipt))
      if receipt.defect != nil { continue }
      var check = RowBytes()
      check.put(receipt.receiptId)
      check.put(receipt.state)
      check.put(receipt.orderId)
      add(.checks, receipt.receiptId, check)
    }
    for (id, keys) in world.contained {
      for key in keys { add(.receiptLinks, id, RowBytes(id, key)) }
    }
    for case .valid(let order) in world.orders {
      guard let state = world.lookups[order.orderId], let named = order.transactionId else { continue }
      var row = RowBytes()
      row.put(order.orderId)
      row.put(CheckSubject.lookup(named.text, of: ShopFixture.bundle).id)
      row.put(state)
      add(.lookups, order.orderId, row)
      guard state.outcome == .verified else { continue }
      for record in world.transactions where record.transactionId == named {
        add(.lookupLinks, order.orderId, RowBytes(order.orderId, record.key))
      }
    }
    for record in world.transactions { add(.transactions, record.transactionId, RowBytes(record)) }
  }
}

extension RowBytes {
  fileprivate init(_ id: Identifier, _ key: TransactionKey) {
    self.init()
    put(id)
    put(key.environment.rawValue)
    put(key.transactionId)
  }

  /// The fields have the order of `SalesRows.orderColumns`. `changedLater` dates rows that changed after the as-of.
  fileprivate init(_ row: OrderRow, changedLater: Instant) {
    self.init()
    put(row.orderId)
    put(row.userId)
    put(row.bundleId)
    put(row.productId)
    switch row {
    case .valid(let order):
      put(Int64(order.quantity))
      put(amount: order.amount.decimalText)
      put(order.amount.currency.code)
      put(order.status.rawValue)
      put(order.transactionId)
      put(order.appAccountToken)
      put(order.createdAt)
      put(order.verifiedAt)
      put(order.isChangedAfterAsOf ? changedLater : order.refundBookedBy ?? order.createdAt)
    case .bad(let order):
      put(order.quantity)
      put(amount: order.amountText)
      put(order.currencyText)
      put(order.statusText)
      put(order.transactionId)
      put(String?.none)
      put(order.createdAt)
      put(Instant?.none)
      put(order.createdAt)
    }
  }

  /// The fields have the order of `SalesRows.deliveryColumns`.
  fileprivate init(_ delivery: Delivery) {
    self.init()
    put(delivery.orderId)
    put(delivery.deliveryId)
    put(delivery.userId)
    put(delivery.productId)
    put(delivery.defect == nil ? delivery.quantity : 0)
    put(delivery.deliveredAt)
    put(delivery.revokedAt)
  }

  /// The fields have the order of `SalesRows.receiptColumns`, followed by whether the receipt is listed.
  fileprivate init(_ receipt: Receipt) {
    self.init()
    put(receipt.receiptId)
    put(receipt.orderId)
    put(receipt.userId)
    put(receipt.claimedEnvironment)
    put(receipt.defect == nil ? "unverified" : "broken")
    put(receipt.receivedAt)
    put(Instant?.none)
    put(false)
    put(true)
  }

  /// The fields have the order of `TransactionTable.byId(hiding:where:)`.
  fileprivate init(_ record: TransactionRecord) {
    self.init()
    let contents = ColumnContents { coder in
      var contents = record.contents
      contents.codeRules(with: &coder)
    }
    for column in contents.columns {
      switch column.content {
      case .text(let text): put(text)
      case .number(let number, type: "integer"): put(number.map { Int32($0) })
      case .number(let number, _): put(number)
      case .flag(let flag): put(flag)
      case .instant(let instant): put(instant)
      case .amount: break
      }
    }
    put(String?.none)
  }

  /// Appends the fields in the order of `ProofState.columns(hiding:)`.
  fileprivate mutating func put(_ state: ProofState) {
    put(state.outcome.rawValue)
    put(state.reason?.rawValue)
    put(state.kind?.rawValue)
    put(state.channel?.rawValue)
    put(state.environment?.rawValue)
    put(state.bundleId)
    put(state.appleStatus)
    put(state.attempts)
    put(state.lastAttempt)
    put(state.due?.from)
    put(state.due?.until)
    put(state.due.map { Int32($0.rank.rawValue) })
    put(state.unansweredSince)
    put(state.answeredAt)
    put(state.signedTransactionId)
    put(state.containedCount)
    put(state.isUnproven)
    put(state.failedCheck)
  }
}
