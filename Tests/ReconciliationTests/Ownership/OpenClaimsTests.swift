import Reconciliation
import Testing

@testable import SampleWorlds

/// No finding accuses a customer while a missing answer could change the verdict.
@Suite struct OpenClaimsTests {
  /// The default creation date of orders.
  private let noon = ShopFixture().time

  @Test("A proof that Apple does not know counts against the stated ID only if it contains that ID")
  func notFoundIsAboutItsOwnId() {
    for inside in [nil, "T1"] as [Identifier?] {
      var scene = ShopFixture()
      let order = scene.order { $0.transactionId = "T1" }
      scene.receipt(for: order, .notFound()) { $0.state.signedTransactionId = inside }
      scene.receipt("false", for: order, .rejected(.wrongBundle))
      scene.delivery(of: order)
      let verdict = scene.world.audited().judgements["order"]?.verdict
      #expect(verdict == (inside == nil ? .unconfirmed(.neverChecked) : .unpaid(.wrongBundle, nil)))
    }
    var scene = ShopFixture()
    let order = scene.order { $0.transactionId = "T1" }
    scene.receipt(for: order, .notFound()) { $0.state.signedTransactionId = "T1" }
    #expect(scene.world.audited().judgements["order"]?.verdict?.reason == .notFound)
  }

  @Test("A proof of another transaction is id_mismatch, unless the stated one is known or was not looked up yet")
  func refutedName() {
    for (isKnown, canLookUp, lookup, reason) in [
      (true, true, nil, .familyShared), (false, false, nil, .idMismatch), (false, true, .notFound(), .idMismatch),
      (false, true, nil, .notInReceipt),
    ] as [(Bool, Bool, ProofState?, PaymentReason)] {
      var scene = ShopFixture()
      let order = scene.order { $0.transactionId = "T1" }
      let own = scene.transaction("T2") { $0.ownership = .familyShared }
      scene.signedProof(for: order, of: own)
      if isKnown { scene.transaction("T1") { $0.ownership = .familyShared } }
      scene.world.lookups["order"] = lookup
      if !canLookUp { scene.world.rules.appsWithLookup = [] }
      scene.delivery(of: order)
      #expect(scene.world.audited().judgements["order"]?.verdict?.reason == reason)
    }
  }

  @Test("An unanswered proof of a purchase that another order owns for now is no id_mismatch")
  func unansweredProofOfAnotherID() {
    for isAnswered in [true, false] {
      var scene = ShopFixture()
      let record = scene.transaction()
      let payer = scene.order("payer") { $0.transactionId = "T1" }
      scene.signedProof(for: payer, of: record)
      scene.delivery("first", of: payer)
      scene.receipt("open", for: payer, .unanswered(.unreachable)) { $0.state.unansweredSince = asOf }
      let second = scene.order { ($0.transactionId, $0.createdAt) = ("7000", noon + .hours(1)) }
      scene.world.lookups["order"] = .notFound()
      scene.receipt("copy", for: second, .unanswered(.unreachable), containing: [record]) {
        if isAnswered { $0.state = .verified(.signed) }
        ($0.state.kind, $0.state.signedTransactionId) = (.signed, "T1")
      }
      scene.delivery(of: second)
      #expect(scene.world.audited().judgements["order"]?.verdict?.name == "unconfirmed", "\(isAnswered)")
    }
  }

  @Test("An order with rejected proofs only yields to a verified proof, even of the same person")
  func onlyRejectedProofs() {
    var scene = ShopFixture()
    let record = scene.transaction()
    let forger = scene.order("forger") { $0.transactionId = "T1" }
    scene.receipt("forged", for: forger, .rejected(.signatureInvalid))
    scene.world.lookups["forger"] = .verified(nil)
    let honest = scene.order("honest") { $0.transactionId = "unknown" }
    scene.world.lookups["honest"] = .notFound()
    scene.receipt("genuine", for: honest, .verified(.app), containing: [record])
    let judgements = scene.world.audited().judgements
    #expect(judgements["honest"]?.payment == "paid")
    #expect(judgements["forger"]?.verdict?.reason == .signatureInvalid)
  }

