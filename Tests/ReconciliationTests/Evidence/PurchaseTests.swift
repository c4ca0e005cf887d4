import Reconciliation
import Testing

@testable import SampleWorlds

/// One payment with several transaction IDs is one purchase in owners, refunds, prices, findings and reports.
@Suite struct PurchaseTests {
  /// A subscription period under two IDs; the first one is the original ID.
  private static func period(
    _ scene: inout ShopFixture, one: (inout TransactionRecord) -> Void = { _ in },
    other: (inout TransactionRecord) -> Void = { _ in }
  ) -> (TransactionRecord, TransactionRecord) {
    let end = scene.time + .days(30)
    func describe(_ record: inout TransactionRecord) {
      (record.originalTransactionId, record.webOrderLineItemId) = ("T1", "W1")
      record.expiresDate = end
    }
    let first = scene.transaction("T1") { record in
      describe(&record)
      one(&record)
    }
    let second = scene.transaction("T2") { record in
      describe(&record)
      other(&record)
    }
    return (first, second)
  }

  @Test(
    "An order that states either ID of a period owns it, and neither ID is an orphan payment", arguments: ["T1", "T2"])
  func eitherId(id: Identifier) {
    var scene = ShopFixture()
    _ = Self.period(&scene)
    scene.delivery(of: scene.order { $0.transactionId = id })
    let outcome = scene.world.audited()
    #expect(outcome.judgements["order"]?.disposition == .settled)
    #expect(outcome.judgements["order"]?.transactionId == id)
    #expect(scene.world.findingNames == [])
  }

  @Test("Two orders that state the two IDs of one period: the second one is a duplicate")
  func twoOrders() {
    var scene = ShopFixture()
    let (first, second) = Self.period(&scene)
    let payer = scene.order("a", by: "ann")
    scene.signedProof("r1", for: payer, of: first)
    scene.delivery("d1", of: payer)
    let time = scene.time
    let other = scene.order("b", by: "bob") { order in
      order.createdAt = time + .hours(3)
      order.transactionId = "T2"
    }
    scene.signedProof("r2", for: other, of: second)
    scene.delivery("d2", of: other)
    let outcome = scene.world.audited()
    #expect(outcome.judgements["a"]?.disposition == .settled)
    #expect(outcome.judgements["b"]?.payment == "unpaid duplicate")
    #expect(scene.world.findingNames == ["delivered_not_paid on b", "duplicate_claim on b"])
  }

  @Test("A receipt that lists both IDs of one period charges its order once, and the report shows the smallest ID")
  func chargedOnce() {
    var scene = ShopFixture()
    let (first, second) = Self.period(&scene)
    let order = scene.order()
    scene.receipt(for: order, .verified(.app), containing: [second, first])
    scene.delivery(of: order)
    #expect(scene.world.audited().judgements["order"]?.transactionId == "T1")
    #expect(scene.world.findingNames == [])
  }

  @Test("Without Apple's ID of the period, the product and the purchase date form the key")
  func withoutWebOrder() {
    for isSameDate in [true, false] {
      var scene = ShopFixture()
      let later = scene.time + .hours(1)
      let (first, second) = Self.period(
        &scene, one: { $0.webOrderLineItemId = nil },
        other: { record in
          record.webOrderLineItemId = nil
          if !isSameDate { record.purchaseDate = later }
        })
      #expect((first.purchaseKey == second.purchaseKey) == isSameDate)
    }
  }

  /// Statements about the two IDs: days before the audit, and whether Apple calls the purchase refunded.
  @Test(
    "The newest fact about any ID decides about a refund",
    arguments: [
      ((3, true), (5, false), true), ((5, true), (3, false), false), ((3, true), (3, false), true),
      ((5, false), (3, true), true), ((3, false), (5, true), false), ((5, false), (3, false), false),
    ] as [((Int64, Bool), (Int64, Bool), Bool)])
  func refund(one: (Int64, Bool), other: (Int64, Bool), isReversed: Bool) {
    var scene = ShopFixture(time: asOf - .days(20))
    func state(_ fact: (days: Int64, isRefunded: Bool)) -> (inout TransactionRecord) -> Void {
      { record in
        record.signedDate = asOf - .days(fact.days)
        record.revocationStatedDate = record.signedDate
        if fact.isRefunded { record.revocation = Revocation(date: asOf - .days(6)) }
      }
    }
    _ = Self.period(&scene, one: state(one), other: state(other))
    scene.order { $0.transactionId = "T2" }
    let judgement = scene.world.audited().judgements["order"]
    #expect(judgement?.verdict?.name == (isReversed ? "reversed" : "paid"))
  }

