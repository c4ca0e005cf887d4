import Testing

@testable import Reconciliation
@testable import SampleWorlds

/// `SettledSale`, the short way for plain orders, equals the rules or declines to judge.
@Suite struct SettledSaleTests {
  /// The records and settings that decide one plain order.
  private struct Sale {
    var order: Order
    var proof: Receipt
    var payment: TransactionRecord
    var delivery: Delivery
    var rules: Rules

    init() {
      var scene = ShopFixture()
      payment = scene.transaction { $0.signedDate = asOf - .days(1) }
      order = scene.order { $0.transactionId = "T1" }
      proof = scene.receipt(for: order, .verified(.signed, id: "T1"), containing: [payment])
      delivery = scene.delivery(of: order)
      rules = scene.world.rules
      order.verifiedAt = order.createdAt
    }

    /// True if the rules confirm the short way's result; nil if the short way declines to judge.
    var isConfirmed: Bool? { isConfirmed(by: full) }

    func isConfirmed(by judgement: Judgement) -> Bool? {
      let texts = Texts()
      return texts.delivery(delivery).flatMap {
        SettledSale(
          texts.order(order), proof: texts.proof(proof), payment: texts.payment(payment), delivery: $0, rules: rules)
      }?.isConfirmed(by: judgement)
    }

    /// The judgement by the rules.
    var full: Judgement {
      let isProven = proof.defect == nil && proof.state.outcome != .rejected
      var facts = OrderFacts(
        order: order, deliveries: [delivery], receipts: [proof], proven: isProven ? [payment] : [],
        known: isProven ? [] : [payment])
      facts.claims = Matching.uncontested(facts.claimant(rules), rules: rules)
      return Judgement(judging: facts, rules: rules)
    }
  }

  /// A settled sale changes every total like its judgement.
  @Test func aSettledSaleCountsLikeItsJudgement() throws {
    let (sale, texts) = (Sale(), Texts())
    let delivery = try #require(texts.delivery(sale.delivery))
    let short = SettledSale(
      texts.order(sale.order), proof: texts.proof(sale.proof), payment: texts.payment(sale.payment),
      delivery: delivery, rules: sale.rules)
    let settled = try #require(short)
    let judgement = sale.full
    var (sums, expected) = (Totals(), Totals())
    sums.read(settled.order)
    sums.add(settled)
    expected.read(judgement.row)
    expected.add(judgement)
    #expect(sums.ordersRead == 1 && expected.ordersRead == 1)
    #expect(sums.ordersByDisposition == expected.ordersByDisposition)
    #expect(sums.ordersByCurrency == expected.ordersByCurrency)
    #expect(sums.amountByDisposition == expected.amountByDisposition && sums.ordered == expected.ordered)
    #expect(sums.control == expected.control && sums.control.allSatisfy(\.isBalanced))
    withExtendedLifetime(texts) {}
  }

  /// Owns the bytes that the borrowed values refer to.
  private final class Texts {
    private var kept: [UnsafeMutableRawBufferPointer] = []

    deinit { for bytes in kept { bytes.deallocate() } }

    private func borrowed(_ text: String) -> BorrowedText {
      let bytes = UnsafeMutableRawBufferPointer.allocate(byteCount: text.utf8.count, alignment: 1)
      bytes.copyBytes(from: text.utf8)
      kept.append(bytes)
      return BorrowedText(UnsafeRawBufferPointer(bytes))
    }

    func order(_ order: Order) -> BorrowedOrder {
      var result = BorrowedOrder(
        orderId: borrowed(order.orderId.text), userId: borrowed(order.userId.text),
        productId: borrowed(order.productId.text), quantity: order.quantity, amount: order.amount,
        status: order.status, createdAt: order.createdAt)
      result.bundleId = order.bundleId.map(borrowed)
      result.transactionId = order.transactionId.map { borrowed($0.text) }
      result.appAccountToken = order.appAccountToken.map(borrowed)
      result.verifiedAt = order.verifiedAt
      return result
    }

