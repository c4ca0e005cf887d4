import Postgres
import Reconciliation
import SalesStore
import Streams

/// Delivery IDs with several rows: the first row in stream order counts, the others are bad rows. Rows of one ID may be
/// far apart, so candidates are found from sorted hashes, unless there is a unique constraint.
struct RepeatedDeliveries {
  /// By repeated ID, the first of its orders; nil if no row has an order.
  private var firstOrders: [Identifier: Identifier?] = [:]
  private var seen: Set<Identifier> = []

  init(_ sales: SalesRows, shop: borrowing BlockingConnection, directory: String) throws {
    if try sales.forbidsRepeatedDeliveries(shop) { return }
    let hashes = SpillSorter(directory: directory, budget: 4 << 20)
    var ids = try shop.copyOut(try sales.deliveryIds)
    while try ids.advance() {
      try hashes.add(key: Self.hash(try SalesRows.deliveryIds(ids).deliveryId), content: [])
    }
    var (last, suspects) = ([UInt8](), Set<[UInt8]>())
    while let record = try hashes.next() {
      let hash = [UInt8](record.key)
      if hash == last { suspects.insert(hash) }
      last = hash
    }
    if suspects.isEmpty { return }
    var rows: [(deliveryId: Identifier, orderId: Identifier?)] = []
    ids = try shop.copyOut(try sales.deliveryIds)
    while try ids.advance() {
      let row = try SalesRows.deliveryIds(ids)
      if suspects.contains(Self.hash(row.deliveryId)) { rows.append(row) }
    }
    firstOrders = Self.firstOrders(among: rows)
  }

  /// The repeated IDs of some deliveries, and of the deliveries of some orders.
  init(
    of orders: Set<Identifier>, and deliveries: Set<Identifier> = [], _ sales: SalesRows,
    shop: borrowing BlockingConnection
  ) throws {
    if try sales.forbidsRepeatedDeliveries(shop) { return }
    let own = try shop.rows(
      #"\#(try sales.deliveryIds) AND d.order_id::text COLLATE "C" IN (SELECT id FROM ids)"#, orders
    ) { try SalesRows.deliveryIds($0).deliveryId }
    let rows = try shop.rows(
      #"\#(try sales.deliveryIds) AND d.delivery_id::text COLLATE "C" IN (SELECT id FROM ids)"#,
      deliveries.union(own)
    ) { try SalesRows.deliveryIds($0) }
    firstOrders = Self.firstOrders(among: rows)
  }

  init(_ firstOrders: [Identifier: Identifier?]) { self.firstOrders = firstOrders }

  /// Rows without an ID repeat none.
  static func firstOrders(
    among rows: [(deliveryId: Identifier, orderId: Identifier?)]
  ) -> [Identifier: Identifier?] {
    Dictionary(grouping: rows, by: \.deliveryId).filter { $0.value.count > 1 && !$0.key.isEmpty }
      .mapValues { $0.compactMap(\.orderId).min() }
  }

  var isEmpty: Bool { firstOrders.isEmpty }

  func contains(_ deliveryId: Identifier) -> Bool { firstOrders.index(forKey: deliveryId) != nil }

  func contains(_ deliveryId: BorrowedText) -> Bool { !isEmpty && contains(deliveryId.id) }

  /// Marks a further row of an ID as a defect. Rows of one order come together, sorted.
  mutating func mark(_ delivery: Delivery) -> Delivery {
    guard let firstOrder = firstOrders[delivery.deliveryId] else { return delivery }
    if firstOrder == delivery.orderId, seen.insert(delivery.deliveryId).inserted { return delivery }
    var repeated = delivery
    repeated.defect = delivery.defect.map { "\($0); \(Self.defect)" } ?? Self.defect
    return repeated
  }

  private static let defect = "delivery_id is not unique"

  /// Hash collisions are resolved by comparing the IDs.
  private static func hash(_ id: Identifier) -> [UInt8] {
    let hash = id.withUTF8 { BorrowedText($0).fingerprint }
    return withUnsafeBytes(of: hash.bigEndian) { [UInt8]($0) }
  }
}
