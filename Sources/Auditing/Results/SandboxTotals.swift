import Reconciliation
import Reporting
import Streams

/// The orders of the period that were paid in the sandbox, by user, product and currency.
struct SandboxTotals {
  private struct Key: Hashable, Comparable {
    var userId: Identifier
    var productId: Identifier
    var currency: Currency

    static func < (left: Key, right: Key) -> Bool {
      (left.userId, left.productId, left.currency) < (right.userId, right.productId, right.currency)
    }
  }

  private var sums: [Key: (orders: Int, minorUnits: Int128)] = [:]

  mutating func add(_ order: Order) {
    add(
      (1, Int128(order.amount.minorUnits)),
      to: Key(userId: order.userId, productId: order.productId, currency: order.amount.currency))
  }

  private mutating func add(_ sum: (orders: Int, minorUnits: Int128), to key: Key) {
    let known = sums[key] ?? (orders: 0, minorUnits: 0)
    sums[key] = (known.orders + sum.orders, known.minorUnits + sum.minorUnits)
  }

  mutating func join(_ other: SandboxTotals) { for (key, sum) in other.sums { add(sum, to: key) } }

  func rows(testUsers: Set<Identifier>) -> [SandboxRow] {
    sums.sorted { $0.key < $1.key }.map { key, sum in
      SandboxRow(
        userId: key.userId, productId: key.productId, currency: key.currency, orders: sum.orders,
        minorUnits: sum.minorUnits, isAllowed: testUsers.contains(key.userId))
    }
  }

  // MARK: - Frames

  func write(to writer: inout AuditFrameWriter) throws {
    for (key, sum) in sums {
      try writer.write(.sandbox, key.userId) {
        $0.put(key.productId)
        $0.put(key.currency.code)
        $0.put(Int64(sum.orders))
        $0.put(sum.minorUnits)
      }
    }
  }

  mutating func take(_ userId: Identifier, from record: inout RecordReader) throws(RecordReader.Mismatch) {
    let productId = try record.id()
    let key = Key(userId: userId, productId: productId, currency: try record.currency())
    add((Int(try record.int()), try record.int128()), to: key)
  }
}