    /// nil if the delivery breaks the contract.
    func delivery(_ delivery: Delivery) -> BorrowedDelivery? {
      if delivery.defect != nil { return nil }
      return BorrowedDelivery(
        deliveryId: borrowed(delivery.deliveryId.text), orderId: delivery.orderId.map { borrowed($0.text) },
        userId: borrowed(delivery.userId.text), productId: borrowed(delivery.productId.text),
        quantity: delivery.quantity, deliveredAt: delivery.deliveredAt, revokedAt: delivery.revokedAt)
    }

    func proof(_ receipt: Receipt) -> BorrowedReceipt {
      var result = BorrowedReceipt(
        receiptId: borrowed(receipt.receiptId.text), orderId: nil, userId: nil,
        claimedEnvironment: receipt.claimedEnvironment.map(borrowed), receivedAt: receipt.receivedAt,
        state: .neverChecked, defect: receipt.defect.map(borrowed))
      (result.state.outcome, result.state.environment) = (receipt.state.outcome, receipt.state.environment)
      (result.state.lastAttempt, result.state.isUnproven) = (receipt.state.lastAttempt, receipt.state.isUnproven)
      return result
    }

    func payment(_ record: TransactionRecord) -> BorrowedTransaction {
      var payment = BorrowedTransaction(
        environment: record.environment, transactionId: borrowed(record.transactionId.text),
        productId: borrowed(record.productId.text))
      payment.originalTransactionId = record.originalTransactionId.map { borrowed($0.text) }
      payment.bundleId = record.bundleId.map(borrowed)
      payment.quantity = record.quantity
      payment.purchaseDate = record.purchaseDate
      payment.originalPurchaseDate = record.originalPurchaseDate
      payment.expiresDate = record.expiresDate
      payment.revocation = record.revocation.map { RevocationFields(date: $0.date) }
      payment.priceMilliunits = record.priceMilliunits
      payment.currency = record.currency.map(borrowed)
      if case .stated(let token) = record.appAccountToken {
        payment.appAccountToken = .stated(token.map(borrowed))
      }
      payment.ownership = record.ownership
      payment.isRenewal = record.isRenewal
      payment.hasOffer = record.hasOffer
      payment.isContradictory = record.isContradictory
      payment.checkedAt = record.checkedAt
      return payment
    }
  }

  private typealias Change = (name: String, apply: @Sendable (inout Sale) -> Void)

  /// Three instants: just before a bound, at the bound, and just after it.
  private static func around(_ name: String, _ apply: @escaping @Sendable (inout Sale, Span) -> Void) -> [Change] {
    [-1, 0, 1].map { offset in ("\(name) \(offset)", { apply(&$0, Span(microseconds: offset)) }) }
  }

  /// Changes that leave an order plain.
  private static let harmless: [Change] = [
    ("nothing", { _ in }),
    ("no environment claimed", { $0.proof.claimedEnvironment = nil }),
    ("the right environment claimed", { $0.proof.claimedEnvironment = "Production" }),
    ("Apple states no quantity", { $0.payment.quantity = nil }),
    ("Apple states no price", { $0.payment.priceMilliunits = nil }),
    ("Apple states no currency", { $0.payment.currency = nil }),
    ("an offer at the price", { $0.payment.hasOffer = true }),
    ("the same token", { ($0.order.appAccountToken, $0.payment.appAccountToken) = ("A-b", .stated("aB")) }),
    ("a token in the order only, none stated by Apple", { $0.order.appAccountToken = "ab" }),
    ("never verified", { $0.order.verifiedAt = nil }),
    ("asked lately", { $0.payment.checkedAt = asOf }),
    (
      "asked before the proof",
      { ($0.payment.checkedAt, $0.proof.state.lastAttempt) = ($0.order.createdAt, asOf) }
    ),
    ("never asked", { $0.proof.state.lastAttempt = nil }),
    ("another app in the proof", { $0.proof.state.bundleId = otherApp }),
    ("an app receipt", { ($0.proof.state.kind, $0.proof.state.signedTransactionId) = (.app, nil) }),
    ("another id in the payload", { $0.proof.state.signedTransactionId = "T2" }),
    ("the order states the app", { $0.order.bundleId = ShopFixture.bundle }),
    ("a refund withdrawn", { $0.payment.revocationWithdrawnDate = asOf }),
    ("Apple states that it is no renewal", { $0.payment.isRenewal = false }),
    ("another product delivered", { $0.delivery.productId = "gems.550" }),
    ("on sale", { $0.rules.catalogue = Catalogue([.init(productId: "gems.100", type: .consumable)]) }),
  ]