  @Test("A duplicate is reported only if the order loses whatever the missing answers are")
  func settledLoss() {
    for hasThird in [true, false] {
      var scene = ShopFixture()
      let record = scene.transaction()
      let owner = scene.order("owner", by: "ann") { $0.createdAt = noon }
      scene.receipt("r1", for: owner, .verified(.app), containing: [record])
      scene.receipt("r2", for: owner, .unanswered(.unreachable))
      if hasThird {
        let third = scene.order("third", by: "cid") { $0.createdAt = noon + .minutes(1) }
        scene.receipt("r3", for: third, .verified(.app), containing: [record])
      }
      let loser = scene.order("loser", by: "bob") { $0.createdAt = noon + .minutes(2) }
      scene.receipt("r4", for: loser, .verified(.app), containing: [record])
      scene.delivery(of: loser)
      let judgement = scene.world.audited().judgements["loser"]
      #expect(judgement?.verdict == (hasThird ? .unpaid(.duplicate, record) : .unconfirmed(.awaitingEvidence)))
      #expect((judgement?.findings.contains { $0.kind == .duplicateClaim }) == hasThird)
    }
  }

  @Test("An owner whose stated ID is unanswered makes another order no duplicate")
  func pendingStatedTransaction() {
    for lookup in [ProofState.unanswered(.unreachable), .notFound()] {
      var scene = ShopFixture()
      let record = scene.transaction()
      let owner = scene.order("owner", by: "ann") { $0.transactionId = "unknown" }
      scene.world.lookups["owner"] = lookup
      scene.receipt("r1", for: owner, .verified(.app), containing: [record])
      let loser = scene.order("loser", by: "bob") { order in
        order.transactionId = "T1"
        order.createdAt = noon + .minutes(1)
      }
      scene.delivery(of: loser)
      let isFinal = lookup.outcome == .notFound
      let judgement = scene.world.audited().judgements["loser"]
      #expect(judgement?.verdict == (isFinal ? .unpaid(.duplicate, record) : .unconfirmed(.awaitingEvidence)))
    }
  }

  @Test("A contested sandbox purchase pays no order, and leaves a test user's order unconfirmed")
  func contestedSandboxPurchase() {
    for user in ["bob", "tester"] {
      var scene = ShopFixture()
      scene.world.rules.testUsers = ["tester"]
      let record = scene.transaction { $0.environment = .sandbox }
      let owner = scene.order("owner", by: "ann")
      scene.receipt("r1", for: owner, .verified(.app), containing: [record])
      scene.receipt("r2", for: owner, .unanswered(.unreachable))
      let loser = scene.order("loser", by: user) { $0.createdAt = noon + .minutes(2) }
      scene.receipt("r3", for: loser, .verified(.app), containing: [record])
      scene.delivery(of: loser)
      let judgement = scene.world.audited().judgements["loser"]
      #expect(judgement?.disposition == (user == "tester" ? .unconfirmed : .deliveredNotPaid))
      #expect((judgement?.findings.contains { $0.kind == .sandboxDelivered }) == (user != "tester"))
    }
  }

  @Test("An ID that Apple confirms counts after a rejected proof until another order proves it")
  func falseProofBesideOpenClaim() {
    for isOpen in [true, false] {
      var scene = ShopFixture()
      let record = scene.transaction()
      let other = scene.order("other", by: "ann") { $0.transactionId = "T1" }
      if isOpen {
        scene.receipt("r1", for: other, .unanswered(.unreachable))
      } else {
        scene.receipt("r1", for: other, .verified(.app), containing: [record])
      }
      let order = scene.order { $0.transactionId = "T1" }
      scene.receipt("r2", for: order, .rejected(.signatureInvalid))
      scene.world.lookups["order"] = .verified(nil)
      let verdict = scene.world.audited().judgements["order"]?.verdict
      #expect(verdict == (isOpen ? .paid(record) : .unpaid(.signatureInvalid, nil)))
    }
  }

