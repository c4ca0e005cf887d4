import Reconciliation
import Testing

@testable import SampleWorlds

/// The fields of a finding besides its kind.
@Suite struct FindingFieldTests {

  private func found(_ kind: FindingKind, in scene: ShopFixture) throws -> Finding {
    try #require(scene.world.finding(kind))
  }

  private func found(_ kind: FindingKind, _ build: (inout ShopFixture) -> Void) throws -> Finding {
    try #require(shop(build).finding(kind))
  }

  @Test("On an order: the order, its receipt, its delivery and the date of the evidence")
  func onOrder() throws {
    var scene = ShopFixture()
    let order = scene.paidOrder(transaction: { record in
      record.purchaseDate = ordered - .hours(1)
      record.checkedAt = asOf - .days(1)
    })
    scene.receipt("r1", for: order, .verified(.app))
    scene.delivery("d1", of: order) { $0.userId = "stranger" }
    var expected = Finding(
      kind: .wrongUser, subject: .order("order"),
      reason: "User \(user: "user") ordered, user \(user: "stranger") received the goods.")
    (expected.orderId, expected.userId, expected.productId) = ("order", "user", "gems.100")
    (expected.transactionId, expected.receiptId, expected.deliveryId) = ("T1", "r1", "d1")
    (expected.environment, expected.bundleId) = (.production, ShopFixture.bundle)
    (expected.amount, expected.atStake) = (.of(990), .of(990))
    (expected.occurredAt, expected.paidAt) = (ordered - .hours(1), ordered - .hours(1))
    expected.orderedAt = ordered
    (expected.deliveredAt, expected.evidenceCheckedAt) = (ordered + .minutes(1), asOf - .days(1))
    #expect(try found(.wrongUser, in: scene) == expected)
  }

