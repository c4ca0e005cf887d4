import Reconciliation
import Testing

@testable import SampleWorlds

/// The findings that a missing answer withholds.
@Suite struct MissingAnswerTests {
  /// A delivered order of one unit, and Apple's payment for two, proven by its own signed transaction or by its ID.
  private static func scene(isProven: Bool = true) -> (scene: ShopFixture, order: Order) {
    var scene = ShopFixture()
    let payment = scene.transaction { $0.quantity = 2 }
    let order = scene.order { $0.transactionId = isProven ? nil : "T1" }
    if isProven { scene.signedProof("own", for: order, of: payment) }
    if !isProven { scene.world.lookups["order"] = .verified(nil) }
    scene.delivery(of: order)
    return (scene, order)
  }

  private static func findings(_ scene: ShopFixture) -> Set<FindingKind> {
    Set(scene.world.audited().judgements["order"]?.findings.map(\.kind) ?? [])
  }

  @Test(
    "An unanswered receipt without an order withholds no finding about a proven payment",
    arguments: [
      ProofState.unanswered(.appleError), .neverChecked, .review(.accountGone), .review(.appleError),
      .review(.systemic),
    ])
  func stray(state: ProofState) {
    for (kind, changeOrder, changePayment) in Self.mismatches {
      var scene = ShopFixture()
      let order = scene.order("order", changeOrder)
      scene.signedProof("own", for: order, of: scene.transaction("T1", changePayment))
      scene.delivery(of: order)
      scene.receipt("stray", for: nil, state) { $0.userId = order.userId }
      #expect(Self.findings(scene).contains(kind), "\(kind)")
    }
  }

  /// The kinds that compare an order with its payment, each with changes of the order and of the payment.
  private static let mismatches:
    [(FindingKind, @Sendable (inout Order) -> Void, @Sendable (inout TransactionRecord) -> Void)] = [
      (.quantityMismatch, { _ in }, { $0.quantity = 2 }), (.amountMismatch, { _ in }, { $0.priceMilliunits = 1 }),
      (.currencyMismatch, { _ in }, { $0.currency = "JPY" }),
      (.accountTokenMissing, { $0.appAccountToken = "a1" }, { $0.appAccountToken = .stated(nil) }),
      (.wrongUser, { $0.appAccountToken = "a1" }, { $0.appAccountToken = .stated("b2") }),
      (.deliveredBeforePaid, { _ in }, { $0.purchaseDate = asOf - .days(3) }),
      (.purchasePredatesOrder, { _ in }, { $0.purchaseDate = asOf - .days(9) }),
      (
        .lapsedStillServed, { $0.createdAt = asOf - .days(50) },
        {
          ($0.purchaseDate, $0.expiresDate) = (asOf - .days(50), asOf - .days(20))
          $0.subscriptionStatusDate = asOf
        }
      ),
    ]

  @Test("An unanswered receipt for another order counts if that order could own the payment")
  func openOrder() {
    for (change, isWithheld) in [
      ({ _ in }, true), ({ $0.productId = "coins" }, false), ({ $0.createdAt = $0.createdAt - .days(4) }, false),
      ({ $0.transactionId = "T9" }, true),
    ] as [((inout Order) -> Void, Bool)] {
      var (scene, _) = Self.scene(isProven: false)
      let other = scene.order("other", change)
      scene.receipt("open", for: other, .unanswered(.unreachable))
      #expect(Self.findings(scene).contains(.quantityMismatch) == !isWithheld)
    }
  }

  @Test("A restore is compared with its order once its original purchase is known, which may be refunded")
  func restoreAlone() {
    for isOriginalKnown in [false, true] {
      var scene = ShopFixture()
      let stated = scene.world.rules.asOf
      func record(_ id: String) -> TransactionRecord {
        scene.transaction(id) {
          ($0.quantity, $0.originalTransactionId, $0.revocationStatedDate) = (2, "T1", stated)
        }
      }
      let records = [record("T2")] + (isOriginalKnown ? [record("T1")] : [])
      let order = scene.order(stating: "T2", with: ShopFixture.Proof(.verified(.app), of: records)) {
        ($0.status, $0.refundBookedBy) = (.refunded, stated - .days(1))
      }
      scene.delivery(of: order)
      let found = Self.findings(scene)
      #expect(found.contains(.quantityMismatch) == isOriginalKnown)
      #expect(found.contains(.refundOnlyHere) == isOriginalKnown)
    }
  }