  @Test("A forged proof is a stronger reason than an unknown ID, a malformed proof a weaker one")
  func notFoundBesideFalseProof() {
    for (state, expected) in [
      (ProofState.rejected(.signatureInvalid), PaymentReason.signatureInvalid), (.rejected(.malformed), .notFound),
      (.verified(.app), .notFound),
    ] {
      var scene = ShopFixture()
      let order = scene.order { $0.transactionId = "T1" }
      scene.receipt(for: order, state)
      scene.world.lookups["order"] = .notFound()
      #expect(scene.world.audited().judgements["order"]?.verdict == .unpaid(expected, nil), "\(state)")
    }
  }

  @Test("An unanswered old transaction receipt may contain a later period; a signed transaction may not")
  func laterPeriods() {
    for (kind, isAnswered, named, expected) in [
      (.transaction, false, nil, "unconfirmed unreachable"), (.transaction, true, nil, "unpaid product_mismatch"),
      (.signed, false, nil, "unpaid product_mismatch"), (.transaction, false, "T3", "paid"),
      (.transaction, true, "T3", "paid"), (.signed, false, "T3", "paid"),
    ] as [(ReceiptKind, Bool, Identifier?, String)] {
      var scene = ShopFixture()
      let record = scene.transaction { record in
        record.productId = named == nil ? "another" : record.productId
        record.expiresDate = asOf + .days(20)
      }
      let order = scene.order { $0.transactionId = named }
      var state = isAnswered ? ProofState.verified(kind) : .unanswered(.unreachable)
      (state.kind, state.signedTransactionId) = (kind, record.transactionId)
      scene.receipt(for: order, state, containing: [record])
      scene.delivery(of: order)
      #expect(scene.world.audited().judgements["order"]?.payment == expected, "\(kind) \(isAnswered)")
    }
  }

  @Test("A suspected restore is one after Apple's answer or a signed transaction")
  func restoresUnlessApplesWord() {
    let (open, answered) = (ProofState.unanswered(.unreachable), ProofState.verified(nil))
    for (lookup, kind, expected) in [
      (open, nil, "unconfirmed unreachable"), (answered, nil, "unpaid restored"),
      (nil, .transaction, "unconfirmed unreachable"), (nil, .signed, "unpaid restored"),
    ] as [(ProofState?, ReceiptKind?, String)] {
      var scene = ShopFixture()
      let restored = scene.transaction("R") { record in
        record.originalTransactionId = "P"
        record.originalPurchaseDate = asOf - .days(20)
      }
      let order = scene.order { $0.transactionId = "R" }
      scene.world.lookups["order"] = lookup
      if let kind {
        var state = open
        (state.kind, state.signedTransactionId) = (kind, "R")
        scene.receipt(for: order, state, containing: [restored])
      }
      scene.delivery(of: order)
      #expect(scene.world.audited().judgements["order"]?.payment == expected, "\(expected)")
    }
  }

  @Test("A purchase that only forged proofs claim is an orphan once no look-up of its ID is open")
  func namesOfFalseProofs() {
    for (lookup, proof, isOrphan) in [
      (.unanswered(.unreachable), .signatureInvalid, false), (.neverChecked, .malformed, false),
      (.notFound(), .signatureInvalid, true), (nil, .signatureInvalid, true), (nil, .malformed, false),
    ] as [(ProofState?, PaymentReason, Bool)] {
      for isContested in [false, true] {
        var scene = ShopFixture()
        scene.transaction()
        let order = scene.order { $0.transactionId = "T1" }
        scene.receipt(for: order, .rejected(proof))
        scene.world.lookups["order"] = lookup
        if isContested {
          let other = scene.order("other") { $0.transactionId = "T1" }
          scene.receipt("r2", for: other, .rejected(.signatureInvalid))
        }
        #expect(scene.world.findingNames.contains("orphan_payment on T1") == isOrphan, "\(proof)")
      }
    }
  }

