import Reconciliation
import Testing

@testable import SampleWorlds

/// No finding accuses a customer while a missing answer could change the verdict.
@Suite struct OpenClaimsTests {
  /// Each row is a delivered order.
  @Test("The payment of an order waits for answers that could change it", arguments: proofs + periods)
  func payment(row: Case<String>) {
    var world = row.scene.world
    for case .valid(let order) in world.orders where order.orderId == "order" {
      world.deliveries.append(
        Delivery(
          deliveryId: "goods", orderId: order.orderId, userId: order.userId, productId: order.productId, quantity: 1,
          deliveredAt: order.createdAt))
    }
    #expect(world.judged()?.payment == row.expected)
  }

  static let proofs: [Case<String>] = [
    Case("a proof that Apple does not know may contain another ID than the stated one", "unconfirmed never_checked") {
      $0.order(stating: "T1", with: .init(.notFound()), .init(.rejected(.wrongBundle)))
    },
    Case("a proof of the stated ID that Apple does not know, beside a false one", "unpaid wrong_bundle") {
      $0.order(stating: "T1", with: unknown, .init(.rejected(.wrongBundle)))
    },
    Case("a proof of the stated ID that Apple does not know", "unpaid not_found") {
      $0.order(stating: "T1", with: unknown)
    },
    Case("a proof of another transaction, and the stated one is known", "unpaid family_shared") { scene in
      scene.shared("T1")
      scene.order(stating: "T1", with: .signed(scene.shared("T2")))
    },
    Case("a proof of another transaction, and the stated one cannot be looked up", "unpaid id_mismatch") { scene in
      scene.world.rules.appsWithLookup = []
      scene.order(stating: "T1", with: .signed(scene.shared("T2")))
    },
    Case("a proof of another transaction, and Apple does not know the stated one", "unpaid id_mismatch") {
      $0.order(stating: "T1", with: .signed($0.shared("T2")), lookup: .notFound())
    },
    Case("a proof of another transaction, and the stated one was not looked up yet", "unconfirmed not_in_receipt") {
      $0.order(stating: "T1", with: .signed($0.shared("T2")))
    },
    Case("a forged proof is a stronger reason than an unknown ID", "unpaid signature_invalid") {
      $0.order(stating: "T1", with: .forged, lookup: .notFound())
    },
    Case("a malformed proof is a weaker reason than an unknown ID", "unpaid not_found") {
      $0.order(stating: "T1", with: .unreadable, lookup: .notFound())
    },
    Case("a malformed proof, and Apple has stated the ID since it did not know it", "paid") {
      $0.transaction()
      $0.order(stating: "T1", with: .unreadable, lookup: .notFound(at: asOf - .hours(7)))
    },
    Case("a malformed proof, and Apple stated the ID before it did not know it", "unpaid not_found") {
      $0.transaction()
      $0.order(stating: "T1", with: .unreadable, lookup: .notFound())
    },
    Case("a malformed proof and an ID stated since, beside a verified receipt with that ID", "unconfirmed unreadable") {
      $0.order("other", by: "ann", stating: "T1", with: .list($0.transaction()))
      $0.order(stating: "T1", with: .unreadable, lookup: .notFound(at: asOf - .hours(7)))
    },
    Case("a malformed proof, and a transaction of the ID made in Xcode since", "unpaid not_found") {
      $0.transaction { $0.environment = .xcode }
      $0.order(stating: "T1", with: .unreadable, lookup: .notFound(at: asOf - .hours(7)))
    },
    Case("an empty list is a weaker reason than an unknown ID", "unpaid not_found") {
      $0.order(stating: "T1", with: .list(), lookup: .notFound())
    },
    Case("a forged proof and a confirmed ID, beside an unanswered receipt with that ID", "paid") { scene in
      scene.transaction()
      scene.order("other", by: "ann", stating: "T1", with: .unanswered)
      scene.order(stating: "T1", with: .forged, lookup: .verified(nil))
    },
    Case("a forged proof and a confirmed ID, beside a verified receipt with that ID", "unpaid signature_invalid") {
      $0.order("other", by: "ann", stating: "T1", with: .list($0.transaction()))
      $0.order(stating: "T1", with: .forged, lookup: .verified(nil))
    },
    Case("a forged proof and a confirmed ID, beside the same person's verified receipt", "unpaid signature_invalid") {
      $0.order("honest", stating: "unknown", with: .list($0.transaction()), lookup: .notFound())
      $0.order(stating: "T1", with: .forged, lookup: .verified(nil))
    },
    Case("the owner has an open question", "unconfirmed awaiting_evidence") { $0.contested(.unanswered) },
    Case("the owner has an open question, and a third order would own the purchase", "unpaid duplicate") { scene in
      scene.contested(.unanswered)
      scene.order("third", by: "cid", with: .list(scene.world.transactions[0])) { $0.createdAt = ordered + .minutes(1) }
    },
    Case("the owner's stated ID is unanswered", "unconfirmed awaiting_evidence") {
      $0.stated(besideOwnerWith: .unanswered(.unreachable))
    },
    Case("Apple does not know the owner's stated ID", "unpaid duplicate") { $0.stated(besideOwnerWith: .notFound()) },
    Case("the own proof of another order's purchase is unanswered", "unconfirmed unreachable") { scene in
      scene.order("owner", by: "ann", with: .signed(scene.transaction()))
      scene.order(by: "bob", hours: 1, with: signed(.unanswered(.unreachable), scene.world.transactions[0]))
    },
    Case("the own proof of another order's purchase is answered", "unpaid duplicate") { scene in
      scene.order("owner", by: "ann", with: .signed(scene.transaction()))
      scene.order(by: "bob", hours: 1, with: .signed(scene.world.transactions[0]))
    },
    Case("the look-up of another order's purchase is unanswered", "unconfirmed unreachable") { scene in
      scene.order("owner", by: "ann", with: .signed(scene.transaction()))
      scene.order(by: "bob", stating: "T1", hours: 1, lookup: .unanswered(.unreachable))
    },
    Case("another order's purchase on a list, and the account of the stated ID is gone", "unconfirmed account_gone") {
      scene in
      scene.order("owner", by: "ann", with: .signed(scene.transaction()))
      scene.order(
        by: "bob", stating: "T9", hours: 1, with: .list(scene.world.transactions[0]), lookup: .review(.accountGone))
    },
    Case("the look-up of another order's purchase is answered", "unpaid duplicate") { scene in
      scene.order("owner", by: "ann", with: .signed(scene.transaction()))
      scene.order(by: "bob", stating: "T1", hours: 1, lookup: .verified(nil))
    },
  ]

