import Reconciliation
import Testing

@testable import SampleWorlds

/// No finding accuses where a missing answer could still change the verdict.
@Suite struct OpenClaimsTests {
  /// When a scene's orders are made.
  private let noon = ShopFixture().time

  @Test("Not knowing the purchase inside a proof says nothing of another id")
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

  @Test("A name that its own proof refutes is id_mismatch, whether or not anything is known of the named one")
  func refutedName() {
    for (isKnown, lookup) in [(true, nil), (false, nil), (false, .notFound())] as [(Bool, ProofState?)] {
      var scene = ShopFixture()
      let order = scene.order { $0.transactionId = "T1" }
      let own = scene.transaction("T2") { $0.ownership = .familyShared }
      scene.signedProof(for: order, of: own)
      if isKnown { scene.transaction("T1") { $0.ownership = .familyShared } }
      scene.world.lookups["order"] = lookup
      scene.delivery(of: order)
      #expect(
        scene.world.audited().judgements["order"]?.verdict?.reason == (isKnown ? .familyShared : .idMismatch))
    }
  }

  @Test("Whom only false proofs speak for yields to a genuine proof of the same person as well")
  func falseNamer() {
    var scene = ShopFixture()
    let record = scene.transaction()
    let forger = scene.order("forger") { $0.transactionId = "T1" }
    scene.receipt("forged", for: forger, .rejected(.signatureInvalid))
    scene.world.lookups["forger"] = .verified(nil)
    let honest = scene.order("honest") { $0.transactionId = "unknown" }
    scene.world.lookups["honest"] = .notFound()
    scene.receipt("genuine", for: honest, .verified(.app), bringing: [record])
    let judgements = scene.world.audited().judgements
    #expect(judgements["honest"]?.payment == "paid")
    #expect(judgements["forger"]?.verdict?.reason == .signatureInvalid)
  }

  @Test("A duplicate stands when it would lose to somebody whatever becomes of the open claims, and not before")
  func settledLoss() {
    for hasThird in [true, false] {
      var scene = ShopFixture()
      let record = scene.transaction()
      let owner = scene.order("owner", by: "ann") { $0.createdAt = noon }
      scene.receipt("r1", for: owner, .verified(.app), bringing: [record])
      scene.receipt("r2", for: owner, .unanswered(.unreachable))
      if hasThird {
        let third = scene.order("third", by: "cid") { $0.createdAt = noon + .minutes(1) }
        scene.receipt("r3", for: third, .verified(.app), bringing: [record])
      }
      let loser = scene.order("loser", by: "bob") { $0.createdAt = noon + .minutes(2) }
      scene.receipt("r4", for: loser, .verified(.app), bringing: [record])
      scene.delivery(of: loser)
      let judgement = scene.world.audited().judgements["loser"]
      #expect(judgement?.verdict == (hasThird ? .unpaid(.duplicate, record) : .unconfirmed(.awaitingEvidence)))
      #expect((judgement?.findings.contains { $0.kind == .duplicateClaim }) == hasThird)
    }
  }

  @Test("Who owns a payment only until their own id is answered for makes nobody a duplicate")
  func pendingStatedTransaction() {
    for lookup in [ProofState.unanswered(.unreachable), .notFound()] {
      var scene = ShopFixture()
      let record = scene.transaction()
      let owner = scene.order("owner", by: "ann") { $0.transactionId = "unknown" }
      scene.world.lookups["owner"] = lookup
      scene.receipt("r1", for: owner, .verified(.app), bringing: [record])
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

  @Test("A test purchase pays nobody, whoever it belongs to")
  func sandboxOfWhom() {
    for user in ["bob", "tester"] {
      var scene = ShopFixture()
      scene.world.rules.testUsers = ["tester"]
      let record = scene.transaction { $0.environment = .sandbox }
      let owner = scene.order("owner", by: "ann")
      scene.receipt("r1", for: owner, .verified(.app), bringing: [record])
      scene.receipt("r2", for: owner, .unanswered(.unreachable))
      let loser = scene.order("loser", by: user) { $0.createdAt = noon + .minutes(2) }
      scene.receipt("r3", for: loser, .verified(.app), bringing: [record])
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
        scene.receipt("r1", for: other, .verified(.app), bringing: [record])
      }
      let order = scene.order { $0.transactionId = "T1" }
      scene.receipt("r2", for: order, .rejected(.signatureInvalid))
      scene.world.lookups["order"] = .verified(nil)
      let verdict = scene.world.audited().judgements["order"]?.verdict
      #expect(verdict == (isOpen ? .paid(record) : .unpaid(.signatureInvalid, nil)))
    }
  }

  @Test("What its own proof says is wrong says more than that Apple does not know the id")
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

  @Test("An old receipt of one purchase may bring a later period until it is answered; a signed transaction may not")
  func laterPeriods() {
    for (kind, isAnswered, named, expected) in [
      (.transaction, false, nil, "unconfirmed unreachable"), (.transaction, true, nil, "unpaid product_mismatch"),
      (.signed, false, nil, "unpaid product_mismatch"), (.transaction, false, "T3", "paid"),
      (.transaction, true, "T3", "paid"), (.signed, false, "T3", "paid"),
    ] as [(ReceiptKind, Bool, Identifier?, String)] {
      var scene = ShopFixture()
      let record = scene.transaction { record in
        record.productId = named == nil ? "another" : record.productId
        record.expiresDate = ShopFixture.asOf + .days(20)
      }
      let order = scene.order { $0.transactionId = named }
      var state = isAnswered ? ProofState.verified(kind) : .unanswered(.unreachable)
      (state.kind, state.signedTransactionId) = (kind, record.transactionId)
      scene.receipt(for: order, state, bringing: [record])
      scene.delivery(of: order)
      #expect(scene.world.audited().judgements["order"]?.payment == expected, "\(kind) \(isAnswered)")
    }
  }

  @Test("What looks like a restore is one once Apple was asked: its word makes it a purchase whatever the ids")
  func restoresUnlessApplesWord() {
    let (open, answered) = (ProofState.unanswered(.unreachable), ProofState.verified(nil))
    for (lookup, kind, expected) in [
      (open, nil, "unconfirmed unreachable"), (answered, nil, "unpaid restored"),
      (nil, .transaction, "unconfirmed unreachable"), (nil, .signed, "unpaid restored"),
    ] as [(ProofState?, ReceiptKind?, String)] {
      var scene = ShopFixture()
      let restored = scene.transaction("R") { record in
        record.originalTransactionId = "P"
        record.originalPurchaseDate = ShopFixture.asOf - .days(20)
      }
      let order = scene.order { $0.transactionId = "R" }
      scene.world.lookups["order"] = lookup
      if let kind {
        var state = open
        (state.kind, state.signedTransactionId) = (kind, "R")
        scene.receipt(for: order, state, bringing: [restored])
      }
      scene.delivery(of: order)
      #expect(scene.world.audited().judgements["order"]?.payment == expected, "\(expected)")
    }
  }

  @Test("What an order names whose proofs are false is nobody's once Apple has denied the name, or nobody can be asked")
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

  @Test("A second payment is one too many once somebody has told that it was not refunded")
  func secondPaymentOfAList() {
    for (isAnswered, tells, isTold) in [(false, false, false), (false, true, true), (true, false, true)] {
      var scene = ShopFixture()
      let records = ["T1", "T2"].map { id in
        scene.transaction(id) { $0.revocationStatedDate = tells ? $0.signedDate : nil }
      }
      let order = scene.order { $0.transactionId = "T1" }
      scene.receipt(for: order, isAnswered ? .verified(.app) : .unanswered(.unreachable), bringing: records)
      scene.delivery(of: order)
      #expect(scene.world.findingNames.contains("charged_twice on order") == isTold)
    }
  }

  @Test("A receipt that nobody has read may hold another payment, and an order that Apple has refunded waits for it")
  func refundBesideWhatNobodyHasRead() throws {
    for (state, isRefunded) in [
      (.unanswered(.unreachable), false), (.neverChecked, false), (.verified(.app), true),
      (.rejected(.signatureInvalid), true), (.review(.accountGone), true), (.review(.appleError), true),
      (.unanswered(.noRoots), true), (.review(.systemic), false),
    ] as [(ProofState, Bool)] {
      var scene = ShopFixture()
      let order = scene.order()
      let refunded = scene.transaction { $0.revocation = Revocation(date: noon + .hours(1)) }
      scene.receipt(for: order, .verified(.app), bringing: [refunded])
      scene.receipt("further", for: order, state)
      scene.delivery(of: order) { $0.deliveredAt = noon + .hours(2) }
      let judgement = try #require(scene.world.audited().judgements["order"])
      #expect((judgement.payment == "reversed") == isRefunded, "\(state)")
      #expect(judgement.findings.contains { $0.kind == .deliveredAfterRefund } == isRefunded)
      #expect(judgement.findings.contains { $0.action != .look } == isRefunded)
    }
  }

  @Test("A second payment may be that of another order of the same person whose receipt nobody has read")
  func secondPaymentOfTwoOrders() {
    for state in [ProofState.unanswered(.unreachable), .verified(.app)] {
      var scene = ShopFixture()
      scene.time = noon - .hours(1)
      let first = scene.order("first")
      let records = ["T1", "T2"].map { id in
        scene.transaction(id) { $0.purchaseDate = id == "T1" ? noon - .hours(1) : noon }
      }
      scene.receipt("r1", for: first, state, bringing: state.outcome == .verified ? [records[0]] : [])
      scene.time = noon
      let second = scene.order("second")
      scene.receipt("r2", for: second, .verified(.app), bringing: records)
      for order in [first, second] { scene.delivery("of \(order.orderId)", of: order) }
      let expected = state.outcome == .verified ? [] : ["stuck_unconfirmed on first"]
      #expect(scene.world.findingNames == expected)
    }
  }

  @Test("How much of a purchase was refunded, of which receipts alone tell, is waited for as long as Apple can tell")
  func refundOfAList() throws {
    let kinds: Set<FindingKind> = [.refundedStillDelivered, .refundNotBooked, .partialRefund, .amountMismatch]
    for (state, channel, token, payment) in [
      (.unanswered(.unreachable), .offline, .silent, "unconfirmed awaiting_evidence"),
      (.unanswered(.unreachable), .verifyReceipt, .says(nil), "unconfirmed awaiting_evidence"),
      (.unanswered(.unreachable), .offline, .says(nil), "reversed"),
      (.unanswered(.unreachable), .notification, .silent, "reversed"), (.verified(.app), .offline, .silent, "reversed"),
      (.review(.accountGone), .verifyReceipt, .silent, "reversed"),
    ] as [(ProofState, EvidenceChannel, Statement<String?>, String)] {
      for percentage in [nil, 30_000] as [Int32?] {
        var scene = ShopFixture()
        let record = scene.transaction { record in
          record.revocation = Revocation(date: noon + .days(1), percentage: percentage)
          (record.channel, record.appAccountToken, record.priceMilliunits) = (channel, token, 1)
        }
        let order = scene.order()
        scene.receipt(for: order, state, bringing: [record])
        scene.delivery(of: order)
        let judgement = try #require(scene.world.audited().judgements["order"])
        let expected = percentage == nil ? payment : "paid"
        #expect(judgement.payment == expected, "\(state) \(channel)")
        #expect(kinds.isDisjoint(with: judgement.findings.map(\.kind)) == (expected == "unconfirmed awaiting_evidence"))
      }
    }
  }

  @Test("An answer that is missing about another list, or that an account is gone, takes no payment too many back")
  func secondPaymentThatWasTold() {
    for (state, brings, isTold) in [
      (.unanswered(.unreachable), ["T1"], true), (.review(.accountGone), ["T1", "T2"], true),
      (.review(.contradiction), ["T1", "T2"], true), (.review(.systemic), ["T1", "T2"], true),
    ] as [(ProofState, Set<Identifier>, Bool)] {
      var scene = ShopFixture()
      let records = ["T1", "T2"].map { id in scene.transaction(id) { $0.revocationStatedDate = nil } }
      let order = scene.order { $0.transactionId = "T1" }
      scene.receipt("told", for: order, .verified(.app), bringing: records)
      scene.receipt("open", for: order, state, bringing: records.filter { brings.contains($0.transactionId) })
      #expect(scene.world.findingNames.contains("charged_twice on order") == isTold, "\(state)")
    }
    for (reason, isTold) in [(.accountGone, true), (.contradiction, true), (.systemic, false)]
      as [(PaymentReason, Bool)]
    {
      var scene = ShopFixture()
      let record = scene.transaction { $0.revocationStatedDate = nil }
      scene.receipt(for: nil, .review(reason), bringing: [record])
      #expect(scene.world.findingNames.contains("orphan_payment on T1") == isTold, "\(reason)")
    }
  }

  @Test("Nobody is a duplicate before there was an answer about the own proof, or about the id that is named")
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

  @Test("A finding is as old as the oldest answer that it rests on, whenever somebody asked in vain")
  func ageOfEvidence() throws {
    var scene = ShopFixture()
    let record = scene.transaction { $0.checkedAt = ShopFixture.asOf }
    let order = scene.order { $0.transactionId = "T1" }
    scene.signedProof(for: order, of: record)
    for (answered, expected) in [
      (ShopFixture.asOf, ShopFixture.asOf), (ShopFixture.asOf - .days(3), ShopFixture.asOf - .days(3)), (nil, nil),
    ]
      as [(Instant?, Instant?)]
    {
      scene.world.receipts[0].state.answeredAt = answered
      let finding = try #require(scene.world.audited().findings.first { $0.kind == .paidNotDelivered })
      #expect(finding.evidenceCheckedAt == expected)
    }
  }

  @Test("What only an unanswered list brings is nobody's once somebody has told that it was not refunded")
  func orphansOfLists() {
    for (kind, isAnswered, tells, isTold) in [
      (.app, false, false, false), (.transaction, false, false, false), (.signed, false, false, true),
      (.app, true, false, true), (.app, false, true, true),
    ] as [(ReceiptKind, Bool, Bool, Bool)] {
      var scene = ShopFixture()
      let record = scene.transaction { $0.revocationStatedDate = tells ? $0.signedDate : nil }
      var state = isAnswered ? ProofState.verified(kind) : .unanswered(.unreachable)
      state.kind = kind
      scene.receipt(for: nil, state, bringing: [record])
      #expect(scene.world.findingNames.contains("orphan_payment on T1") == isTold, "\(kind)")
    }
  }
}