  @Test("A second payment is reported once Apple has stated that it was not refunded")
  func secondPaymentOfAList() {
    for (isAnswered, tells, isReported) in [(false, false, false), (false, true, true), (true, false, true)] {
      var scene = ShopFixture()
      let records = ["T1", "T2"].map { id in
        scene.transaction(id) { $0.revocationStatedDate = tells ? $0.signedDate : nil }
      }
      let order = scene.order { $0.transactionId = "T1" }
      scene.receipt(for: order, isAnswered ? .verified(.app) : .unanswered(.unreachable), containing: records)
      scene.delivery(of: order)
      #expect(scene.world.findingNames.contains("charged_twice on order") == isReported)
    }
  }

  @Test("An unread receipt may contain another payment, so that a refunded order waits for it")
  func refundBesideUnreadReceipts() throws {
    for (state, isRefunded) in [
      (.unanswered(.unreachable), false), (.neverChecked, false), (.verified(.app), true),
      (.rejected(.signatureInvalid), true), (.review(.accountGone), true), (.review(.appleError), true),
      (.unanswered(.noRoots), true), (.review(.systemic), false),
    ] as [(ProofState, Bool)] {
      var scene = ShopFixture()
      let order = scene.order()
      let refunded = scene.transaction { $0.revocation = Revocation(date: noon + .hours(1)) }
      scene.receipt(for: order, .verified(.app), containing: [refunded])
      scene.receipt("further", for: order, state)
      scene.delivery(of: order) { $0.deliveredAt = noon + .hours(2) }
      let judgement = try #require(scene.world.audited().judgements["order"])
      #expect((judgement.payment == "reversed") == isRefunded, "\(state)")
      #expect(judgement.findings.contains { $0.kind == .deliveredAfterRefund } == isRefunded)
      #expect(judgement.findings.contains { $0.action != .look } == isRefunded)
    }
  }

  @Test("A second payment may belong to another order of the person with an unread receipt")
  func secondPaymentOfTwoOrders() {
    for state in [ProofState.unanswered(.unreachable), .verified(.app)] {
      var scene = ShopFixture()
      scene.time = noon - .hours(1)
      let first = scene.order("first")
      let records = ["T1", "T2"].map { id in
        scene.transaction(id) { $0.purchaseDate = id == "T1" ? noon - .hours(1) : noon }
      }
      scene.receipt("r1", for: first, state, containing: state.outcome == .verified ? [records[0]] : [])
      scene.time = noon
      let second = scene.order("second")
      scene.receipt("r2", for: second, .verified(.app), containing: records)
      for order in [first, second] { scene.delivery("of \(order.orderId)", of: order) }
      let expected = state.outcome == .verified ? [] : ["stuck_unconfirmed on first"]
      #expect(scene.world.findingNames == expected)
    }
  }

  @Test("The extent of a refund that only receipts state is open while Apple may answer")
  func refundOfAList() throws {
    let kinds: Set<FindingKind> = [.refundedStillDelivered, .refundNotBooked, .partialRefund, .amountMismatch]
    for (state, channel, token, payment) in [
      (.unanswered(.unreachable), .offline, .absent, "unconfirmed awaiting_evidence"),
      (.unanswered(.unreachable), .verifyReceipt, .stated(nil), "unconfirmed awaiting_evidence"),
      (.unanswered(.unreachable), .offline, .stated(nil), "reversed"),
      (.unanswered(.unreachable), .notification, .absent, "reversed"), (.verified(.app), .offline, .absent, "reversed"),
      (.review(.accountGone), .verifyReceipt, .absent, "reversed"),
    ] as [(ProofState, EvidenceChannel, Statement<String?>, String)] {
      for percentage in [nil, 30_000] as [Int32?] {
        var scene = ShopFixture()
        let record = scene.transaction { record in
          record.revocation = Revocation(date: noon + .days(1), percentage: percentage)
          (record.channel, record.appAccountToken, record.priceMilliunits) = (channel, token, 1)
        }
        let order = scene.order()
        scene.receipt(for: order, state, containing: [record])
        scene.delivery(of: order)
        let judgement = try #require(scene.world.audited().judgements["order"])
        let expected = percentage == nil ? payment : "paid"
        #expect(judgement.payment == expected, "\(state) \(channel)")
        #expect(kinds.isDisjoint(with: judgement.findings.map(\.kind)) == (expected == "unconfirmed awaiting_evidence"))
      }
    }
  }

