import Postgres
import Reconciliation
import SalesStore
import Streams

/// Delivery ids that several rows have, of whatever orders: the first in the order of the stream counts, the others are bad
/// rows.
///
/// Deliveries come by order, so that two rows of one id are far apart, in two parts perhaps. Which ids could be repeated is found out beforehand
/// from hashes of theirs alone, sorted in bounded memory; where the relation itself forbids it, nothing is read for it.
struct RepeatedDeliveries {
  /// By an id that several rows have, the first of their orders; nil in the place of one that none of them names.
  private var firstOrders: [Identifier: Identifier?] = [:]
  private var seen: Set<Identifier> = []

  /// - Parameter shop: in the snapshot of the audit.
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

  /// Ids and the first of their orders, as `firstOrders(among:)` finds them.
  init(_ firstOrders: [Identifier: Identifier?]) { self.firstOrders = firstOrders }

  /// For these rows, in any order.
  init(among rows: [(deliveryId: Identifier, orderId: Identifier?)]) { firstOrders = Self.firstOrders(among: rows) }

  /// A row without an id repeats none.
  static func firstOrders(
    among rows: [(deliveryId: Identifier, orderId: Identifier?)]
  ) -> [Identifier: Identifier?] {
    Dictionary(grouping: rows, by: \.deliveryId).filter { $0.value.count > 1 && !$0.key.isEmpty }
      .mapValues { $0.compactMap(\.orderId).min() }
  }

  /// Whether every id is one row's.
  var isEmpty: Bool { firstOrders.isEmpty }

  /// Whether several rows have an id.
  func contains(_ deliveryId: Identifier) -> Bool { firstOrders.index(forKey: deliveryId) != nil }

  func contains(_ deliveryId: BorrowedText) -> Bool { !isEmpty && contains(deliveryId.id) }

  /// Says of a further row of an id that it is one. Rows of one order come together, in an order of their own.
  mutating func mark(_ delivery: Delivery) -> Delivery {
    guard let firstOrder = firstOrders[delivery.deliveryId] else { return delivery }
    if firstOrder == delivery.orderId, seen.insert(delivery.deliveryId).inserted { return delivery }
    var repeated = delivery
    repeated.defect = delivery.defect.map { "\($0); \(Self.defect)" } ?? Self.defect
    return repeated
  }

  private static let defect = "delivery_id is not unique"

  /// FNV-1a. Rows that share a hash by accident are told apart by their ids.
  private static func hash(_ id: Identifier) -> [UInt8] {
    let hash: UInt64 = id.bytes.reduce(0xCBF2_9CE4_8422_2325) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }
    return withUnsafeBytes(of: hash.bigEndian) { [UInt8]($0) }
  }
}
