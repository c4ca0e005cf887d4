import AuditStore
import Postgres
import Reconciliation
import Run
import SalesStore
import Settings
import Streams

/// Rereads orders behind critical findings, all at one instant, if no snapshot spans the shop's store. The streams are
/// then read at different instants, and a changing order may appear in a state it never had.
struct CriticalOrdersReread {
  struct Order {
    var group: OrderGroup
    var deliveries: [Delivery]
  }

  private static let batch = 1_000

  private let read: (_ orderIds: Set<Identifier>) throws -> [Order]

  init(_ read: @escaping (_ orderIds: Set<Identifier>) throws -> [Order]) { self.read = read }

  /// Reads on its own connection, in the shop's current state.
  init(_ settings: Settings, _ scope: BlockingScope, _ sales: SalesRows, rules: Rules, own: StoreRows) {
    self.init { ids in
      let shop = try SalesStore.connect(settings, scope, applicationName: "night-audit: reading again")
      try shop.begin(.snapshot)
      defer { shop.rollback() }
      var further: [Identifier: Int] = [:]
      let groups = try OrderGroup.groups(of: ids, shop: shop, own: own.own, sales, rules: rules, &further)
      var deliveries: [Identifier: [Delivery]] = [:]
      var rows = try shop.copyOut(
        sales.deliveries(where: "d.order_id::text COLLATE \"C\" IN (SELECT id FROM ids)"), ids: ids)
      while try rows.advance() {
        let delivery = try sales.delivery(rows, asOf: rules.asOf)
        if let orderId = delivery.orderId { deliveries[orderId, default: []].append(delivery) }
      }
      return groups.map { Order(group: $0, deliveries: deliveries[$0.row.orderId] ?? []) }
    }
  }

  /// Rereads the orders of critical findings.
  func take(_ findings: [SpillSorter], into looked: Exchange.RecordSink) throws {
    var waiting: Set<Identifier> = []
    for part in findings {
      while let next = try part.next() {
        var reader = RecordReader(next.content)
        let finding = try Finding(from: &reader)
        guard finding.severity == .critical, let orderId = finding.orderId else { continue }
        waiting.insert(orderId)
        if waiting.count == Self.batch { try read(&waiting, into: looked) }
      }
    }
    if !waiting.isEmpty { try read(&waiting, into: looked) }
  }

  private func read(_ waiting: inout Set<Identifier>, into looked: Exchange.RecordSink) throws {
    var record = RecordBytes()
    for order in try read(waiting) {
      record.clear()
      order.write(to: &record)
      try looked.add(order.group.row.orderId, record)
    }
    waiting.removeAll(keepingCapacity: true)
  }

  /// The reread orders of one part in the byte order of their IDs.
  struct Reading {
    struct Figures: Hashable {
      var orders = 0
      var changed = 0

      var words: String {
        let changes =
          changed == 0
          ? "none had changed" : "\(changed) had changed, and \(changed == 1 ? "was" : "were") judged again"
        return "no snapshot covers the shop's store, so orders with new critical findings were read again first: "
          + "\(orders) \(orders == 1 ? "order" : "orders"), of which \(changes)"
      }
    }

    private var orders: SpillCursor<Order>
    private(set) var figures = Figures()

    init(_ looked: SpillSorter) throws {
      try looked.restart()
      orders = try SpillCursor(looked) { record in
        var reader = RecordReader(record.content)
        return try Order(from: &reader)
      }
    }

    /// True if an order was reread. Orders come in the byte order of their IDs.
    mutating func isNext(_ orderId: BorrowedText) throws -> Bool {
      while let head = orders.head, head.group.row.orderId.withUTF8({ BorrowedText($0) < orderId }) {
        try orders.advance()
      }
      return orders.head.map { orderId.isSame(as: $0.group.row.orderId) } ?? false
    }

    /// Replaces the first reading if `isNext(_:)`. For an order reread twice the newest reading counts.
    mutating func replace(_ group: inout OrderGroup, _ deliveries: inout [Delivery]) throws {
      let orderId = group.row.orderId
      var newest: Order?
      while let head = orders.head, head.group.row.orderId == orderId { newest = try orders.next() ?? head }
      guard let newest else { return }
      figures.orders += 1
      if !newest.isEqual(to: group, deliveries) { figures.changed += 1 }
      (group, deliveries) = (newest.group, newest.deliveries)
    }
  }
}

extension CriticalOrdersReread.Order {
  /// True if it equals the first reading. Proofs are compared as sets, because their order differs.
  fileprivate func isEqual(to first: OrderGroup, _ deliveries: [Delivery]) -> Bool {
    group.row == first.row && Set(group.proofs) == Set(first.proofs) && self.deliveries == deliveries
      && group.lookup?.subjectId == first.lookup?.subjectId && group.lookup?.state == first.lookup?.state
      && Set(group.lookup?.contained ?? []) == Set(first.lookup?.contained ?? [])
  }

  func write(to record: inout RecordBytes) {
    group.write(to: &record)
    record.put(deliveries) { $0.write(to: &$1) }
  }

  init(from record: inout RecordReader) throws(RecordReader.Mismatch) {
    group = try OrderGroup(from: &record)
    deliveries = try record.list { (record) throws(RecordReader.Mismatch) in try Delivery(from: &record) }
  }
}
