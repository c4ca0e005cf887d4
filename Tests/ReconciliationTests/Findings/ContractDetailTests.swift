import Reconciliation
import Testing

@testable import SampleWorlds

/// Details of the contract that fit no table.
@Suite struct ContractDetailTests {
  /// Only Apple makes refunds.
  @Test func customersAreSentToApplesPageForRefunds() {
    let kinds = FindingKind.allCases.filter { $0.suggestedAction.contains("request a refund") }
    #expect(kinds == [.paidNotDelivered, .cancelledButPaid, .chargedTwice])
    for kind in kinds {
      #expect(kind.suggestedAction.contains("from Apple (reportaproblem.apple.com)"), "\(kind)")
    }
  }

  @Test(arguments: claims)
  func findings(row: Case<String>) {
    #expect(row.findings == row.expected)
  }

  static let claims: [Case<String>] = [
    Case("a further payment of another product is an orphan", "orphan_payment on T2") {
      $0.order(stating: "T1", with: .signed($0.transaction("T1")), .signed($0.different("T2")), isServed: true)
    },
    Case("a signed transaction links a further payment at any time", "charged_twice") {
      $0.order(
        stating: "T1", with: .signed($0.transaction("T1")),
        .signed($0.transaction("T2") { $0.purchaseDate = ordered - .days(4) }), isServed: true)
    },
    Case("a further payment that another order states is not owned", "nothing") { scene in
      let order = scene.order { $0.transactionId = "T1" }
      let second = scene.transaction("T2")
      scene.signedProof("r1", for: order, of: scene.transaction("T1"))
      scene.signedProof("r2", for: order, of: second)
      scene.delivery(of: order)
      scene.order("other", stating: "T2", isServed: true)
    },
    Case("a further payment that another order has a proof of is not owned", "nothing") { scene in
      let order = scene.order { $0.transactionId = "T1" }
      let second = scene.transaction("T2")
      scene.signedProof("r1", for: order, of: scene.transaction("T1"))
      scene.signedProof("r2", for: order, of: second)
      scene.delivery(of: order)
      scene.order("other", with: .signed(second), isServed: true)
    },
    Case("a renewal is no further charge", "nothing") {
      $0.order(
        stating: "T1", with: .signed($0.transaction("T1")), .signed($0.transaction("T2") { $0.isRenewal = true }),
        isServed: true)
    },
    Case(
      "an order whose own proof contains another transaction than it states owns both",
      "cancelled_but_paid, charged_twice, paid_not_delivered"
    ) { scene in
      let order = scene.order { ($0.transactionId, $0.status) = ("T9", .failed) }
      scene.transaction("T9")
      scene.signedProof(for: order, of: scene.transaction("T1"))
    },
    Case("an unstated payment of another product is not claimed", "orphan_payment on T1, product_mismatch") {
      $0.order(with: .signed($0.transaction())) { ($0.productId, $0.status) = ("gems.500", .failed) }
    },
    Case("a row that breaks the contract claims nothing", "bad_row on broken") { scene in
      scene.sale()
      scene.world.orders.append(.bad(.broken("broken")))
    },
    Case("no comparison for another product", "product_mismatch") {
      $0.paidOrder(
        {
          ($0.productId, $0.status, $0.appAccountToken) = ("gems.500", .failed, "7e3fb204-2d3a-4c5b-9f60-0a1b2c3d4e5f")
        },
        transaction: {
          ($0.priceMilliunits, $0.quantity, $0.appAccountToken) = (
            1, 5, .stated("11111111-2d3a-4c5b-9f60-0a1b2c3d4e5f")
          )
        })
    },
    Case("no comparison for another app", "wrong_bundle") {
      $0.paidOrder(
        { $0.status = .failed }, transaction: { ($0.bundleId, $0.priceMilliunits, $0.quantity) = (otherApp, 1, 5) })
    },
    Case("no finding for a duplicate without goods that is not verified", "nothing") { scene in
      scene.sale()
      scene.order("later", stating: "T1", hours: 1) { ($0.status, $0.quantity, $0.amount) = (.failed, 2, .of(1)) }
    },
  ]

  @Test(
    "A duplicate of the same person is major, one of another person critical, and the reason states whose the owner is",
    arguments: [("user", "same user", .major), ("else", "another user", .critical)] as [(String, String, Severity)])
  func whose(user: String, words: String, severity: Severity) {
    var scene = ShopFixture()
    scene.paidOrder()
    scene.order("later", by: user, stating: "T1", hours: 1)
    let finding = scene.world.finding(.duplicateClaim)
    #expect(finding?.reason.text.contains(words) == true && finding?.severity == severity)
    #expect(finding?.transactionId == "T1")
  }

  @Test(
    "The amount at risk of a partial refund is amount times percentage, rounded half up",
    arguments: [
      (990, "USD", 33_333, 330), (1, "USD", 50_000, 1), (1, "USD", 49_999, 0), (300, "JPY", 33_333, 100),
      (1_250, "KWD", 10_000, 125), (5, "KWD", 10_000, 1), (990, "USD", 0, 0),
    ] as [(Int64, String, Int32, Int64)])
  func partialRefund(minorUnits: Int64, code: String, percentage: Int32, expected: Int64) {
    var scene = ShopFixture()
    scene.amount = .of(minorUnits, code)
    let order = scene.paidOrder(transaction: {
      $0.revocation = Revocation(date: asOf, percentage: percentage)
    })
    scene.delivery(of: order)
    let finding = scene.world.audited().findings.first { $0.kind == .partialRefund }
    #expect(finding?.atStake == .of(expected, code))
  }