  @Test("A missing answer about another receipt, or a deleted account, hides no second payment")
  func secondPaymentBesideOtherMissingAnswers() {
    for (state, contained, isReported) in [
      (.unanswered(.unreachable), ["T1"], true), (.review(.accountGone), ["T1", "T2"], true),
      (.review(.contradiction), ["T1", "T2"], true), (.review(.systemic), ["T1", "T2"], true),
    ] as [(ProofState, Set<Identifier>, Bool)] {
      var scene = ShopFixture()
      let records = ["T1", "T2"].map { id in scene.transaction(id) { $0.revocationStatedDate = nil } }
      let order = scene.order { $0.transactionId = "T1" }
      scene.receipt("told", for: order, .verified(.app), containing: records)
      scene.receipt("open", for: order, state, containing: records.filter { contained.contains($0.transactionId) })
      #expect(scene.world.findingNames.contains("charged_twice on order") == isReported, "\(state)")
    }
    for (reason, isReported) in [(.accountGone, true), (.contradiction, true), (.systemic, false)]
      as [(PaymentReason, Bool)]
    {
      var scene = ShopFixture()
      let record = scene.transaction { $0.revocationStatedDate = nil }
      scene.receipt(for: nil, .review(reason), containing: [record])
      #expect(scene.world.findingNames.contains("orphan_payment on T1") == isReported, "\(reason)")
    }
  }

  @Test("An order is a duplicate only after an answer about its own proof or stated ID")
  func unansweredDuplicate() {
    for (isNamed, isAnswered) in [(false, false), (false, true), (true, false), (true, true)] {
      var scene = ShopFixture()
      let record = scene.transaction()
      scene.signedProof("first", for: scene.order("owner", by: "ann"), of: record)
      let later = scene.order("later", by: "bob") { order in
        order.createdAt = noon + .minutes(1)
        if isNamed { order.transactionId = "T1" }
      }
      if isNamed {
        scene.world.lookups["later"] = isAnswered ? .verified(nil) : .unanswered(.unreachable)
      } else {
        scene.signedProof("second", for: later, of: record)
        if !isAnswered {
          var state = ProofState.unanswered(.unreachable)
          (state.kind, state.signedTransactionId) = (.signed, "T1")
          scene.world.receipts[1].state = state
        }
      }
      scene.delivery(of: later)
      let judgement = scene.world.audited().judgements["later"]
      #expect(
        judgement?.verdict == (isAnswered ? .unpaid(.duplicate, record) : .unconfirmed(.unreachable)),
        "named \(isNamed), answered \(isAnswered)")
    }
  }

  @Test("A finding is as old as the oldest answer that it rests on")
  func ageOfEvidence() throws {
    var scene = ShopFixture()
    let record = scene.transaction { $0.checkedAt = asOf }
    let order = scene.order { $0.transactionId = "T1" }
    scene.signedProof(for: order, of: record)
    for (answered, expected) in [
      (asOf, asOf), (asOf - .days(3), asOf - .days(3)), (nil, nil),
    ]
      as [(Instant?, Instant?)]
    {
      scene.world.receipts[0].state.answeredAt = answered
      let finding = try #require(scene.world.audited().findings.first { $0.kind == .paidNotDelivered })
      #expect(finding.evidenceCheckedAt == expected)
    }
  }

  @Test("A purchase on an unanswered list is an orphan once Apple has stated that it was not refunded")
  func orphansOfLists() {
    for (kind, isAnswered, tells, isReported) in [
      (.app, false, false, false), (.transaction, false, false, false), (.signed, false, false, true),
      (.app, true, false, true), (.app, false, true, true),
    ] as [(ReceiptKind, Bool, Bool, Bool)] {
      var scene = ShopFixture()
      let record = scene.transaction { $0.revocationStatedDate = tells ? $0.signedDate : nil }
      var state = isAnswered ? ProofState.verified(kind) : .unanswered(.unreachable)
      state.kind = kind
      scene.receipt(for: nil, state, containing: [record])
      #expect(scene.world.findingNames.contains("orphan_payment on T1") == isReported, "\(kind)")
    }
  }
}