  /// An old transaction receipt may contain a later period, and a suspected restore may be a purchase.
  static let periods: [Case<String>] = [
    Case("an unanswered old receipt of another product", "unconfirmed unreachable") { $0.period(.transaction) },
    Case("an answered old receipt of another product", "unpaid product_mismatch") {
      $0.period(.transaction, isAnswered: true)
    },
    Case("an unanswered signed transaction of another product", "unpaid product_mismatch") { $0.period(.signed) },
    Case("an unanswered old receipt, and the order states a later period", "paid") {
      $0.period(.transaction, stating: "T3")
    },
    Case("an answered old receipt, and the order states a later period", "paid") {
      $0.period(.transaction, isAnswered: true, stating: "T3")
    },
    Case("a signed transaction, and the order states a later period", "paid") { $0.period(.signed, stating: "T3") },
    Case("a suspected restore by an unanswered look-up", "unconfirmed unreachable") {
      $0.restored()
      $0.order(stating: "R", lookup: .unanswered(.unreachable))
    },
    Case("a suspected restore by Apple's answer", "unpaid restored") {
      $0.restored()
      $0.order(stating: "R", lookup: .verified(nil))
    },
    Case("a suspected restore by an unanswered old receipt", "unconfirmed unreachable") {
      $0.order(stating: "R", with: signed(.unanswered(.unreachable), $0.restored(), as: .transaction))
    },
    Case("a suspected restore by a signed transaction", "unpaid restored") {
      $0.order(stating: "R", with: signed(.unanswered(.unreachable), $0.restored()))
    },
  ]

  private static var unknown: ShopFixture.Proof { .init(.notFound()) { $0.state.signedTransactionId = "T1" } }

  @Test("A contested sandbox purchase leaves a test user's order unconfirmed", arguments: ["bob", "tester"])
  func contestedSandboxPurchase(user: String) {
    let world = shop { scene in
      scene.world.rules.testUsers = ["tester"]
      scene.delivery(of: scene.contested(.unanswered, by: user) { $0.environment = .sandbox })
    }
    #expect(world.judged()?.disposition == (user == "tester" ? .unconfirmed : .deliveredNotPaid))
    #expect((world.finding(.sandboxDelivered) != nil) == (user != "tester"))
  }

  @Test(
    "A purchase that only forged proofs claim is an orphan once no look-up of its ID is open",
    arguments: [
      (.unanswered(.unreachable), .signatureInvalid, false), (.neverChecked, .malformed, false),
      (.notFound(), .signatureInvalid, true), (nil, .signatureInvalid, true), (nil, .malformed, false),
      (.notFound(at: asOf - .hours(7)), .signatureInvalid, false), (.notFound(at: asOf - .hours(7)), .malformed, false),
    ] as [(ProofState?, PaymentReason, Bool)])
  func namesOfFalseProofs(lookup: ProofState?, proof: PaymentReason, isOrphan: Bool) {
    for isContested in [false, true] {
      let world = shop { scene in
        scene.transaction()
        scene.order(stating: "T1", with: .init(.rejected(proof)), lookup: lookup)
        if isContested { scene.order("other", stating: "T1", with: .forged) }
      }
      #expect((world.finding(.orphanPayment) != nil) == isOrphan)
    }
  }