  private static let others: [Change] = [
    ("an offer at another price", { ($0.payment.hasOffer, $0.payment.priceMilliunits) = (true, 1) }),
    ("another environment claimed", { $0.proof.claimedEnvironment = "Sandbox" }),
    ("unsigned environment", { ($0.proof.claimedEnvironment, $0.proof.state.environment) = ("Sandbox", nil) }),
    ("a broken receipt", { $0.proof.defect = "it is broken" }),
    ("a broken delivery", { $0.delivery.defect = "it is broken" }),
    ("taken back", { $0.delivery.revokedAt = asOf }),
    ("delivered twice", { $0.delivery.quantity = 2 }),
    ("ordered twice", { $0.order.quantity = 2 }),
    ("ordered and delivered twice", { ($0.order.quantity, $0.delivery.quantity) = (2, 2) }),
    ("delivered to another user", { $0.delivery.userId = "other" }),
    (
      "delivered to an alias",
      { ($0.delivery.userId, $0.rules.people) = ("other", People(aliases: [("other", "user")])) }
    ),
    ("no transaction ID stated", { $0.order.transactionId = nil }),
    ("another transaction ID stated", { $0.order.transactionId = "T2" }),
    ("the original ID stated", { ($0.order.transactionId, $0.payment.originalTransactionId) = ("T0", "T0") }),
    ("another product paid", { $0.payment.productId = "gems.550" }),
    ("another app paid", { $0.payment.bundleId = otherApp }),
    ("Apple states no app", { $0.payment.bundleId = nil }),
    ("another app ordered", { $0.order.bundleId = otherApp }),
    ("contradictory", { $0.payment.isContradictory = true }),
    ("refunded", { $0.payment.revocation = Revocation(date: asOf) }),
    ("refunded in part", { $0.payment.revocation = Revocation(date: asOf, percentage: 50_000) }),
    ("shared", { $0.payment.ownership = .familyShared }),
    ("a restore", { $0.payment.originalPurchaseDate = $0.order.createdAt - .days(1) }),
    ("an old restore", { $0.payment.originalPurchaseDate = $0.order.createdAt - .days(9) }),
    ("a restore of another", { $0.payment.originalTransactionId = "T0" }),
    ("a renewal", { $0.payment.isRenewal = true }),
    ("a subscription", { $0.payment.expiresDate = asOf + .days(3) }),
    ("a lapsed subscription", { $0.payment.expiresDate = asOf - .days(30) }),
    (
      "a period", { ($0.payment.expiresDate, $0.payment.originalTransactionId) = (asOf + .days(3), "T0") }
    ),
    ("another token", { ($0.order.appAccountToken, $0.payment.appAccountToken) = ("ab", .stated("cd")) }),
    ("a token of Apple's alone", { $0.payment.appAccountToken = .stated("cd") }),
    ("a token that Apple has not", { ($0.order.appAccountToken, $0.payment.appAccountToken) = ("ab", .stated(nil)) }),
    ("no token at all", { $0.payment.appAccountToken = .stated(nil) }),
    ("another currency", { $0.payment.currency = "EUR" }),
    ("an unknown currency", { $0.payment.currency = "USDX" }),
    ("another price", { $0.payment.priceMilliunits = 9_910 }),
    (
      "a price within the tolerance",
      { ($0.payment.priceMilliunits, $0.rules.amountToleranceMillionths) = (9_910, 10_000) }
    ),
    (
      "a price beyond the tolerance",
      { ($0.payment.priceMilliunits, $0.rules.amountToleranceMillionths) = (9_910, 9_999) }
    ),
    ("no purchase date", { $0.payment.purchaseDate = nil }),
    ("unknown to the catalogue", { $0.rules.catalogue = Catalogue([.init(productId: "x", type: .consumable)]) }),
    (
      "off sale",
      {
        $0.rules.catalogue = Catalogue([
          .init(productId: "gems.100", type: .consumable, name: nil, soldFrom: asOf, soldUntil: nil)
        ])
      }
    ),
  ]