  @Test("A test purchase pays no order, whichever order owns it and whether Apple has answered about that")
  func contestedTestPurchase() {
    for (owner, lookup) in [("user", ProofState.neverChecked), ("other", .neverChecked), ("other", .verified(nil))] {
      var scene = ShopFixture()
      let purchase = scene.transaction { $0.environment = .sandbox }
      let order = scene.order(stating: "T1", with: .list(purchase), lookup: lookup, isServed: true)
      let other = scene.order("other", by: owner) { $0.createdAt = order.createdAt - .minutes(1) }
      scene.receipt("theirs", for: other, .unanswered(.unreachable), containing: [purchase]) {
        ($0.state.kind, $0.state.signedTransactionId, $0.userId) = (.signed, "T1", "user")
      }
      #expect(scene.world.audited().judgements["order"]?.verdict?.name == "unpaid", "\(owner) \(lookup)")
    }
  }

  @Test(
    "No order is a duplicate because of a period whose owner waits for the answer about the first period",
    arguments: [ProofState.neverChecked, .unanswered(.unreachable)])
  func firstPeriodAwaited(lookup: ProofState) {
    var scene = ShopFixture()
    let period = scene.transaction("T2") {
      ($0.originalTransactionId, $0.expiresDate, $0.webOrderLineItemId) = ("T1", asOf + .days(1), "W2")
      $0.isRenewal = false
    }
    scene.order("first", stating: "T1", lookup: lookup)
    scene.order(with: .list(period))
    let found = scene.world.audited().judgements
    #expect(found["first"]?.verdict?.name == "paid" && found["order"]?.verdict?.name == "unconfirmed")
  }

  @Test("No refused ID decides about an order whose other purchase belongs to an order with an unanswered receipt")
  func refusedBesideLostPayment() {
    for isUnanswered in [true, false] {
      var scene = ShopFixture()
      let shared = scene.transaction("T1") { $0.ownership = .familyShared }
      let bought = scene.transaction("T2") { $0.appAccountToken = .stated("A") }
      scene.order(stating: "T1", with: .list(shared, bought))
      let other = scene.order("other", by: "other") { $0.appAccountToken = "a" }
      let own = scene.transaction("T3") { $0.appAccountToken = .stated("A") }
      if isUnanswered {
        scene.receipt("open", for: other, .unanswered(.unreachable))
        scene.world.transactions.removeAll { $0.transactionId == "T3" }
      } else {
        scene.signedProof("answered", for: other, of: own)
      }
      let found = scene.world.audited().judgements["order"]?.verdict?.name
      #expect(found == (isUnanswered ? "unconfirmed" : "paid"))
    }
  }

  @Test("A stuck question withholds no finding")
  func stuck() {
    for (age, isWithheld) in [(Span.hours(47), true), (.hours(48), false)] {
      var (scene, _) = Self.scene(isProven: false)
      let other = scene.order("other")
      scene.receipt("open", for: other, .unanswered(.unreachable)) { $0.state.unansweredSince = asOf - age }
      #expect(Self.findings(scene).contains(.quantityMismatch) == !isWithheld, "\(age)")
    }
  }

  @Test("A payment by its ID is compared once the notifications of its time are read, if the order has a token")
  func unreadNotifications() {
    for (token, isProven, known, isWithheld) in [
      ("a1", false, 0, true), ("a1", false, 1, false), ("a1", true, 0, false), (nil, false, 0, false),
    ] as [(String?, Bool, Int64, Bool)] {
      var (scene, order) = Self.scene(isProven: isProven)
      order.appAccountToken = token
      scene.world.orders = [.valid(order)]
      scene.world.rules.salesKnownUntil[ShopFixture.bundle] = order.createdAt + .hours(known)
      #expect(Self.findings(scene).contains(.quantityMismatch) == !isWithheld, "\(token ?? "") \(known)")
    }
  }

  @Test("A second charge is reported unless a missing answer could state a refund of the first")
  func chargedTwice() {
    for (outcome, silence, isStatedSince, isReported) in [
      (.verified, nil, false, true), (.unanswered, .hours(0), true, false), (.verified, .hours(0), false, false),
      (.verified, .hours(0), true, true), (.verified, .hours(47), false, false), (.verified, .hours(48), false, true),
    ] as [(CheckOutcome, Span?, Bool, Bool)] {
      var scene = ShopFixture()
      let order = scene.order()
      let second = scene.transaction("T2") { $0.purchaseDate = asOf - .days(1) }
      let first = scene.transaction("T1") { $0.revocationStatedDate = asOf - (isStatedSince ? .hours(12) : .days(20)) }
      scene.signedProof("of T1", for: order, of: first)
      scene.signedProof("of T2", for: order, of: second)
      scene.world.receipts[0].state.outcome = outcome
      scene.world.receipts[0].state.unansweredSince = silence.map { asOf - $0 }
      #expect(Self.findings(scene).contains(.chargedTwice) == isReported, "\(outcome) \(String(describing: silence))")
    }
  }

