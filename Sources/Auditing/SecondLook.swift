import AuditStore
import Postgres
import Reconciliation
import Run
import SalesStore
import Streams

/// Where no snapshot spans the shop's store, its relations are read at as many instants as there are streams, and an order
/// that changes meanwhile may look as it never was. So whatever would be reported critical is read again first, all of it at
/// one time, and judged by that.
struct SecondLook {
  /// An order as it was read again.
  struct Order {
    var group: OrderGroup
    var deliveries: [Delivery]
  }

  /// How many orders are read again at a time.
  private static let batch = 1_000

  private let read: (_ orderIds: Set<Identifier>) throws -> [Order]

  /// - Parameter read: reads some orders; those that are not there any more are left out.
  init(_ read: @escaping (_ orderIds: Set<Identifier>) throws -> [Order]) { self.read = read }

  /// Reads on a connection of its own, in whatever state the shop is in by now.
  ///
  /// - Parameter own: our own schema, in the snapshot of the audit.
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

  /// Reads again what critical findings stand on.
  ///
  /// - Parameters:
  ///   - findings: by their stable ids, of all parts.
  ///   - looked: gets the orders, by their ids.
  func take(_ findings: [SpillSorter], into looked: Exchange.Outlet) throws {
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

  private func read(_ waiting: inout Set<Identifier>, into looked: Exchange.Outlet) throws {
    var record = RecordBytes()
    for order in try read(waiting) {
      record.clear()
      order.write(to: &record)
      try looked.add(order.group.row.orderId, record)
    }
    waiting.removeAll(keepingCapacity: true)
  }

  /// The orders of one part in the byte order of their ids.
  struct Reading {
    /// What came of looking again.
    struct Figures: Hashable {
      var orders = 0
      /// How many of them were not as they had been read first.
      var changed = 0

      /// For readers of the report.
      var words: String {
        let changes =
          changed == 0 ? "none had changed" : "\(changed) had changed, and \(changed == 1 ? "was" : "were") judged anew"
        return "no snapshot spans the shop's store, so what would be critical was read again first: "
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

    /// Whether an order was read again. Orders come in the byte order of their IDs.
    mutating func isNext(_ orderId: BorrowedText) throws -> Bool {
      while let head = orders.head, head.group.row.orderId.withUTF8({ BorrowedText($0) < orderId }) {
        try orders.advance()
      }
      return orders.head.map { orderId.isSame(as: $0.group.row.orderId) } ?? false
    }

    /// Puts what was read again into the place of what was read first, where `isNext(_:)`. Of an order
    /// that was read twice the newest reading counts.
    mutating func replace(_ group: inout OrderGroup, _ deliveries: inout [Delivery]) throws {
      let orderId = group.row.orderId
      var newest: Order?
      while let head = orders.head, head.group.row.orderId == orderId { newest = try orders.next() ?? head }
      guard let newest else { return }
      figures.orders += 1
      if !newest.says(group, deliveries) { figures.changed += 1 }
      (group, deliveries) = (newest.group, newest.deliveries)
    }
  }
}

extension SecondLook.Order {
  /// Whether it is what was read first. Proofs come in another order when many are read.
  fileprivate func says(_ first: OrderGroup, _ deliveries: [Delivery]) -> Bool {
    group.row == first.row && Set(group.proofs) == Set(first.proofs) && self.deliveries == deliveries
      && group.lookup?.subjectId == first.lookup?.subjectId && group.lookup?.state == first.lookup?.state
      && Set(group.lookup?.brought ?? []) == Set(first.lookup?.brought ?? [])
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
