import Postgres
import Reconciliation
import SalesStore
import Streams

/// Delivery IDs with several rows: the first valid row in stream order counts, the others are bad rows. Rows of one ID
/// may be far apart, so candidates are found from sorted hashes, unless there is a unique constraint.
struct RepeatedDeliveries {
  typealias Row = (deliveryId: Identifier, orderId: Identifier?, isValid: Bool)

  /// By repeated ID, the order of the row that counts; nil if that row has no order.
  private var firstOrders: [Identifier: Identifier?] = [:]
  private var seen: Set<Identifier> = []

  init(_ sales: SalesRows, shop: borrowing BlockingConnection, directory: String) throws {
    if try sales.forbidsRepeatedDeliveries(shop) { return }
    let hashes = SpillSorter(directory: directory, budget: 4 << 20)
    var ids = try shop.copyOut(try sales.deliveryIds)
    while try ids.advance() {
      try hashes.add(key: Self.hash(try SalesRows.deliveryId(ids)), content: [])
    }
    var (last, suspects) = ([UInt8](), Set<[UInt8]>())
    while let record = try hashes.next() {
      let hash = [UInt8](record.key)
      if hash == last { suspects.insert(hash) }
      last = hash
    }
    if suspects.isEmpty { return }
    var rows: [Row] = []
    var deliveries = try shop.copyOut(try sales.identifiedDeliveries())
    while try deliveries.advance() {
      let row = try Self.row(deliveries, sales)
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
    ) { try SalesRows.deliveryId($0) }
    let rows = try shop.rows(
      #"\#(try sales.identifiedDeliveries()) AND d.delivery_id::text COLLATE "C" IN (SELECT id FROM ids)"#,
      deliveries.union(own)
    ) { try Self.row($0, sales) }
    firstOrders = Self.firstOrders(among: rows)
  }

  init(_ firstOrders: [Identifier: Identifier?]) { self.firstOrders = firstOrders }

  private static func row(_ row: borrowing CopyReader, _ sales: SalesRows) throws(PostgresError) -> Row {
    if let plain = try sales.plainDelivery(row) { return (plain.deliveryId.id, plain.orderId.id, true) }
    return Self.row(try sales.delivery(row, asOf: .blank))
  }

  static func row(_ delivery: Delivery) -> Row { (delivery.deliveryId, delivery.orderId, delivery.defect == nil) }

  /// Rows without an ID repeat none.
  static func firstOrders(among rows: [Row]) -> [Identifier: Identifier?] {
    Dictionary(grouping: rows, by: \.deliveryId).filter { $0.value.count > 1 && !$0.key.isEmpty }.mapValues {
      rows -> Identifier? in
      let valid = rows.filter(\.isValid)
      return (valid.isEmpty ? rows : valid).compactMap(\.orderId).min()
    }
  }

  var isEmpty: Bool { firstOrders.isEmpty }

  func contains(_ deliveryId: Identifier) -> Bool { firstOrders.index(forKey: deliveryId) != nil }

  func contains(_ deliveryId: BorrowedText) -> Bool { !isEmpty && contains(deliveryId.id) }

  /// Marks all rows of repeated IDs but those that count as defects. The rows of an order come in one call.
  mutating func mark(_ ofOrder: [Delivery]) -> [Delivery] {
    if isEmpty, ofOrder.count < 2 { return ofOrder }
    return ofOrder.sorted(by: Self.precedes).map { mark($0) }
  }

  private mutating func mark(_ delivery: Delivery) -> Delivery {
    guard let firstOrder = firstOrders[delivery.deliveryId] else { return delivery }
    if firstOrder == delivery.orderId, seen.insert(delivery.deliveryId).inserted { return delivery }
    var repeated = delivery
    repeated.defect = delivery.defect.map { "\($0); \(Self.defect)" } ?? Self.defect
    return repeated
  }

  private static let defect = "delivery_id is not unique"

  /// Independent of the server's order. Of the rows with one ID, the first counts.
  private static func precedes(_ left: Delivery, _ right: Delivery) -> Bool {
    if left.deliveryId != right.deliveryId { return left.deliveryId < right.deliveryId }
    if (left.defect == nil) != (right.defect == nil) { return left.defect == nil }
    if left.deliveredAt != right.deliveredAt { return left.deliveredAt < right.deliveredAt }
    if left.revokedAt != right.revokedAt {
      return left.revokedAt.map { one in right.revokedAt.map { one < $0 } ?? true } ?? false
    }
    // Missing values come last, as in the server's sort order.
    return (left.quantity ?? .max, left.userId, left.productId)
      < (right.quantity ?? .max, right.userId, right.productId)
  }

  /// Hash collisions are resolved by comparing the IDs.
  private static func hash(_ id: Identifier) -> [UInt8] {
    let hash = id.withUTF8 { BorrowedText($0).fingerprint }
    return withUnsafeBytes(of: hash.bigEndian) { [UInt8]($0) }
  }
}
