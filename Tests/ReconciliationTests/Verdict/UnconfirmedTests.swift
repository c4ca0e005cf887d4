import Reconciliation
import Testing

@testable import SampleWorlds

/// Orders that stay unconfirmed, beside orders that are paid or reversed.
@Suite struct UnconfirmedTests {
  static let silent: [PaymentReason] = [.unreachable, .rateLimited, .appleError, .noRoots, .contradiction]

  @Test("An unanswered receipt keeps its reason", arguments: silent)
  func receipt(reason: PaymentReason) {
    var scene = ShopFixture()
    scene.receipt(for: scene.order(), .unanswered(reason))
    #expect(scene.world.audited().judgements["order"]?.payment == "unconfirmed \(reason.rawValue)")
  }

  @Test("An unanswered look-up keeps its reason", arguments: silent)
  func lookup(reason: PaymentReason) {
    var scene = ShopFixture()
    let order = scene.order { $0.transactionId = "T1" }
    scene.world.lookups[order.orderId] = .unanswered(reason)
    #expect(scene.world.audited().judgements["order"]?.payment == "unconfirmed \(reason.rawValue)")
  }

  /// A proof under a systemic refusal leaves its order unconfirmed. Its transactions support no accusation.
  @Test(arguments: ["other app", "other product", "nobody's"])
  func refusedWithTooManyOthers(_ what: String) {
    var scene = ShopFixture()
    let record = scene.transaction { record in
      if what == "other app" { record.bundleId = otherApp }
      if what == "other product" { record.productId = "another" }
    }
    let order = scene.order()
    var state = ProofState.review(.systemic)
    state.kind = .signed
    state.signedTransactionId = record.transactionId
    scene.receipt(for: order, state, containing: what == "nobody's" ? [] : [record])
    scene.delivery(of: order)
    let said = scene.world.audited().judgements["order"]
    #expect(said?.payment == "unconfirmed systemic" && said?.disposition == .unconfirmed, "\(said?.payment ?? "-")")
    #expect(said?.findings.allSatisfy { !$0.kind.accuses } == true)
  }

  @Test("Exactly these reasons prove an order unpaid")
  func partition() {
    let proving = PaymentReason.allCases.filter(\.provesUnpaid).map(\.rawValue)
    #expect(
      proving == [
        "signature_invalid", "malformed", "wrong_bundle", "product_mismatch", "restored", "duplicate", "sandbox",
        "xcode", "id_mismatch", "not_found", "family_shared", "no_evidence", "never_paid",
      ])
  }

  @Test("An order whose payment cannot be known yet is unconfirmed", arguments: rows)
  func payment(row: Case<String>) {
    #expect(row.judgement?.payment == row.expected)
  }

  static let rows: [Case<String>] = [
    Case("21010", "unconfirmed account_gone") {
      $0.order(with: .init(.review(.accountGone)) { $0.state.appleStatus = 21010 })
    },
    Case("4040001", "unconfirmed account_gone") { $0.order(stating: "T1", lookup: .review(.accountGone)) },
    Case("an ID that Apple does not know, beside an unanswered receipt", "unconfirmed unreachable") {
      $0.order(stating: "T1", with: .unanswered, lookup: .notFound())
    },
    Case("a verified receipt without the stated transaction", "unconfirmed not_in_receipt") {
      $0.order(stating: "T1", with: .list($0.different("T2")))
    },
    Case("a verified receipt without the stated transaction, which is known from elsewhere", "paid") { scene in
      let order = scene.order { $0.transactionId = "T1" }
      scene.transaction("T1")
      scene.receipt(for: order, .verified(.app), containing: [scene.different("T2")])
    },
    Case("a purchase of the product just outside the window", "unconfirmed not_in_receipt") {
      $0.order(with: .list($0.transaction { $0.purchaseDate = ordered - .hours(72) - .microsecond }))
    },
    Case("a purchase of the product at the edge of the window", "paid") {
      $0.order(with: .list($0.transaction { $0.purchaseDate = ordered - .hours(72) }))
    },
    Case("a renewal that the order does not state", "unconfirmed not_in_receipt") {
      $0.order(with: .list($0.transaction { $0.isRenewal = true }))
    },
    Case("a renewal that the order states", "paid") { $0.paid { $0.isRenewal = true } },
    Case("contradictory records about a stated transaction", "unconfirmed contradiction") {
      $0.paid { $0.isContradictory = true }
    },
    Case("contradictory records about the product of an unstated transaction", "unconfirmed contradiction") {
      $0.order(with: .signed($0.transaction { ($0.productId, $0.isContradictory) = ("gems.500", true) }))
    },
    Case("a verified signature while Apple is down", "paid") {
      $0.order(
        with: .init(.unanswered(.unreachable), of: [$0.transaction { $0.channel = .offline }]) {
          $0.state.signedTransactionId = "T1"
        })
    },
    Case("a full refund", "reversed") { $0.paid { $0.revocation = Revocation(date: asOf) } },
    Case("a full refund by percentage", "reversed") {
      $0.paid { $0.revocation = Revocation(date: asOf, percentage: 100_000) }
    },
    Case("a refund of all but a thousandth of a percent", "paid") {
      $0.paid { $0.revocation = Revocation(date: asOf, percentage: 99_999) }
    },
    Case("a prorated refund", "paid") { $0.paid { $0.revocation = Revocation(date: asOf, type: "REFUND_PRORATED") } },
    Case("a full refund by type", "reversed") {
      $0.paid { $0.revocation = Revocation(date: asOf, type: "REFUND_FULL") }
    },
  ]

  @Test("The strongest reason of several unanswered receipts counts, in any order")
  func mostTelling() {
    for flip in [false, true] {
      var scene = ShopFixture()
      let order = scene.order()
      scene.receipt(flip ? "b" : "a", for: order, .neverChecked)
      scene.receipt(flip ? "a" : "b", for: order, .review(.accountGone))
      #expect(scene.world.audited().judgements["order"]?.payment == "unconfirmed account_gone")
    }
  }

  @Test("Beside contradictory records, the payment of another order makes no duplicate")
  func contradictionBesideLost() {
    for isContradictory in [true, false] {
      var scene = ShopFixture()
      let record = scene.transaction()
      let other = scene.transaction("T2") {
        $0.productId = "gems.500"
        $0.isContradictory = isContradictory
      }
      let owner = scene.order("owner") { $0.transactionId = "T1" }
      scene.receipt("r1", for: owner, .verified(.app), containing: [record])
      let order = scene.order(by: "else") { $0.createdAt = $0.createdAt + .hours(1) }
      scene.receipt("r2", for: order, .verified(.app), containing: [record, other])
      scene.delivery(of: order)
      let judgement = scene.world.audited().judgements["order"]
      #expect(judgement?.payment == (isContradictory ? "unconfirmed contradiction" : "unpaid duplicate"))
      #expect(judgement?.findings.contains { $0.kind == .duplicateClaim } == !isContradictory)
    }
  }

}
