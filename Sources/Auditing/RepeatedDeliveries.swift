import Postgres
import Reconciliation
import SalesStore
import Streams

/// Delivery ids that several rows have, of whatever orders: the first in the order of the stream counts, the others are bad
/// rows.
///
/// Deliveries come by order, so that two rows of one id are far apart. Which ids could be repeated is found out beforehand
/// from hashes of theirs alone, sorted in bounded memory; where the relation itself forbids it, nothing is read for it.
struct RepeatedDeliveries {
  /// Hashes that several rows share.
  private var suspects: Set<UInt64> = []
  private var seen: Set<Identifier> = []

  /// - Parameter shop: in the snapshot of the audit.
  init(_ sales: SalesRows, shop: borrowing BlockingConnection, directory: String) throws {
    if try sales.forbidsRepeatedDeliveries(shop) { return }
    let hashes = SpillSorter(directory: directory, budget: 4 << 20)
    var ids = try shop.copyOut(try sales.deliveryIds)
    while try ids.advance() {
      let id = try ids.id(0)
      try hashes.add(key: withUnsafeBytes(of: Self.hash(id).bigEndian) { [UInt8]($0) }, content: [])
    }
    var last: [UInt8] = []
    while let record = try hashes.next() {
      if record.key == last { suspects.insert(record.key.reduce(0) { $0 << 8 | UInt64($1) }) }
      last = record.key
    }
  }

  /// For the rows of a few ids, in the order of the stream.
  init(suspects ids: some Sequence<Identifier>) { suspects = Set(ids.map(Self.hash)) }

  /// Says of a further row of an id that it is one.
  mutating func mark(_ delivery: Delivery) -> Delivery {
    guard !suspects.isEmpty, suspects.contains(Self.hash(delivery.deliveryId)),
      !seen.insert(delivery.deliveryId).inserted
    else { return delivery }
    var repeated = delivery
    repeated.defect = delivery.defect.map { "\($0); \(Self.defect)" } ?? Self.defect
    return repeated
  }

  private static let defect = "delivery_id is not unique"

  /// FNV-1a. Rows that share a hash by accident are told apart by their ids.
  private static func hash(_ id: Identifier) -> UInt64 {
    id.bytes.reduce(0xCBF2_9CE4_8422_2325) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }
  }
}
