import Foundation
import Reconciliation
import Streams
import TestSupport
import Testing

@testable import AuditStore
@testable import Auditing

@Suite struct SharedPurchaseTests {
  @Test("An encoded purchase of one order becomes what the fold of its decoded transactions says")
  func plainPurchases() throws {
    var random = SeededGenerator(seed: 71)
    var plain = 0
    for _ in 0..<2_000 {
      var purchase = SharedPurchase()
      purchase.start(UnsafeRawBufferPointer(start: nil, count: 0))
      let isOfTwo = Int.random(in: 0..<6, using: &random) == 0
      var records: [TransactionRecord] = []
      for place in 0..<Int.random(in: 1...4, using: &random) {
        let record = Self.transaction(place, &random)
        records.append(record)
        let order = TransactionReference.OrderSide(
          orderId: isOfTwo && place == 1 ? "other" : "order", userId: "ann", productId: "gems", createdAt: .blank,
          named: nil, isBad: false)
        try Self.encoded(record, of: order).withUnsafeBytes { purchase.add($0) }
      }
      let folded = try purchase.transactions().asPurchases { _ in false }.joined().map { contested in
        RecordBytes.bytes(
          OrderTransaction.transaction(contested.record, isClaimable: true, newestProof: contested.newestProof)
            .write(to:))
      }
      var passed: [[UInt8]] = []
      let isPlain = try purchase.passPlain { order, transaction in
        #expect(order.text == "order")
        passed.append(transaction.bytes)
      }
      let isContested = isOfTwo && records.count > 1
      let isUnusual = records.contains { $0.isContradictory || $0.revocationWithdrawnDate != nil }
      #expect(isPlain == (!isContested && !isUnusual))
      #expect(passed == (isPlain ? folded : []), "\(records)")
      plain += isPlain ? 1 : 0
    }
    #expect(plain > 500)
  }

  /// A purchase, or a restore of it, as some channels describe it.
  private static func transaction(_ place: Int, _ random: inout SeededGenerator) -> TransactionRecord {
    var record = TransactionRecord(
      environment: .production, transactionId: Identifier("T\(place)"), productId: "gems")
    func date() -> Instant { Instant(microseconds: Int64.random(in: 1...4, using: &random) * 1_000_000) }
    if place > 0 { record.originalTransactionId = "T0" }
    record.signedDate = date()
    record.purchaseDate = date()
    record.originalPurchaseDate = Bool.random(using: &random) ? date() : nil
    record.revocationStatedDate = Bool.random(using: &random) ? date() : nil
    record.checkedAt = Bool.random(using: &random) ? date() : nil
    if Bool.random(using: &random) {
      (record.priceMilliunits, record.currency) = (Int64.random(in: 1...3, using: &random) * 990, "USD")
    }
    record.isContradictory = random.oneIn(9)
    if random.oneIn(9) { record.revocationWithdrawnDate = date() }
    return record
  }

  private static func encoded(
    _ record: TransactionRecord, of order: TransactionReference.OrderSide
  ) throws -> [UInt8] {
    let proof = CheckSubject(kind: .receipt, id: Identifier("r-\(record.transactionId)"))
    let transaction = RecordBytes.bytes(
      OrderTransaction.transaction(record, isClaimable: true, newestProof: proof).write(to:))
    let side = RecordBytes.bytes(order.write(to:))
    return try side.withUnsafeBytes { side in
      var reader = RecordReader(side)
      let order = try BorrowedTransactionReference.OrderSide(from: &reader)
      return transaction.withUnsafeBytes { transaction in
        RecordBytes.bytes { SharedPurchase.write(transaction, of: order, to: &$0) }
      }
    }
  }

  // Debug builds compare each order that is decided from encoded records with the rules.
  @Test("A purchase pays its order, whatever its restores in the same receipt look like")
  func restores() async throws {
    var rows = ShopRows()
    let token = "6a1f0c5e-0d7b-4c5e-9d8a-1f2e3d4c5b6a"
    func order(_ id: String, restores: [String] = ["R2"], names: Bool = true, _ add: (inout ShopRows, String) -> Void) {
      rows.transaction("P1-\(id)", price: 9_900)
      for restore in restores { add(&rows, "\(restore)-\(id)") }
      rows.order(
        id, by: "ann-\(id)", names: names ? "P1-\(id)" : nil, containing: ["P1-\(id)"] + restores.map { "\($0)-\(id)" })
    }
    order("one") { $0.transaction($1, of: "P1-one", hours: 2, firstHours: 0, price: 9_900) }
    order("three", restores: ["Q2", "R2", "S2"]) { $0.transaction($1, of: "P1-three", hours: 2, firstHours: 0) }
    order("silent", names: false) { $0.transaction($1, of: "P1-silent", hours: 2, firstHours: 0) }
    order("smaller", restores: ["A2"]) { $0.transaction($1, of: "P1-smaller", hours: 2, firstHours: 0) }
    order("later") { $0.transaction($1, of: "P1-later", hours: 2, firstHours: 1) }
    order("dearer") { $0.transaction($1, of: "P1-dearer", hours: 2, firstHours: 0, price: 19_900) }
    order("product") { $0.transaction($1, of: "P1-product", product: "sword", hours: 2, firstHours: 0) }
    order("bundle") { $0.transaction($1, of: "P1-bundle", bundle: "com.example.other", hours: 2, firstHours: 0) }
    order("token") { $0.transaction($1, of: "P1-token", hours: 2, firstHours: 0, token: token) }
    order("renewal") { $0.transaction($1, of: "P1-renewal", hours: 2, firstHours: 0, isRenewal: true) }
    order("refunded") { $0.transaction($1, of: "P1-refunded", hours: 2, firstHours: 0, isRevoked: true) }
    // The payload of the receipt was replaced by an old receipt, which is about the restore alone.
    rows.transaction("P1-replaced", price: 9_900)
    rows.transaction("R2-replaced", of: "P1-replaced", hours: 2, firstHours: 0)
    rows.order("replaced", by: "ann-replaced", names: "P1-replaced")
    rows.receipt(
      "r-replaced", for: "replaced", by: "ann-replaced", kind: "transaction", signed: "R2-replaced",
      containing: ["P1-replaced", "R2-replaced"])
    let night = try await rows.audited()
    for id in night.payments.keys {
      #expect(night.payments[id] == (id == "refunded" ? "reversed P1-\(id)" : "paid P1-\(id)"), "\(id)")
    }
    #expect(night.payments.count == 12)
    #expect(!night.findings.contains { $0.hasPrefix("orphan_payment") && !$0.hasSuffix("R2-renewal") })
  }
}
