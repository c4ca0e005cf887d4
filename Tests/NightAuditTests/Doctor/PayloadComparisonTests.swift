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
    var changeOrder: @Sendable (inout Order) -> Void = { _ in }
    var changeFact: @Sendable (inout TransactionFact) -> Void = { _ in }
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
      fact.bundleId = "com.example.game"
      fact.quantity = 1
      fact.purchaseDate = Self.now + .seconds(3)
      if listed {
        mistake?.changeOrder(&order)
        mistake?.changeFact(&fact)
        var earlier = fact
        (earlier.transactionId, earlier.purchaseDate) = ("\(1_000 + number)", Self.now - .days(40))
        var other = earlier
        (other.transactionId, other.productId) = ("\(2_000 + number)", "tools")
        comparison.add([other, earlier, fact], order)
        continue
      }
      fact.appAccountToken = .stated(Self.token(number))
      fact.priceMilliunits = 4_990
      fact.currency = "USD"
      fact.revocation = .stated(nil)
      fact.isRenewal = false
      mistake?.changeOrder(&order)
      mistake?.changeFact(&fact)
      comparison.add(fact, order)
    }
    return comparison.diagnoses
  }

  private static func token(_ number: Int) -> String { "00000000-0000-4000-a000-\(String(100_000_000_000 + number))" }

  static let mistakes = [
    Mistake(
      testDescription: "another app", subject: "sales.receipts.payload",
      words: "belong to no configured app (a night would be held, each would be wrong_bundle)",
      changeFact: { $0.bundleId = "com.example.other" }),
    Mistake(
      testDescription: "the other configured app", subject: "sales.orders.bundle_id",
      words: "order o1: com.example.game, transaction 1 com.example.quiz",
      changeFact: { $0.bundleId = "com.example.quiz" }),
    Mistake(
      testDescription: "another ID", subject: "sales.orders.transaction_id",
      words: "each would be transaction_id_mismatch", changeOrder: { $0.transactionId = "4711" }),
    Mistake(
      testDescription: "one account token", subject: "sales.orders.app_account_token",
      words: "have another account token than their order (a night would be held, each would be wrong_user)",
      changeOrder: { $0.appAccountToken = token(0) }),
    Mistake(
      testDescription: "another quantity", subject: "sales.orders.quantity", words: "each would be quantity_mismatch",
      changeOrder: { $0.quantity = 80 }),
    Mistake(
      testDescription: "another currency", subject: "sales.orders.currency", words: "each would be currency_mismatch",
      changeFact: { $0.currency = "KWD" }),
    Mistake(
      testDescription: "the full price in place of an offer's price", subject: "sales.orders.amount",
      words: "order o1: 4.99 USD, Apple 0.000 USD",
      changeFact: { ($0.priceMilliunits, $0.hasOffer) = (0, true) }),
    Mistake(
      testDescription: "cancelled orders that are paid", subject: "sales.orders.status",
      words: "each would be cancelled_but_paid", changeOrder: { $0.status = .cancelled }),
    Mistake(
      testDescription: "the day of an import in place of the order's", subject: "sales.orders.created_at",
      words: "each would be purchase_predates_order", changeOrder: { $0.createdAt = $0.createdAt + .days(31) }),
    Mistake(
      testDescription: "the day of a migration in place of the order's", subject: "sales.orders.created_at",
      words: "are more than three days older than their order", changeOrder: { $0.createdAt = $0.createdAt + .days(4) }),
    Mistake(
      testDescription: "the day of a registration in place of the order's", subject: "sales.orders.created_at",
      words: "are more than three days later than their order", changeOrder: { $0.createdAt = $0.createdAt - .days(4) }),
    Mistake(
      testDescription: "another product", subject: "sales.orders.product_id", words: "each would be product_mismatch",
      changeOrder: { $0.productId = "GEMS" }),
    Mistake(
      testDescription: "another price", subject: "sales.orders.amount", words: "order o1: 499.00 USD, Apple 4.990 USD",
      changeOrder: { $0.amount = Money(minorUnits: 49_900, currency: $0.amount.currency) }),
    Mistake(
      testDescription: "another time zone", subject: "sales.orders.created_at", words: "wrong time zone",
      isProblem: false,
      changeOrder: { $0.createdAt = $0.createdAt + .hours(1) }),
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

  @Test(
    "a mistake in all rows is reported from app receipts with other purchases, too", arguments: shownByAppReceipts)
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
    #expect(try diagnoses(nil).isEmpty)
    #expect(try diagnoses(nil, listed: true).isEmpty)
    #expect(try diagnoses(Self.mistakes[0], rows: 19).isEmpty)
    var sandbox = Self.mistakes[0]
    sandbox.changeFact = {
      $0.bundleId = "com.example.other"
      $0.environment = .sandbox
    }
    #expect(try diagnoses(sandbox).isEmpty)
  }
}
