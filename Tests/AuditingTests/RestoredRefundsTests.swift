import Foundation
import Reconciliation
import Reporting
import Streams
import Testing

@testable import Auditing

@Suite struct RestoredRefundsTests {
  private static func row(_ id: String, order: String? = nil, restores: String? = nil) -> RefundRow {
    var row = RefundRow(
      transactionId: Identifier(id), orderId: order.map { Identifier($0) }, productId: "premium", refunded: nil,
      milliPercent: 100_000, purchasedAt: nil, refundedAt: Instant(microseconds: 0))
    row.restoredId = restores.map { Identifier($0) }
    return row
  }

  @Test(
    "Apple takes back the purchase and whatever restored it: one row tells it",
    arguments: [
      ([row("T1"), row("T2")], ["T1", "T2"]),
      ([row("T1", order: "o"), row("T9", restores: "T1")], ["T1"]),
      ([row("T1"), row("T0", restores: "T1"), row("T9", restores: "T1")], ["T1"]),
      ([row("T1"), row("T9", order: "o", restores: "T1")], ["T9"]),
      ([row("T8", restores: "T1"), row("T9", order: "o", restores: "T1")], ["T9"]),
      // The original purchase is in no receipt any more.
      ([row("T8", restores: "T1"), row("T9", restores: "T1"), row("T7")], ["T7", "T8"]),
    ])
  func once(rows: [RefundRow], told: [String]) throws {
    let refunds = SpillSorter(directory: NSTemporaryDirectory())
    for row in rows {
      var record = RecordBytes()
      row.write(to: &record)
      try refunds.add(row.transactionId, record)
    }
    let restored = try RestoredRefunds(refunds)
    var written: [String] = []
    while let refund = try refunds.next() {
      var reader = RecordReader(refund.content)
      let row = try RefundRow(from: &reader)
      if !restored.isToldElsewhere(row) { written.append(row.transactionId.text) }
    }
    #expect(written == told)
  }
}
