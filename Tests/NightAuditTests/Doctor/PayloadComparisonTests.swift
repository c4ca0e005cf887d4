import AppStore
import Foundation
import Reconciliation
import Settings
import Testing

@testable import NightAudit
@testable import Run

@Suite struct PayloadComparisonTests {
  private static let now = Instant(seconds: 1_795_132_800)

  struct Mistake: Sendable, CustomTestStringConvertible {
    var testDescription: String
    var subject: String
    var words: String
    var isProblem = true
    var change: @Sendable (inout Order, inout TransactionFact) -> Void

    init(
      _ name: String, _ subject: String, _ words: String, isProblem: Bool = true,
      _ change: @escaping @Sendable (inout Order, inout TransactionFact) -> Void
    ) {
      (testDescription, self.subject, self.words, self.isProblem) = (name, subject, words, isProblem)
      self.change = change
    }
  }

  /// - Parameter listed: false for signed transactions; true for app receipts, which list another purchase too.
  private func diagnoses(_ mistake: Mistake?, rows: Int = 40, listed: Bool = false) throws -> [Diagnosis] {
    var settings = Settings()
    settings.apps = ["game", "quiz"].map { Settings.App(name: $0, bundleId: "com.example.\($0)") }
    var comparison = PayloadComparison(settings: settings)
    let usd = try #require(Currency(code: "USD"))
    for number in 1...rows {
      var order = Order(
        orderId: Identifier("o\(number)"), userId: "u1", productId: "gems", quantity: 1,
        amount: Money(minorUnits: 499, currency: usd), status: .verified, createdAt: Self.now)
      order.bundleId = "com.example.game"
      order.transactionId = Identifier("\(number)")
      order.appAccountToken = Self.token(number).uppercased()
      var fact = TransactionFact(
        environment: .production, transactionId: "\(number)", productId: "gems", channel: .offline, signedDate: Self.now
      )
      (fact.bundleId, fact.quantity, fact.purchaseDate) = ("com.example.game", 1, Self.now + .seconds(3))
      if !listed {
        fact.appAccountToken = .stated(Self.token(number))
        (fact.priceMilliunits, fact.currency, fact.isRenewal) = (4_990, "USD", false)
        fact.revocation = .stated(nil)
      }
      mistake?.change(&order, &fact)
      var (earlier, other) = (fact, fact)
      (earlier.transactionId, earlier.purchaseDate) = ("\(1_000 + number)", Self.now - .days(40))
      (other.transactionId, other.purchaseDate) = ("\(2_000 + number)", Self.now - .days(40))
      other.productId = "tools"
      if listed { comparison.add([other, earlier, fact], order) } else { comparison.add(fact, order) }
    }
    return comparison.diagnoses
  }

  private static func token(_ number: Int) -> String { "00000000-0000-4000-a000-\(String(100_000_000_000 + number))" }

