import Reconciliation
import Streams

/// Judged orders, one product after the other in byte order; what does not fit in memory waits on disk.
struct OrdersByProduct {
  private var cursor: SpillCursor<JudgedOrder>

  /// - Parameters:
  ///   - orders: hands on judged orders, in any order.
  ///   - days: others are left out, unless they own a renewal, which may be of these days all the same.
  ///   - directory: where temporary files go.
  init(
    _ orders: (_ each: (JudgedOrder) throws -> Void) throws -> Void, of days: ReportDays, directory: String
  ) throws {
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

  /// The product of the next order; nil after the last.
  var product: Identifier? { cursor.head?.productId }

  /// The next order, if it is of this product.
  mutating func next(of product: Identifier) throws -> JudgedOrder? {
    guard self.product == product else { return nil }
    return try cursor.next()
  }
}
