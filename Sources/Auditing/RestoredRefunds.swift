import Reconciliation
import Reporting
import Streams

/// Selects the one row that reports the refund of a restored purchase. Apple revokes all restores, but money moved
/// once.
struct RestoredRefunds {
  private struct Telling {
    var transactionId: Identifier
    var hasOrder: Bool
  }

  /// By purchase ID: the row with an order, else the purchase's own row, else the first restore's.
  private var telling: [Identifier: Telling] = [:]

  init(_ refunds: SpillSorter) throws {
    try forEach(refunds) { row, restoredIn in
      guard let purchase = row.restoredId else { return }
      if restoredIn[purchase].map({ !$0.hasOrder && row.orderId != nil }) ?? true {
        restoredIn[purchase] = Telling(transactionId: row.transactionId, hasOrder: row.orderId != nil)
      }
    }
    if telling.isEmpty { return }
    try forEach(refunds) { row, restoredIn in
      guard let restore = restoredIn[row.transactionId], row.orderId != nil || !restore.hasOrder else { return }
      restoredIn[row.transactionId] = Telling(transactionId: row.transactionId, hasOrder: row.orderId != nil)
    }
  }

  private mutating func forEach(
    _ refunds: SpillSorter, _ body: (RefundRow, inout [Identifier: Telling]) -> Void
  ) throws {
    while let refund = try refunds.next() {
      var reader = RecordReader(refund.content)
      body(try RefundRow(from: &reader), &telling)
    }
    try refunds.restart()
  }

  func isToldElsewhere(_ row: RefundRow) -> Bool {
    telling[row.restoredId ?? row.transactionId].map { $0.transactionId != row.transactionId } ?? false
  }
}