  @Test("Goods that only other users have are left to a person, and the reason names a holder")
  func goodsWithOthers() throws {
    let others: [String] = ["stranger", "friend"]
    let told: [(users: [String], words: String?)] = [
      (["user"], nil), (["alias"], nil), (["stranger"], "user stranger"), (others, "user stranger and 1 more"),
      (["stranger", "user"], nil),
    ]
    for (users, words) in told {
      for isRefunded in [false, true] {
        var scene = ShopFixture()
        scene.world.rules.people = People(aliases: [("user", "alias")])
        scene.quantity = Int32(users.count)
        let refund = Revocation(date: ordered)
        let order = isRefunded ? scene.paidOrder(transaction: { $0.revocation = refund }) : scene.order()
        if !isRefunded { scene.receipt(for: order, .rejected(.signatureInvalid)) }
        for (number, user) in users.enumerated() {
          scene.delivery("d\(number)", of: order) { delivery in
            (delivery.userId, delivery.quantity) = (Identifier(user), 1)
          }
        }
        let kinds: [FindingKind] =
          isRefunded ? [.refundedStillDelivered, .deliveredAfterRefund] : [.deliveredNotPaid]
        let findings = try kinds.map { try found($0, in: scene) }
        let text = findings[0].reason.text
        #expect(text.contains("he user still has the goods") == (isRefunded && words == nil), "\(text)")
        #expect(text.contains("The user has goods") == (!isRefunded && words == nil), "\(text)")
        if let words { #expect(text.contains("with \(words)\(isRefunded ? "." : ":")"), "\(text)") }
        #expect(findings[0].action == (words == nil ? .takeBack : .look))
        #expect(findings[0].goodsHolder == (words == nil ? nil : "stranger"))
        #expect(findings[0].deliveryId == (words == nil ? nil : "d0"))
        // One finding takes all goods back.
        for finding in findings.dropFirst() { #expect(finding.action == .look) }
      }
    }
  }

  @Test(
    "A surplus that another user has is not taken back by a job",
    arguments: [("user", .takeBack, nil), ("stranger", .look, "stranger")] as [(Identifier, FindingAction, Identifier?)]
  )
  func surplusWithOthers(user: Identifier, action: FindingAction, holder: Identifier?) throws {
    let finding = try found(.deliveredTwice) { scene in
      scene.delivery("d2", of: scene.sale()) { $0.userId = user }
    }
    #expect(finding.action == action && finding.goodsHolder == holder)
  }

  @Test("On an order without a payment: the order's date, and the date of the oldest answer")
  func onUnpaidOrder() throws {
    var scene = ShopFixture()
    let order = scene.order()
    scene.delivery(of: order)
    for (id, hours) in [("r1", 3), ("r2", 5), ("r3", 4)] as [(String, Int64)] {
      scene.receipt(id, for: order, .rejected(.signatureInvalid)) { receipt in
        let answered = asOf - .hours(hours)
        (receipt.state.lastAttempt, receipt.state.answeredAt) = (answered, answered)
      }
    }
    let finding = try found(.deliveredNotPaid, in: scene)
    #expect(finding.evidenceCheckedAt == asOf - .hours(5) && finding.occurredAt == ordered)
    #expect(finding.paidAt == nil && finding.receiptId == "r1" && finding.environment == nil)
    #expect(scene.world.audited().judgements["order"]?.checkedAt == asOf - .hours(3))
    let forged = try found(.signatureInvalid, in: scene)
    #expect(forged.receiptId == "r1" && forged.evidenceCheckedAt == asOf - .hours(3))
    // One receipt has no answer.
    scene.receipt("r4", for: order, .rejected(.signatureInvalid)) { $0.state.answeredAt = nil }
    #expect(try found(.deliveredNotPaid, in: scene).evidenceCheckedAt == nil)
  }

  @Test(
    "A payload that a local check refused leaves the date and the action of a paid order alone",
    arguments: [(EvidenceChannel.offline, FindingAction.deliver), (.verifyReceipt, .look)])
  func besideRefusedPayload(channel: EvidenceChannel, action: FindingAction) throws {
    let finding = try found(.paidNotDelivered) { scene in
      let order = scene.order(with: .signed(scene.transaction { $0.checkedAt = asOf }))
      scene.receipt("refused", for: order, .rejected(.malformed)) {
        ($0.state.channel, $0.state.answeredAt) = (channel, asOf - .days(1))
      }
    }
    #expect(finding.action == action)
    #expect(finding.evidenceCheckedAt == (action == .deliver ? asOf : asOf - .days(1)))
  }

  @Test("The receipt of a finding supports it, and was never rejected for another reason")
  func evidence() throws {
    let forged = ProofState.rejected(.signatureInvalid)
    var scene = ShopFixture()
    let records = ["T1", "T2", "T3"].map { scene.transaction($0) }
    let order = scene.order { $0.transactionId = "T1" }
    scene.receipt("a", for: order, forged)
    scene.receipt("b", for: order, .verified(.signed, id: "T1")) { $0.defect = "status 'odd'" }
    scene.signedProof("c", for: order, of: records[1])
    scene.signedProof("d", for: order, of: records[0])
    #expect(try found(.paidNotDelivered, in: scene).receiptId == "d")
    #expect(try found(.chargedTwice, in: scene).receiptId == "c")
    #expect(try found(.signatureInvalid, in: scene).receiptId == "a")
    #expect(try found(.badRow, in: scene).receiptId == "b")
    // A proof of the transaction itself counts before an app receipt.
    scene.world.receipts.removeAll { $0.receiptId == "c" }
    scene.receipt("e", for: order, .unanswered(.unreachable))
    scene.receipt("f", for: order, .verified(.app), containing: [records[2]])
    #expect(try found(.paidNotDelivered, in: scene).receiptId == "d")
    scene.world.receipts.removeAll { $0.receiptId == "d" || $0.receiptId == "e" }
    scene.world.lookups[order.orderId] = .verified(nil)
    let findings = scene.world.audited().findings
    #expect(findings.filter { $0.kind == .paidNotDelivered }.map(\.receiptId) == ["f"])
    // Only the look-up is left, and no receipt supports the finding.
    scene.world.receipts.removeAll { $0.receiptId == "f" }
    #expect(try found(.paidNotDelivered, in: scene).receiptId == nil)
    // The verdict rests on a rejected receipt.
    scene = ShopFixture()
    let unpaid = scene.order()
    scene.delivery(of: unpaid)
    scene.receipt("a", for: unpaid, .rejected(.malformed))
    scene.receipt("b", for: unpaid, forged)
    #expect(try found(.deliveredNotPaid, in: scene).receiptId == "b")
  }

  @Test("Findings of one order about one transaction have the same dates")
  func datesOfOneTransaction() {
    let bought = ordered - .hours(1)
    let duplicate = shop { scene in
      scene.sale(bought: { $0.purchaseDate = bought })
      scene.order("second", stating: "T1", hours: 1, lookup: .verified(nil), isServed: true)
    }
    let other = shop { scene in
      scene.transaction { $0.purchaseDate = bought }
      scene.order(stating: "T1", lookup: .verified(nil), isServed: true) { $0.productId = "gems.500" }
    }
    let findings = [duplicate.judged("second")?.findings ?? [], other.audited().findings]
    #expect(findings[0].map(\.kind) == [.deliveredNotPaid, .duplicateClaim])
    #expect(findings[1].map(\.kind) == [.deliveredNotPaid, .productMismatch])
    #expect(findings.joined().allSatisfy { $0.transactionId == "T1" && $0.occurredAt == bought && $0.paidAt == nil })
  }

  @Test(
    "A job gets the missing or surplus units, and delivers nothing twice",
    arguments: [
      ([], "paid_not_delivered deliver 0 of 3"), ([1], "partly_delivered deliver_rest 1 of 3"),
      ([1, 4], "delivered_twice take_back 5 of 3"),
    ] as [([Int64], String)])
  func units(delivered: [Int64], expected: String) {
    let acts = acts { scene in
      scene.quantity = 3
      let order = scene.paidOrder()
      for (number, units) in delivered.enumerated() { scene.delivery("d\(number)", of: order) { $0.quantity = units } }
    }
    #expect(acts == [expected])
  }

  @Test("A job takes back unpaid goods, and reinstates goods after a reversed refund")
  func unitsOfOtherFindings() {
    let unpaid = acts { $0.order(with: .forged, isServed: true) }
    #expect(unpaid == ["delivered_not_paid take_back 1 of 1", "signature_invalid look -"])
    for hasOne in [true, false] {
      let reversed = acts { scene in
        scene.quantity = 2
        let order = scene.paidOrder(transaction: { $0.revocationWithdrawnDate = asOf - .hours(3) })
        scene.delivery("d1", of: order) { ($0.quantity, $0.revokedAt) = (1, asOf - .hours(9)) }
        if hasOne { scene.delivery("d2", of: order) { $0.quantity = 1 } }
      }
      let missing = hasOne ? "partly_delivered look -" : "paid_not_delivered look -"
      #expect(reversed == [missing, "refund_reversed_not_reinstated reinstate \(hasOne ? 1 : 0) of 2"])
    }
  }

  /// Kind, action and units of all findings.
  private func acts(_ build: (inout ShopFixture) -> Void) -> [String] {
    shop(build).audited().findings.map { finding in
      let units = finding.units.map { "\($0.delivered) of \($0.ordered)" } ?? "-"
      return "\(finding.kind.rawValue) \(finding.action.rawValue) \(units)"
    }
  }

  @Test(
    "All charges but one are at risk, and charges in two currencies are of unknown amount",
    arguments: [("USD", Money?.some(.of(990 + 990))), ("EUR", nil)])
  func charges(currency: String, expected: Money?) throws {
    var scene = ShopFixture()
    let order = scene.order()
    let later = ordered + .minutes(7)
    let records = ["T1", "T2", "T3"].map { id in
      scene.transaction(id) {
        $0.purchaseDate = id == "T1" ? ordered : later
        $0.priceMilliunits = 9_900
        $0.currency = id == "T3" ? currency : "USD"
      }
    }
    scene.receipt(for: order, .verified(.app), containing: records)
    let finding = try found(.chargedTwice, in: scene)
    #expect(finding.atStake == expected && finding.isAmountAtRiskUnknown == (expected == nil))
    #expect(finding.transactionId == "T2" && finding.paidAt == later && finding.occurredAt == later)
    #expect(try found(.paidNotDelivered, in: scene).atStake == .of(990))
    // A refunded amount is no longer at risk.
    for (percentage, left) in [(90_000, expected.map { Money.of($0.minorUnits - 891) }), (nil, nil)]
      as [(Int32?, Money?)]
    {
      scene.world.transactions[1].revocation = Revocation(
        date: asOf - .hours(1), percentage: percentage, type: "REFUND_PRORATED")
      let rest = try found(.chargedTwice, in: scene)
      #expect(rest.atStake == left && rest.isAmountAtRiskUnknown == (left == nil))
    }
  }

  @Test("On a row that breaks the contract: its readable fields")
  func onBadRow() throws {
    var scene = ShopFixture()
    var bad = BadOrder.broken("bad")
    bad.bundleId = ShopFixture.bundle
    scene.world.orders.append(.bad(bad))
    var expected = Finding(
      kind: .badRow, subject: .order("bad"), reason: "The order row breaks the contract: \(bad.defect).")
    (expected.orderId, expected.userId, expected.productId) = ("bad", "user", "gems.100")
    (expected.transactionId, expected.bundleId, expected.occurredAt) = ("T1", ShopFixture.bundle, ordered)
    #expect(try found(.badRow, in: scene) == expected)
  }

  @Test("On a payment that no order claims: Apple's facts, and the sender of the receipt")
  func onTransaction() throws {
    var scene = ShopFixture()
    let record = scene.transaction { $0.checkedAt = asOf - .hours(2) }
    scene.receipt("r1", for: nil, .verified(.app), containing: [record]) { $0.userId = "sender" }
    var expected = Finding(
      kind: .orphanPayment, subject: .transaction("T1"),
      reason: "Apple confirms a payment for gems.100 that no order claims.")
    (expected.userId, expected.productId, expected.transactionId) = ("sender", "gems.100", "T1")
    (expected.receiptId, expected.environment, expected.bundleId) = ("r1", .production, ShopFixture.bundle)
    (expected.amount, expected.atStake) = (.of(990), .of(990))
    (expected.occurredAt, expected.paidAt) = (ordered, ordered)
    expected.evidenceCheckedAt = asOf - .hours(2)
    #expect(try found(.orphanPayment, in: scene) == expected)
    // A refunded amount is no longer at risk.
    for (percentage, left) in [(90_000, Money.of(99)), (nil, nil)] as [(Int32?, Money?)] {
      scene.world.transactions[0].revocation = Revocation(
        date: asOf - .hours(1), percentage: percentage, type: "REFUND_PRORATED")
      let rest = try found(.orphanPayment, in: scene)
      #expect(rest.atStake == left && rest.isAmountAtRiskUnknown == (left == nil))
    }
    scene.world.transactions[0].revocation = nil
    // Without a price, the amount at risk is unknown.
    scene.world.transactions[0].priceMilliunits = nil
    #expect(try found(.orphanPayment, in: scene).isAmountAtRiskUnknown)
  }

  @Test("On a delivery without an order")
  func onDelivery() throws {
    var scene = ShopFixture()
    let order = scene.order()
    scene.delivery("d1", of: order) { $0.orderId = "missing" }
    var expected = Finding(
      kind: .orphanDelivery, subject: .delivery("d1"),
      reason: "The delivery is for order missing, which does not exist."
    )
    (expected.orderId, expected.userId, expected.productId, expected.deliveryId) = ("missing", "user", "gems.100", "d1")
    (expected.occurredAt, expected.deliveredAt) = (ordered + .minutes(1), ordered + .minutes(1))
    expected.isAmountAtRiskUnknown = true
    #expect(try found(.orphanDelivery, in: scene) == expected)
  }

  @Test("A cancelled order with goods is not delivered again", arguments: [true, false])
  func deliveredAndCancelled(isDelivered: Bool) throws {
    let action = try found(.cancelledButPaid) { scene in
      let order = scene.paidOrder { $0.status = .cancelled }
      if isDelivered { scene.delivery(of: order) }
    }.suggestedAction
    #expect(action.contains("and deliver,") != isDelivered)
    #expect(action.contains("because its goods are delivered") == isDelivered)
    #expect(action.contains("request a refund from Apple (reportaproblem.apple.com)."))
  }

  @Test(
    "A job neither delivers nor takes back units if Apple's quantity differs from the order's",
    arguments: [
      (3, 1, 1, .partlyDelivered, 0), (3, 1, 0, .paidNotDelivered, 330), (3, 2, 1, .partlyDelivered, 330),
      (1, 3, 3, .deliveredTwice, 0), (1, 3, 4, .deliveredTwice, 990), (1, 3, 0, .paidNotDelivered, 990),
    ] as [(Int32, Int32, Int64, FindingKind, Int64)])
  func unitsThatApplePaidFor(
    ordered: Int32, charged: Int32, delivered: Int64, kind: FindingKind, stake: Int64
  ) throws {
    let finding = try found(kind) { scene in
      scene.quantity = ordered
      let order = scene.paidOrder(transaction: { $0.quantity = charged })
      if delivered > 0 { scene.delivery(of: order) { $0.quantity = delivered } }
    }
    #expect(finding.action == .look && finding.units == nil && (finding.atStake ?? .of(0)) == .of(stake))
    #expect(finding.reason.text.hasSuffix("Apple's transaction is for \(charged)."), "\(finding.reason)")
    #expect(!finding.reason.text.contains("Paid for"))
  }

  /// The share of a refund that is half of the amount.
  private static let half = Revocation(date: asOf - .hours(2), percentage: 50_000, type: "REFUND_PRORATED")

  @Test("The action of a finding follows from the order and its payment", arguments: actions)
  func actionOfTheFirstFinding(row: Case<String>) throws {
    let finding = try #require(row.judgement?.findings.first { row.expected.hasPrefix($0.kind.rawValue) })
    #expect("\(finding.kind.rawValue) \(finding.action.rawValue)" == row.expected)
  }

  private static let actions: [Case<String>] = [
    Case("a paid order without goods", "paid_not_delivered deliver") { $0.paidOrder() },
    Case("goods of an old purchase", "paid_not_delivered look") { $0.paid { $0.purchaseDate = ordered - .days(31) } },
    Case("goods of another account's purchase", "paid_not_delivered look") {
      $0.paidOrder({ $0.appAccountToken = "a" }, transaction: { $0.appAccountToken = .stated("b") })
    },
    Case("a partial refund", "partial_refund book_refund") { $0.bought { $0.revocation = half } },
    Case("a partial refund of an order with status refunded", "partial_refund look") {
      $0.sale({ $0.status = .refunded }, bought: { $0.revocation = half })
    },
    Case("an order with status refunded", "paid_not_delivered deliver") {
      $0.paidOrder({ $0.status = .refunded }) { ($0.revocationStatedDate, $0.signedDate) = (asOf, asOf) }
    },
    Case("an order with status refunded, and a channel that cannot state refunds", "paid_not_delivered look") {
      $0.paidOrder({ $0.status = .refunded }) { ($0.revocationStatedDate, $0.signedDate) = (nil, asOf) }
    },
  ]

  @Test("A finding about a refund, or its reversal, counts its age from there; missing goods count from the purchase")
  func ageOfRefunds() throws {
    let (refunded, reversed) = (asOf - .hours(2), asOf - .hours(3))
    let refund = shop { $0.sale(bought: { $0.revocation = Revocation(date: refunded) }) }
    for kind in [FindingKind.refundedStillDelivered, .refundNotBooked] {
      #expect(refund.finding(kind)?.occurredAt == refunded)
    }
    let reversal = shop {
      $0.sale(bought: { $0.revocationWithdrawnDate = reversed }, goods: { $0.revokedAt = reversed - .hours(1) })
    }
    #expect(reversal.finding(.refundReversedNotReinstated)?.occurredAt == reversed)
    #expect(reversal.finding(.paidNotDelivered)?.occurredAt.map { $0 < ordered + .hours(1) } == true)
  }

  @Test(
    "A person decides about goods that could be delivered twice or were partly refunded",
    arguments: [
      (false, false, true, .deliver), (false, true, false, .look), (false, true, true, .look),
      (true, false, false, .look), (true, true, true, .look),
    ] as [(Bool, Bool, Bool, FindingAction)])
  func goodsLeftToPeople(isOpen: Bool, isPart: Bool, isTakenBack: Bool, action: FindingAction) throws {
    let finding = try found(.paidNotDelivered) { scene in
      let order = scene.paidOrder(transaction: { $0.revocation = isPart ? Self.half : nil })
      if isTakenBack { scene.delivery(of: order) { $0.revokedAt = asOf - .hours(1) } }
      if isOpen { scene.order("other", with: .unanswered) }
    }
    #expect(finding.action == action)
    #expect((finding.units == nil) == (action == .look))
    #expect((finding.suggestedAction == finding.kind.suggestedAction) == (action == .deliver))
    #expect(finding.reason.text.contains("A missing answer") == (isOpen && !isPart))
    #expect(finding.reason.text.contains("refunded a part") == isPart)
  }

  @Test(
    "Apple is asked again before goods are delivered on an answer of an earlier night",
    arguments: [(0, false, "Deliver the"), (3, false, "Ask Apple again"), (3, true, "Ask Apple again")]
      as [(Int64, Bool, String)])
  func goodsAwaitingAnAnswerOfThisNight(hours: Int64, isPart: Bool, start: String) throws {
    let finding = try found(.paidNotDelivered) {
      let part = Revocation(date: asOf - .hours(5), percentage: 50_000, type: "REFUND_PRORATED")
      $0.paidOrder(transaction: { ($0.checkedAt, $0.revocation) = (asOf - .hours(hours), isPart ? part : nil) })
    }
    #expect(finding.suggestedAction.hasPrefix(start), "\(finding.suggestedAction)")
    #expect(finding.suggestedAction.hasSuffix(finding.kind.suggestedAction))
    #expect(finding.suggestedAction.split(separator: ". ").allSatisfy { $0.split(separator: " ").count <= 25 })
  }

  @Test("The suggestion begins with a check by a person if a rule took the action from the shop's jobs")
  func suggestionsLeftToPeople() throws {
    let findings = [
      (try found(.deliveredNotPaid) { $0.order(isServed: true) }, FindingAction.look),
      (try found(.deliveredNotPaid) { $0.order(with: .forged, isServed: true) }, .takeBack),
      (try found(.partialRefund) { $0.sale({ $0.status = .refunded }, bought: { $0.revocation = Self.half }) }, .look),
      (try found(.partialRefund) { $0.bought { $0.revocation = Self.half } }, .bookRefund),
    ]
    for (finding, action) in findings {
      #expect(finding.action == action)
      #expect(finding.suggestedAction.hasPrefix("Read the reason") == (action == .look), "\(finding.suggestedAction)")
      #expect(finding.suggestedAction.hasSuffix(finding.kind.suggestedAction))
    }
  }

  @Test("A duplicate claim without goods has none to take back", arguments: [true, false])
  func duplicateWithoutGoods(isServed: Bool) throws {
    let finding = try found(.duplicateClaim) { scene in
      scene.sale()
      scene.order("second", stating: "T1", hours: 1, lookup: .verified(nil), isServed: isServed)
    }
    #expect(finding.suggestedAction.contains("take back") == isServed)
  }

  @Test("A refund to book has its amount although another finding of the order has the amount at risk")
  func refundToBook() throws {
    let part = try found(.partialRefund) { $0.paid { $0.revocation = Self.half } }
    #expect(part.action == .bookRefund && part.atStake == nil && part.refundToBook == .of(495))
    let whole = try found(.refundNotBooked) { $0.bought { $0.revocation = Revocation(date: asOf - .hours(2)) } }
    #expect(whole.action == .bookRefund && whole.atStake == nil && whole.refundToBook == .of(990))
  }

  @Test("On a receipt without an order")
  func onReceipt() throws {
    var scene = ShopFixture()
    scene.receipt("r1", for: nil, .verified(.app)) { receipt in
      (receipt.userId, receipt.claimedEnvironment, receipt.orderId) = ("sender", "Sandbox", "missing")
      (receipt.state.environment, receipt.state.bundleId) = (.production, ShopFixture.bundle)
      receipt.state.lastAttempt = asOf - .hours(2)
    }
    var expected = Finding(
      kind: .environmentMislabelled, subject: .receipt("r1"),
      reason: "The client stated the environment Sandbox for receipt r1; Apple's is Production.")
    (expected.userId, expected.receiptId, expected.occurredAt) = ("sender", "r1", ordered)
    expected.orderId = "missing"
    (expected.environment, expected.bundleId) = (.production, ShopFixture.bundle)
    expected.evidenceCheckedAt = asOf - .hours(2)
    #expect(try found(.environmentMislabelled, in: scene) == expected)
  }

  @Test("On an order without an answer: its age and the number of attempts")
  func onSilentOrder() throws {
    var scene = ShopFixture()
    let order = scene.order { $0.createdAt = asOf - .days(4) }
    scene.receipt("r1", for: order, .unanswered(.rateLimited)) { $0.state.attempts = 3 }
    scene.receipt("r2", for: order, .unanswered(.rateLimited)) { $0.state.attempts = 2 }
    let reason = Reason(Self.unconfirmed(4, " after 3 or more attempts: Apple limited our requests."))
    #expect(try found(.stuckUnconfirmed, in: scene).reason == reason)
    // A reason that counted days would be a nightly event of the finding.
    scene.world.rules.asOf = asOf + .days(1)
    #expect(try found(.stuckUnconfirmed, in: scene).reason == reason)
  }

  private static func unconfirmed(_ days: Int64, _ words: String) -> String {
    "Unconfirmed since \((asOf - .days(days)).text)\(words)"
  }

  @Test(
    "The number of attempts is written in words",
    arguments: [
      (0, ", never asked: "), (1, " after 1 attempt: "), (2, " after 2 attempts: "), (9, " after 3 or more attempts: "),
    ])
  func attempts(count: Int32, words: String) throws {
    let finding = try found(.stuckUnconfirmed) {
      $0.order(with: .init(.unanswered(.unreachable)) { $0.state.attempts = count })
    }
    #expect(finding.reason.text == Self.unconfirmed(4, words) + "Apple could not be reached.")
  }

  @Test(
    "The reason for an order that cannot be looked up names the channel, not a missing answer",
    arguments: [(false, false), (true, false), (false, true)])
  func lookupImpossible(canAsk: Bool, hasReceipt: Bool) throws {
    let world = shop { scene in
      if !canAsk { scene.world.rules.appsWithLookup = [] }
      let order = scene.order(stating: "T1")
      if hasReceipt { scene.receipt(for: order, .neverChecked) }
    }
    let isBeyond = !canAsk && !hasReceipt
    let reason = try #require(world.finding(.stuckUnconfirmed)).reason.text
    #expect(reason.hasPrefix(Self.unconfirmed(4, ", never asked: ")), "\(reason)")
    #expect(reason.contains("the app's channel cannot look up a transaction ID") == isBeyond, "\(reason)")
    #expect(reason.contains("has not been asked yet") != isBeyond, "\(reason)")
    let (judgement, reasoning) = try world.explained()
    #expect(judgement.payment == "unconfirmed never_checked")
    #expect(reasoning.steps.last?.because.contains("its app's channel cannot look up") == isBeyond)
  }

  @Test("On a receipt without an order and without an answer")
  func onSilentReceipt() throws {
    var scene = ShopFixture()
    // A bad signature of Apple's own answer proves nothing about the receipt.
    for (reason, clause) in [
      (PaymentReason.rateLimited, "Apple limited our requests"), (.signatureInvalid, "Apple answered with an error"),
    ] {
      scene.world.receipts = []
      scene.receipt("r1", for: nil, .unanswered(reason)) { receipt in
        receipt.state.attempts = 7
        receipt.receivedAt = asOf - .days(3)
      }
      var expected = Finding(
        kind: .stuckUnconfirmed, subject: .receipt("r1"),
        reason: Reason(Self.unconfirmed(3, " after 3 or more attempts: \(clause).")))
      (expected.userId, expected.receiptId) = ("user", "r1")
      (expected.occurredAt, expected.evidenceCheckedAt) = (asOf - .days(3), asOf)
      #expect(try found(.stuckUnconfirmed, in: scene) == expected)
    }
  }

  @Test("A finding on an undated row has no date")
  func onUndatedRows() throws {
    var order = BadOrder.broken("order")
    var scene = ShopFixture()
    var delivery = scene.delivery(of: scene.order()) { $0.defect = "delivered_at is infinite" }
    var receipt = scene.receipt(for: nil, .neverChecked) { $0.defect = "received_at is infinite" }
    for isUndated in [true, false] {
      (order.isUndated, delivery.isUndated, receipt.isUndated) = (isUndated, isUndated, isUndated)
      let rules = scene.world.rules
      var findings = Judgement(reporting: order).findings
      findings += OrphanFindings.findings(on: receipt, rules: rules)
      let onDelivery = try #require(OrphanFindings.finding(on: delivery, rules: rules))
      #expect((onDelivery.deliveredAt == nil) == isUndated)
      findings.append(onDelivery)
      #expect(findings.map(\.kind) == [.badRow, .badRow, .badRow])
      #expect(findings.allSatisfy { ($0.occurredAt == nil) == isUndated })
    }
  }

  /// Purchases of a non-consumable, an hour apart.
  private static func purchases(_ orders: String...) -> ShopFixture {
    var scene = ShopFixture()
    scene.world.products = [.init(productId: "gems.100", type: .nonConsumable)]
    for text in orders {
      let record = scene.transaction("T" + text) { $0.checkedAt = asOf - .hours(3) }
      scene.order(text, stating: record.transactionId, lookup: .verified(nil), isServed: true)
      scene.time = scene.time + .hours(1)
    }
    return scene
  }

  @Test("On the second purchase of a non-consumable")
  func onSecondPurchase() throws {
    let bought = ordered + .hours(1)
    var expected = Finding(
      kind: .boughtTwice, subject: .order("second"),
      reason: "The same person paid for gems.100 before, with order first.")
    (expected.orderId, expected.userId, expected.productId) = ("second", "user", "gems.100")
    (expected.transactionId, expected.environment, expected.bundleId) = ("Tsecond", .production, ShopFixture.bundle)
    (expected.amount, expected.occurredAt, expected.paidAt) = (.of(990), bought, bought)
    (expected.deliveredAt, expected.evidenceCheckedAt) = (bought + .minutes(1), asOf - .hours(3))
    #expect(try found(.boughtTwice, in: Self.purchases("first", "second")) == expected)
  }

  @Test("Repeated purchases are sorted by order ID, whatever the order of judgement")
  func onFurtherPurchases() throws {
    let scene = Self.purchases("b", "d", "a", "c")
    var rules = scene.world.rules
    rules.catalogue = scene.world.products.map { Catalogue($0) }
    let judgements = scene.world.audited().judgements
    var (repeated, others) = (RepeatedPurchases(rules: rules), RepeatedPurchases(rules: rules))
    for id in ["c", "d"] as [Identifier] { repeated.take(try #require(judgements[id])) }
    for id in ["b", "a"] as [Identifier] { others.take(try #require(judgements[id])) }
    repeated.join(others)
    #expect(repeated.findings().map(\.subject.id) == ["a", "c", "d"])
    #expect(repeated.findings().allSatisfy { $0.reason.text.hasSuffix("with order b.") })
  }

  @Test("The amount at risk is unknown if Apple states no share, and nil if nothing is at risk")
  func unknownStakes() throws {
    var scene = ShopFixture()
    let order = scene.paidOrder { $0.status = .pending }
    scene.delivery(of: order)
    #expect(try found(.statusMismatch, in: scene).atStake == nil)
    #expect(try !found(.statusMismatch, in: scene).isAmountAtRiskUnknown)
    scene = ShopFixture()
    let someItems = Revocation(date: asOf - .hours(1), coversSomeItemsOnly: true)
    scene.delivery(of: scene.paidOrder(transaction: { $0.revocation = someItems }))
    #expect(try found(.partialRefund, in: scene).isAmountAtRiskUnknown)
    // The price difference is not part of the refund; the order's whole amount contains the refund.
    scene.world.transactions[0].priceMilliunits = 9_910
    #expect(try found(.amountMismatch, in: scene).atStake == .of(1))
    #expect(try found(.partialRefund, in: scene).isAmountAtRiskUnknown)
    scene.world.deliveries = []
    #expect(try found(.paidNotDelivered, in: scene).atStake == .of(990))
    #expect(try !found(.partialRefund, in: scene).isAmountAtRiskUnknown)
  }

  @Test("A finding has its severity and its amount at risk", arguments: stakes)
  func severityAndStake(row: Case<String>) throws {
    let finding = try #require(row.judgement?.findings.first { row.expected.hasPrefix($0.kind.rawValue) })
    let stake = finding.atStake.map { "\($0.minorUnits)" } ?? "nothing"
    #expect("\(finding.kind.rawValue) \(finding.severity) \(stake)" == row.expected)
  }

  private static let stakes: [Case<String>] = [
    Case("the share of a surplus", "delivered_twice major 330") {
      $0.sale({ $0.quantity = 3 }, bought: { $0.quantity = 3 }, goods: { $0.quantity = 4 })
    },
    Case("the difference of a lower price", "amount_mismatch major 500") { $0.bought { $0.priceMilliunits = 4_900 } },
    Case("a started cent of a lower price", "amount_mismatch major 500") { $0.bought { $0.priceMilliunits = 4_901 } },
    Case("a started cent of a higher price", "amount_mismatch major 511") { $0.bought { $0.priceMilliunits = 15_001 } },
    Case("ten units paid for one", "quantity_mismatch critical 8910") { scene in
      (scene.quantity, scene.amount) = (10, .of(9_900))
      scene.order(with: .signed(scene.transaction { ($0.quantity, $0.priceMilliunits) = (1, 9_900) }), isServed: true)
    },
    Case("two units bought of three", "quantity_mismatch critical 330") { scene in
      scene.quantity = 3
      let records = ["T1", "T2"].map { id in scene.transaction(id) { ($0.quantity, $0.priceMilliunits) = (1, 3_300) } }
      scene.order(with: .signed(records[0]), .signed(records[1]), isServed: true)
    },
    Case("a purchase 29 days older than its order", "purchase_predates_order minor nothing") {
      $0.bought { $0.purchaseDate = ordered - .days(29) }
    },
    Case("a purchase 31 days older than its order", "purchase_predates_order major 990") {
      $0.bought { $0.purchaseDate = ordered - .days(31) }
    },
  ]

  @Test("The largest amount at risk of an order counts, and the first one of equal amounts")
  func largestStake() {
    for (delivered, kind, stakes) in [
      (989, .partlyDelivered, [nil, .of(990)]), (0, .paidNotDelivered, [.of(990), nil]),
    ] as [(Int64, FindingKind, [Money?])] {
      // One of 990 units is missing, which is one cent. The shop calls the whole order failed.
      let findings = shop { scene in
        let order = scene.paidOrder({ ($0.quantity, $0.status) = (990, .failed) }, transaction: { $0.quantity = 990 })
        if delivered > 0 { scene.delivery(of: order) { $0.quantity = delivered } }
      }.judged()?.findings
      #expect(findings?.map(\.kind) == [kind, .cancelledButPaid] && findings?.map(\.atStake) == stakes)
    }
  }

  @Test("Sandbox purchases during App Review are minor", arguments: [(true, Severity.minor), (false, .critical)])
  func review(isReviewed: Bool, severity: Severity) {
    let findings = shop { scene in
      if isReviewed { scene.world.rules.reviewWindows = [ordered...ordered] }
      scene.sale(bought: { $0.environment = .sandbox })
    }.audited().findings
    #expect(findings.map(\.kind) == [.deliveredNotPaid, .sandboxDelivered])
    #expect(findings.allSatisfy { $0.severity == severity && $0.reason.text.contains("App Review") == isReviewed })
  }

  @Test(
    "A second order for a purchase during App Review is minor in the sandbox only",
    arguments: [AppleEnvironment.sandbox, .production])
  func reviewOfTwoOrders(environment: AppleEnvironment) {
    let second = shop { scene in
      scene.world.rules.reviewWindows = [ordered...ordered]
      let record = scene.transaction { $0.environment = environment }
      for id in ["a", "b"] { scene.order(id, stating: "T1", with: .list(record), isServed: true) }
    }.audited().findings.filter { $0.orderId == "b" }
    let isSandbox = environment == .sandbox
    #expect(second.contains { $0.kind == .sandboxDelivered } == isSandbox)
    #expect(second.contains { $0.kind == .duplicateClaim })
    #expect(second.allSatisfy { ($0.severity == .minor) == isSandbox }, "\(second.map(\.kind))")
  }

  @Test("The reason of a partial refund mentions an upgrade", arguments: [true, false, nil] as [Bool?])
  func upgrade(isUpgraded: Bool?) throws {
    let finding = try found(.partialRefund) {
      $0.sale(bought: { ($0.revocation, $0.isUpgraded) = (Self.half, isUpgraded) })
    }
    #expect(finding.reason.text.contains("upgraded") == (isUpgraded == true))
  }

  @Test("Severities, subjects, kinds and environments have a fixed order")
  func orders() {
    #expect(Severity.allCases.sorted() == [.critical, .major, .minor])
    #expect([Severity.minor, .major, .critical].sorted() == [.critical, .major, .minor])
    let subjects = [
      .order("0"), .order("1"), .delivery("1"), .receipt("1"), .transaction("1"), Subject(.productWeek, "1"),
    ]
    #expect(subjects.reversed().sorted() == subjects)
    #expect(FindingKind.allCases.map(\.index) == Array(FindingKind.allCases.indices))
    #expect(Disposition.allCases.map(\.index).sorted() == Array(Disposition.allCases.indices))
    for (one, next) in zip(subjects, subjects.dropFirst()) { #expect(one < next && !(next < one) && !(one < one)) }
    let keys = [AppleEnvironment.production, .sandbox].map { TransactionKey(environment: $0, transactionId: "1") }
    #expect(keys[0] < keys[1] && !(keys[1] < keys[0]) && !(keys[0] < keys[0]))
    let environments: [AppleEnvironment] = [.localTesting, .xcode, .sandbox, .production]
    #expect(environments.sorted() == [.production, .sandbox, .xcode, .localTesting])
  }

  @Test("An acceptance ends after its day, above its amount, and if the amount at risk is unknown")
  func acceptance() throws {
    func isExceeded(_ text: String, _ minorUnits: Int64?, _ today: String, isUnknown: Bool = false) throws -> Bool {
      var finding = Finding(kind: .paidNotDelivered, subject: .order("o"), reason: "")
      finding.atStake = minorUnits.map { .of($0, "USD") }
      finding.isAmountAtRiskUnknown = isUnknown
      return try #require(Acceptance(text: text)).isExceeded(by: finding, today: today)
    }
    #expect(try !isExceeded("until 2026-12-31", 500, "2026-12-31"))
    #expect(try isExceeded("until 2026-12-31", 500, "2027-01-01"))
    #expect(try !isExceeded("amount 5.00", 500, "2027-01-01") && !isExceeded("amount 5.001", 500, "2027-01-01"))
    #expect(try isExceeded("amount 5", 501, "2026-01-01") && isExceeded("amount 4.999", 500, "2026-01-01"))
    #expect(
      try isExceeded("amount 5", nil, "2026-01-01", isUnknown: true) && !isExceeded("amount 0", nil, "2026-01-01"))
    #expect(try isExceeded("until 2026-12-31 amount 5.00", 501, "2026-01-01"))
    let both = Acceptance(until: "2026-12-31", amount: "5.00")
    #expect(both?.text == "until 2026-12-31 amount 5.00" && Acceptance(text: both?.text ?? "") == both)
    #expect(Acceptance(until: nil, amount: nil) == nil && Acceptance(text: "") == nil)
  }
}