  static let mistakes = [
    Mistake(
      "another app", "sales.receipts.payload",
      "belong to no configured app (a night would be held, each would be wrong_bundle)"
    ) { _, fact in fact.bundleId = "com.example.other" },
    Mistake(
      "the other configured app", "sales.orders.bundle_id", "order o1: com.example.game, transaction 1 com.example.quiz"
    ) { _, fact in fact.bundleId = "com.example.quiz" },
    Mistake("another ID", "sales.orders.transaction_id", "each would be transaction_id_mismatch") { order, _ in
      order.transactionId = "4711"
    },
    Mistake(
      "one account token", "sales.orders.app_account_token",
      "have another account token than their order (a night would be held, each would be wrong_user)"
    ) { order, _ in order.appAccountToken = token(0) },
    Mistake("another quantity", "sales.orders.quantity", "each would be quantity_mismatch") { order, _ in
      order.quantity = 80
    },
    Mistake("another currency", "sales.orders.currency", "each would be currency_mismatch") { _, fact in
      fact.currency = "KWD"
    },
    Mistake("the full price in place of an offer's price", "sales.orders.amount", "order o1: 4.99 USD, Apple 0.000 USD")
    { _, fact in (fact.priceMilliunits, fact.hasOffer) = (0, true) },
    Mistake("cancelled orders that are paid", "sales.orders.status", "each would be cancelled_but_paid") { order, _ in
      order.status = .cancelled
    },
    Mistake(
      "the day of an import in place of the order's", "sales.orders.created_at", "each would be purchase_predates_order"
    ) { order, _ in order.createdAt = order.createdAt + .days(31) },
    Mistake(
      "the day of a migration in place of the order's", "sales.orders.created_at",
      "are more than three days older than their order"
    ) { order, _ in order.createdAt = order.createdAt + .days(4) },
    Mistake(
      "the day of a registration in place of the order's", "sales.orders.created_at",
      "are more than three days later than their order"
    ) { order, _ in order.createdAt = order.createdAt - .days(4) },
    Mistake("another product", "sales.orders.product_id", "each would be product_mismatch") { order, _ in
      order.productId = "GEMS"
    },
    Mistake("another price", "sales.orders.amount", "order o1: 499.00 USD, Apple 4.990 USD") { order, _ in
      order.amount = Money(minorUnits: 49_900, currency: order.amount.currency)
    },
    Mistake("another time zone", "sales.orders.created_at", "wrong time zone", isProblem: false) { order, _ in
      order.createdAt = order.createdAt + .hours(1)
    },
  ]

  @Test("a mistake in all rows is reported with three examples", arguments: mistakes)
  func found(_ mistake: Mistake) throws {
    let found = try diagnoses(mistake)
    let only = try #require(found.first)
    #expect(found.count == 1 && only.subject == mistake.subject, "\(found)")
    let text = try #require(mistake.isProblem ? only.problem : only.warning)
    #expect(text.contains("40") && text.contains(mistake.words), "\(text)")
    #expect(text.components(separatedBy: "Examples: ").last?.components(separatedBy: "; ").count == 3, "\(text)")
  }

  static let shownByAppReceipts = mistakes.filter {
    [
      "sales.receipts.payload", "sales.orders.bundle_id", "sales.orders.transaction_id", "sales.orders.quantity",
      "sales.orders.product_id", "sales.orders.created_at",
    ].contains($0.subject)
  }

  @Test("a mistake in all rows is reported from app receipts with other purchases, too", arguments: shownByAppReceipts)
  func foundInAppReceipts(_ mistake: Mistake) throws {
    let found = try diagnoses(mistake, listed: true)
    let only = try #require(found.first)
    #expect(found.count == 1 && only.subject == mistake.subject, "\(found)")
    #expect((only.problem ?? only.warning)?.contains("40 of 40 transactions in receipts") == true, "\(found)")
  }

  @Test("the goods of consumables and non-consumables do not expire, those of subscriptions do")
  func lastingProducts() {
    var comparison = PayloadComparison(settings: Settings())
    let types: [ProductType?] = [.consumable, .nonConsumable, .autoRenewable, .nonRenewing, nil]
    for (number, type) in types.enumerated() {
      var fact = TransactionFact(
        environment: .production, transactionId: "\(number)", productId: "p\(number)", channel: .offline,
        signedDate: Self.now)
      fact.productType = type
      if number == 0 { comparison.add(fact, nil) } else { comparison.add([fact], nil) }
    }
    #expect(comparison.lastingProducts == ["p0", "p1"])
  }

  @Test("correct orders, mistakes in few rows and sandbox transactions are not reported")
  func sound() throws {
    #expect(try diagnoses(nil).isEmpty && diagnoses(nil, listed: true).isEmpty)
    #expect(try diagnoses(Self.mistakes[0], rows: 19).isEmpty)
    var sandbox = Self.mistakes[0]
    sandbox.change = { _, fact in (fact.bundleId, fact.environment) = ("com.example.other", .sandbox) }
    #expect(try diagnoses(sandbox).isEmpty)
  }
}