  @Test("An amount at risk is counted once per order, plus an additional charge")
  func stakesAddUp() {
    var scene = ShopFixture()
    let order = scene.order { order in
      order.transactionId = "T1"
      order.status = .cancelled
    }
    scene.signedProof("r1", for: order, of: scene.transaction("T1") { $0.priceMilliunits = 1_000 })
    scene.signedProof("r2", for: order, of: scene.transaction("T2"))
    let findings = scene.world.audited().findings
    #expect(findings.count == 4)
    #expect(findings.compactMap(\.atStake).reduce(0) { $0 + $1.minorUnits } == 990 + 990)
  }

  @Test("Sandbox amounts are in no total and never at risk")
  func sandboxMoney() {
    var scene = ShopFixture()
    scene.world.rules.testUsers = ["user"]
    let order = scene.paidOrder(transaction: { record in
      record.environment = .sandbox
      record.priceMilliunits = 1
    })
    scene.delivery(of: order) { $0.userId = "stranger" }
    let outcome = scene.world.audited()
    #expect(outcome.judgements["order"]?.disposition == .sandbox)
    #expect(outcome.findings.map(\.kind) == [.wrongUser])
    #expect(outcome.findings.allSatisfy { $0.atStake == nil && !$0.isAmountAtRiskUnknown })
    #expect(outcome.totals.ordered == MoneyByCurrency())
    #expect(outcome.totals.users.isEmpty && outcome.totals.pricePoints.isEmpty)
  }

  @Test("A judgement has Apple's dates and the latest delivery that was not taken back")
  func dates() throws {
    var scene = ShopFixture()
    let refunded = asOf - .hours(6)
    let order = scene.paidOrder(transaction: { record in
      record.revocation = Revocation(date: refunded)
      record.checkedAt = asOf - .days(1)
    })
    scene.delivery("d1", of: order)
    scene.delivery("d2", of: order) { $0.deliveredAt = order.createdAt + .hours(3) }
    scene.delivery("d3", of: order) { delivery in
      delivery.deliveredAt = order.createdAt + .hours(9)
      delivery.revokedAt = asOf
    }
    scene.receipt(for: order, .neverChecked) { $0.state.lastAttempt = asOf - .hours(2) }
    let judgement = try #require(scene.world.audited().judgements["order"])
    #expect(judgement.paidAt == ordered)
    #expect(judgement.refundedAt == refunded)
    #expect(judgement.deliveredAt == ordered + .hours(3))
    #expect(judgement.checkedAt == asOf)
    #expect(judgement.environment == .production)
    #expect(judgement.transactionId == "T1")
  }

  @Test("Findings of one order are sorted by severity")
  func order() {
    var scene = ShopFixture()
    scene.paidOrder({ $0.status = .cancelled }, transaction: { $0.priceMilliunits = 1 })
    let findings = scene.world.audited().judgements["order"]?.findings ?? []
    #expect(findings.map(\.kind) == [.paidNotDelivered, .cancelledButPaid, .amountMismatch])
    #expect(findings.map(\.kind.severity) == [.critical, .critical, .major])
  }

  @Test("Prices and counts at the ends of their ranges do not trap", arguments: [Int64.min, -1, 0, 1, .max])
  func extremes(price: Int64) {
    for amount in [Int64.max, 0] {
      for code in ["KWD", "JPY", "CLF"] {
        var scene = ShopFixture()
        let order = scene.order { order in
          order.transactionId = "T1"
          order.amount = .of(amount, code)
          order.quantity = .max
          order.createdAt = Instant(microseconds: .min)
        }
        let record = scene.transaction("T1") { record in
          record.priceMilliunits = price
          record.currency = code
          record.quantity = .min
          record.purchaseDate = Instant(microseconds: .max)
          record.expiresDate = Instant(microseconds: .min)
          record.revocation = Revocation(date: Instant(microseconds: .min), percentage: .min)
        }
        for text in ["r1", "r2"] {
          scene.receipt(text, for: order, .verified(.app), containing: [record]) { $0.state.attempts = .max }
        }
        scene.delivery("d1", of: order) { $0.deliveredAt = Instant(microseconds: .min) }
        scene.delivery("d2", of: order) { $0.revokedAt = Instant(microseconds: .max) }
        #expect(scene.world.audited().judgements["order"]?.disposition == .settled)
      }
    }
  }

  @Test("Attempts at the end of their range do not trap")
  func attempts() {
    var scene = ShopFixture(time: asOf - .days(1))
    let order = scene.order()
    for text in ["r1", "r2"] { scene.receipt(text, for: order, .unanswered(.unreachable)) { $0.state.attempts = .max } }
    #expect(scene.world.findingNames == [])
    scene.world.rules.stuckAfter = .hours(1)
    #expect(scene.world.findingNames == ["stuck_unconfirmed on order"])
  }

}