  @Test("An order is no duplicate while a missing answer may state a refund that would give it the purchase")
  func refundOfLostPurchase() {
    let (night, tomorrow) = (Dueness(from: asOf, rank: .critical), Dueness(from: asOf + .days(1), rank: .stale))
    let duplicate = "unpaid duplicate"
    for (silence, due, isStated, hasOther, expected) in [
      (nil, nil, false, true, duplicate), (nil, tomorrow, false, true, duplicate),
      (nil, night, false, true, "unconfirmed awaiting_evidence"),
      (.hours(0), tomorrow, false, true, "unconfirmed awaiting_evidence"),
      (.hours(48), tomorrow, false, true, duplicate), (.hours(0), tomorrow, true, true, duplicate),
      (.hours(0), tomorrow, false, false, duplicate),
    ] as [(Span?, Dueness?, Bool, Bool, String)] {
      var scene = ShopFixture()
      let records = ["T1", "T2"].map { id in
        scene.transaction(id) {
          $0.appAccountToken = .stated("a1")
          if isStated { $0.revocationStatedDate = asOf }
        }
      }
      // The second charge of the owner, who keeps the first one if Apple has refunded the second.
      let paying = hasOther ? records[0] : records[1]
      scene.order("owner", by: "ann", with: .signed(paying)) { $0.appAccountToken = "a1" }
      let proof = ShopFixture.Proof(.verified(.signed, id: "T2"), of: [records[1]]) { receipt in
        (receipt.state.unansweredSince, receipt.state.due) = (silence.map { asOf - $0 }, due)
      }
      scene.order(by: "bob", hours: 90, with: proof, isServed: true)
      if !hasOther { scene.world.transactions.removeAll { $0.transactionId == "T1" } }
      #expect(scene.world.judged()?.payment == expected, "\(String(describing: silence)) \(isStated) \(hasOther)")
    }
  }

  @Test("A job acts only on an answer of this night")
  func actions() throws {
    for (answeredAt, expected) in [
      (asOf, FindingAction.deliver), (asOf - .days(1), .look), (nil, .look),
    ] as [(Instant?, FindingAction)] {
      var scene = ShopFixture()
      let order = scene.order { $0.transactionId = "T1" }
      scene.signedProof("own", for: order, of: scene.transaction { $0.checkedAt = asOf })
      scene.world.receipts[0].state.answeredAt = answeredAt
      let finding = try #require(
        scene.world.audited().findings.first { $0.kind == .paidNotDelivered })
      #expect(finding.action == expected)
    }
  }

  @Test("A signed transaction of another product beside an unreadable payload proves nothing")
  func unreadableBesideAnother() {
    for isDamaged in [true, false] {
      var scene = ShopFixture()
      let order = scene.order()
      scene.signedProof("signed", for: order, of: scene.transaction { $0.productId = "coins" })
      if isDamaged { scene.receipt("damaged", for: order, .rejected(.malformed)) }
      scene.delivery(of: order)
      let payment = scene.world.audited().judgements["order"]?.payment
      #expect(payment == (isDamaged ? "unconfirmed not_in_receipt" : "unpaid product_mismatch"))
    }
  }

  @Test("An unknown ID beside a receipt of another app only leaves the receipt's finding")
  func foreignReceiptBesideUnknownID() {
    for (hasOther, isFound) in [(false, true), (true, false)] {
      var scene = ShopFixture()
      let order = scene.order { $0.transactionId = "unknown" }
      scene.world.lookups["order"] = .notFound()
      scene.receipt("foreign", for: order, .verified(.app)) { $0.state.bundleId = otherApp }
      if hasOther { scene.receipt("own", for: order, .verified(.app)) { $0.state.bundleId = ShopFixture.bundle } }
      scene.delivery(of: order)
      let judgement = scene.world.audited().judgements["order"]
      #expect(judgement?.verdict == .unpaid(.notFound, nil))
      #expect((judgement?.findings.contains { $0.kind == .wrongBundle }) == isFound)
    }
  }
}
