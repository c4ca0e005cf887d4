import Reconciliation
import Streams

/// Judged orders by product in byte order, sorted with temporary files.
struct OrdersByProduct {
  private var cursor: SpillCursor<JudgedOrder>

  /// Leaves out orders of other days, unless they own a renewal, which may be in these days.
  init(_ orders: (_ each: (JudgedOrder) throws -> Void) throws -> Void, of days: ReportDays, directory: String) throws {
    let sorter = SpillSorter(directory: directory)
    var record = RecordBytes()
    try orders { order in
      let isInDays = days.day(of: order.bookedAt) != nil
      guard isInDays && (order.isBooked || order.isAwaited) || !order.renewals.isEmpty else { return }
      record.clear()
      order.write(to: &record)
      try sorter.add(order.productId, record)
    }
    cursor = try SpillCursor(sorter) { found in
      var reader = RecordReader(found.content)
      return try JudgedOrder(from: &reader)
    }
  }

  var product: Identifier? { cursor.head?.productId }

  mutating func next(of product: Identifier) throws -> JudgedOrder? {
    guard self.product == product else { return nil }
    return try cursor.next()
  }
}