  @Test(
    "A second payment is reported once Apple has stated that it was not refunded",
    arguments: [(false, false, false), (false, true, true), (true, false, true)])
  func secondPaymentOfAList(isAnswered: Bool, isStated: Bool, isReported: Bool) {
    let world = shop { scene in
      let records = ["T1", "T2"].map { scene.transaction($0) { if !isStated { $0.revocationStatedDate = nil } } }
      let state = isAnswered ? ProofState.verified(.app) : .unanswered(.unreachable)
      scene.order(stating: "T1", with: .init(state, of: records), isServed: true)
    }
    #expect((world.finding(.chargedTwice) != nil) == isReported)
  }

  @Test(
    "An unread receipt may contain another payment, so that a refunded order waits for it",
    arguments: [
      (.unanswered(.unreachable), false), (.neverChecked, false), (.verified(.app), true),
      (.rejected(.signatureInvalid), true), (.review(.accountGone), true), (.review(.appleError), true),
      (.unanswered(.noRoots), true), (.review(.systemic), false),
    ] as [(ProofState, Bool)])
  func refundBesideUnreadReceipts(state: ProofState, isRefunded: Bool) throws {
    let world = shop { scene in
      let refunded = scene.transaction { $0.revocation = Revocation(date: ordered + .hours(1)) }
      let order = scene.order(with: .list(refunded), .init(state))
      scene.delivery(of: order) { $0.deliveredAt = ordered + .hours(2) }
    }
    let judgement = try #require(world.judged())
    #expect((judgement.payment == "reversed") == isRefunded)
    #expect(judgement.findings.contains { $0.kind == .deliveredAfterRefund } == isRefunded)
    #expect(judgement.findings.contains { $0.action != .look } == isRefunded)
  }

  @Test(
    "A second payment may belong to another order of the person with an unread receipt",
    arguments: [(false, "stuck_unconfirmed on first"), (true, "nothing")])
  func secondPaymentOfTwoOrders(isAnswered: Bool, expected: String) {
    let row = Case("two orders", expected) { scene in
      scene.time = ordered - .hours(1)
      let records = scene.transactions(minutes: [0, 60])
      scene.order("first", with: isAnswered ? .list(records[0]) : .unanswered, isServed: true)
      scene.order("second", hours: 1, with: .init(.verified(.app), of: records), isServed: true)
    }
    #expect(row.findings == expected)
  }

  @Test(
    "The extent of a refund that only receipts state is open while Apple may answer",
    arguments: [
      (.unanswered(.unreachable), true, "unconfirmed awaiting_evidence"),
      (.unanswered(.unreachable), false, "reversed"), (.verified(.app), true, "reversed"),
      (.review(.accountGone), true, "reversed"),
    ] as [(ProofState, Bool, String)])
  func refundOfAList(state: ProofState, isUnsigned: Bool, payment: String) throws {
    let kinds: Set<FindingKind> = [.refundedStillDelivered, .refundNotBooked, .partialRefund, .amountMismatch]
    for (percentage, expected) in [(nil, payment), (30_000, "paid")] as [(Int32?, String)] {
      let world = shop { scene in
        let record = scene.transaction {
          $0.revocation = Revocation(date: ordered + .days(1), percentage: percentage, isUnsigned: isUnsigned)
          // Signed data about the sale does not sign the receipt's refund.
          ($0.channel, $0.appAccountToken, $0.priceMilliunits) = (.notification, .stated(nil), 1)
        }
        scene.order(with: .init(state, of: [record]), isServed: true)
      }
      let judgement = try #require(world.judged())
      #expect(judgement.payment == expected)
      #expect(kinds.isDisjoint(with: judgement.findings.map(\.kind)) == (expected == "unconfirmed awaiting_evidence"))
    }
  }

  @Test(
    "A missing answer about another receipt, or a deleted account, hides no second payment",
    arguments: [
      (.unanswered(.unreachable), ["T1"]), (.review(.accountGone), ["T1", "T2"]),
      (.review(.contradiction), ["T1", "T2"]), (.review(.systemic), ["T1", "T2"]),
    ] as [(ProofState, Set<Identifier>)])
  func secondPaymentBesideOtherMissingAnswers(state: ProofState, contained: Set<Identifier>) {
    let world = shop { scene in
      let records = ["T1", "T2"].map { scene.transaction($0) { $0.revocationStatedDate = nil } }
      scene.order(
        stating: "T1", with: .init(.verified(.app), of: records),
        .init(state, of: records.filter { contained.contains($0.transactionId) }))
    }
    #expect(world.finding(.chargedTwice) != nil)
  }