  @Test("An upgrade under one ID of a period is no refund under the other")
  func upgrade() {
    var scene = ShopFixture(time: asOf - .days(20))
    _ = Self.period(
      &scene, one: { ($0.channel, $0.isUpgraded) = (.verifyReceipt, true) },
      other: { record in
        (record.channel, record.revocation) = (.verifyReceipt, Revocation(date: asOf - .days(6), isUnsigned: true))
      })
    scene.delivery(of: scene.order { $0.transactionId = "T2" })
    #expect(scene.world.findingNames == [])
  }

  @Test("A refund of the original purchase is a refund of its restore, although the restore states none")
  func refundOfRestored() {
    var scene = ShopFixture()
    let time = scene.time
    scene.transaction("T1") { $0.revocation = Revocation(date: time + .hours(5)) }
    let restore = scene.transaction("T2") { record in
      record.originalTransactionId = "T1"
      record.revocationStatedDate = nil
    }
    let order = scene.order()
    scene.signedProof(for: order, of: restore)
    #expect(scene.world.audited().judgements["order"]?.verdict?.name == "reversed")
  }

  @Test("The newest price of any ID is compared with the order's amount")
  func price() {
    var scene = ShopFixture()
    _ = Self.period(
      &scene, one: { $0.priceMilliunits = 9_900 },
      other: { record in
        record.priceMilliunits = 100
        record.signedDate = asOf - .days(1)
      })
    scene.delivery(of: scene.order { $0.transactionId = "T2" })
    #expect(scene.world.findingNames == [])
  }

  @Test("An unclaimed period under two IDs is one orphan payment, under the smallest ID")
  func orphan() {
    var scene = ShopFixture()
    _ = Self.period(&scene)
    #expect(scene.world.findingNames == ["orphan_payment on T1"])
  }

  @Test("The order of the transactions changes nothing")
  func anyOrder() {
    var scene = ShopFixture()
    _ = Self.period(
      &scene, one: { $0.revocation = Revocation(date: asOf) },
      other: { $0.signedDate = asOf - .days(9) })
    let records = scene.world.transactions
    let folded = TransactionRecord.foldingPurchases(records)
    #expect(Set(TransactionRecord.foldingPurchases(records.reversed())) == Set(folded))
    #expect(folded.allSatisfy { $0.revocation != nil } && folded.map(\.otherIds) == [["T2"], ["T1"]])
  }

  // MARK: - Purchases of amount 0, and access without a purchase

  @Test("An order of amount 0 without proof and ID is paid: settled with goods, void without, and no finding")
  func nothingToPay() {
    for (hasGoods, status) in [(true, OrderStatus.pending), (true, .verified), (false, .verified), (false, .refunded)] {
      var scene = ShopFixture()
      let order = scene.order { ($0.amount, $0.status) = (.of(0), status) }
      if hasGoods { scene.delivery(of: order) }
      let judgement = scene.world.audited().judgements["order"]
      #expect(judgement?.payment == "paid nothing_to_pay")
      #expect(judgement?.disposition == (hasGoods ? .settled : .void))
      #expect(scene.world.findingNames == [])
    }
  }

  @Test("A purchase of price 0 that no order is linked to is an unclaimed redemption")
  func redemption() {
    var scene = ShopFixture()
    scene.transaction { $0.priceMilliunits = 0 }
    let finding = scene.world.audited().findings.first
    #expect(finding?.kind == .unclaimedRedemption && finding?.severity == .minor)
    #expect(finding?.atStake == nil && finding?.isAmountAtRiskUnknown == false)
  }

  @Test("The price of a month and the price of the whole commitment are both right", arguments: [990, 11_880, 5_000])
  func commitment(minorUnits: Int64) {
    var scene = ShopFixture()
    let order = scene.order { $0.amount = .of(minorUnits) }
    let record = scene.transaction { record in
      record.details.commitmentInfo =
        #"{"billingPeriodNumber":3,"commitmentPrice":118800,"totalBillingPeriods":12}"#
    }
    scene.signedProof(for: order, of: record)
    scene.delivery(of: order)
    let finding = scene.world.audited().findings.first
    #expect((finding?.kind == .amountMismatch) == (minorUnits == 5_000))
    if minorUnits == 5_000 { #expect(finding?.reason.text.contains("month 3 of 12") == true) }
  }
}