  private static var changes: [Change] {
    var changes = harmless + others
    for status in OrderStatus.allCases { changes.append(("\(status)", { $0.order.status = status })) }
    for outcome in CheckOutcome.allCases {
      changes.append(("\(outcome)", { ($0.proof.state.outcome, $0.proof.state.reason) = (outcome, nil) }))
      changes.append(
        ("\(outcome), open", { ($0.proof.state.outcome, $0.proof.state.signedTransactionId) = (outcome, nil) }))
    }
    for environment in [AppleEnvironment.sandbox, .xcode, .localTesting] {
      changes.append(
        ("\(environment)", { ($0.payment.environment, $0.proof.state.environment) = (environment, environment) }))
    }
    changes += around("delivered before paid") {
      $0.delivery.deliveredAt = ($0.payment.purchaseDate ?? asOf) - $0.rules.clockSkew + $1
    }
    changes += around("paid long before") {
      $0.order.createdAt = ($0.payment.purchaseDate ?? asOf) + $0.rules.matchWindow + $1
      $0.delivery.deliveredAt = $0.order.createdAt
    }
    changes += around("paid long after") {
      $0.order.createdAt = ($0.payment.purchaseDate ?? asOf) - $0.rules.matchWindow + $1
    }
    changes += around("ordered in future") { $0.order.createdAt = $0.rules.asOf + $0.rules.clockSkew + $1 }
    changes += around("verified in future") { $0.order.verifiedAt = $0.rules.asOf + $0.rules.clockSkew + $1 }
    changes += around("delivered in future") { $0.delivery.deliveredAt = $0.rules.asOf + $0.rules.clockSkew + $1 }
    changes += around("paid in future") {
      let date = $0.rules.asOf + $0.rules.clockSkew + $1
      ($0.payment.purchaseDate, $0.payment.originalPurchaseDate, $0.delivery.deliveredAt) = (date, date, date)
    }
    return changes
  }

  @Test("A plain order is judged the short way, and irrelevant fields do not matter")
  func plain() {
    for change in Self.harmless {
      var sale = Sale()
      change.apply(&sale)
      #expect(sale.isConfirmed == true, "\(change.name)")
    }
  }

  @Test("The short way's result is not confirmed for an order that is unpaid by the rules")
  func unpaid() {
    var sale = Sale()
    let plain = sale
    sale.payment.revocation = Revocation(date: asOf)
    #expect(plain.isConfirmed == true && plain.isConfirmed(by: sale.full) == false)
    sale = plain
    sale.payment.productId = "another"
    #expect(plain.isConfirmed(by: sale.full) == false)
  }

  @Test("With any two changes, the short way equals the rules or declines to judge")
  func changed() {
    let (plain, changes) = (Sale(), Self.changes)
    for first in changes {
      for second in changes {
        var sale = plain
        first.apply(&sale)
        second.apply(&sale)
        let isSame = sale.isConfirmed ?? true
        #expect(isSame, "\(first.name), \(second.name)")
      }
    }
  }
}