  @Test(
    "A payment in a receipt under review is an orphan, unless the refusal is systemic",
    arguments: [(PaymentReason.accountGone, true), (.contradiction, true), (.systemic, false)])
  func orphansUnderReview(reason: PaymentReason, isReported: Bool) {
    let world = shop { scene in
      let record = scene.transaction { $0.revocationStatedDate = nil }
      scene.receipt(for: nil, .review(reason), containing: [record])
    }
    #expect((world.finding(.orphanPayment) != nil) == isReported)
  }

  @Test("A copy of a proof whose owner has an open question is no id_mismatch", arguments: [true, false])
  func copyOfAnOpenProof(isAnswered: Bool) {
    let world = shop { scene in
      let record = scene.transaction()
      let payer = scene.order("payer", stating: "T1", with: .signed(record), isServed: true)
      scene.receipt("open", for: payer, .unanswered(.unreachable)) { $0.state.unansweredSince = asOf }
      let state = isAnswered ? ProofState.verified(.signed) : .unanswered(.unreachable)
      scene.order(stating: "7000", hours: 1, with: signed(state, record), lookup: .notFound(), isServed: true)
    }
    #expect(world.judged()?.verdict?.name == "unconfirmed")
  }

  @Test(
    "A finding is as old as the oldest answer that it rests on", arguments: [asOf, asOf - .days(3), nil] as [Instant?])
  func ageOfEvidence(answered: Instant?) throws {
    let world = shop { scene in
      let record = scene.transaction { $0.checkedAt = asOf }
      scene.order(
        stating: "T1",
        with: .init(.verified(.signed, id: "T1"), of: [record]) { $0.state.answeredAt = answered })
    }
    let finding = try #require(world.finding(.paidNotDelivered))
    #expect(finding.evidenceCheckedAt == answered)
  }

  @Test(
    "A purchase on an unanswered list is an orphan once Apple has stated that it was not refunded",
    arguments: [
      (.app, false, false, false), (.transaction, false, false, false), (.signed, false, false, true),
      (.app, true, false, true), (.app, false, true, true),
    ] as [(ReceiptKind, Bool, Bool, Bool)])
  func orphansOfLists(kind: ReceiptKind, isAnswered: Bool, isStated: Bool, isReported: Bool) {
    let world = shop { scene in
      let record = scene.transaction { if !isStated { $0.revocationStatedDate = nil } }
      let state = isAnswered ? ProofState.verified(kind) : .unanswered(.unreachable)
      scene.receipt(for: nil, state, containing: [record]) { $0.state.kind = kind }
    }
    #expect((world.finding(.orphanPayment) != nil) == isReported)
  }
}

/// A proof in the given state that contains one transaction.
private func signed(
  _ state: ProofState, _ record: TransactionRecord, as kind: ReceiptKind = .signed
) -> ShopFixture.Proof {
  .init(state, of: [record]) { ($0.state.kind, $0.state.signedTransactionId) = (kind, record.transactionId) }
}

extension ShopFixture {
  @discardableResult
  fileprivate mutating func shared(_ id: String) -> TransactionRecord {
    transaction(id) { $0.ownership = .familyShared }
  }

  /// An order for the purchase that another order with a further receipt owns for now.
  @discardableResult
  fileprivate mutating func contested(
    _ further: Proof, by user: String = "bob", _ change: (inout TransactionRecord) -> Void = { _ in }
  ) -> Order {
    let record = transaction("T1", change)
    order("owner", by: "ann", with: .list(record), further)
    return order(by: user, with: .list(record)) { $0.createdAt = $0.createdAt + .minutes(2) }
  }

  /// An order that states the purchase of an owner with another stated ID, which was looked up.
  fileprivate mutating func stated(besideOwnerWith lookup: ProofState) {
    order("owner", by: "ann", stating: "unknown", with: .list(transaction()), lookup: lookup)
    order(by: "bob", stating: "T1") { $0.createdAt = $0.createdAt + .minutes(1) }
  }

  /// An order with one proof, of another product unless it states an ID.
  fileprivate mutating func period(_ kind: ReceiptKind, isAnswered: Bool = false, stating id: Identifier? = nil) {
    let record = transaction { record in
      record.expiresDate = Self.asOf + .days(20)
      if id == nil { record.productId = "another" }
    }
    order(stating: id, with: signed(isAnswered ? .verified(kind) : .unanswered(.unreachable), record, as: kind))
  }

  @discardableResult
  fileprivate mutating func restored() -> TransactionRecord {
    transaction("R") { ($0.originalTransactionId, $0.originalPurchaseDate) = ("P", Self.asOf - .days(20)) }
  }
}
