import AppStore
import Foundation
import Reconciliation
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

  private func diagnoses(_ mistake: Mistake?, rows: Int = 40) throws -> [Diagnosis] {
    var settings = Settings()
    settings.apps = [Settings.App(name: "game", bundleId: "com.example.game")]
    var comparison = PayloadComparison(settings: settings)
    let usd = try #require(Currency(code: "USD"))
    for number in 1...rows {
      var order = Order(
        orderId: Identifier("o\(number)"), userId: "u1", productId: "gems", quantity: 1,
        amount: Money(minorUnits: 499, currency: usd), status: .verified, createdAt: Self.now)
      var fact = TransactionFact(
        environment: .production, transactionId: "\(number)", productId: "gems", channel: .offline, signedDate: Self.now
      )
      fact.bundleId = "com.example.game"
      fact.priceMilliunits = 4_990
      fact.currency = "USD"
      fact.isRenewal = false
      fact.purchaseDate = Self.now + .seconds(3)
      mistake?.changeOrder(&order)
      mistake?.changeFact(&fact)
      comparison.add(fact, order)
    }
    return comparison.diagnoses
  }

  static let mistakes = [
    Mistake(
      testDescription: "another app", subject: "sales.receipts.payload",
      words: "belong to another app than com.example.game",
      changeFact: { $0.bundleId = "com.example.other" }),
    Mistake(
      testDescription: "another product", subject: "sales.orders.product_id", words: "each would be product_mismatch",
      changeOrder: { $0.productId = "GEMS" }),
    Mistake(
      testDescription: "another price", subject: "sales.orders.amount", words: "order o1: 499.00 USD, Apple 4.990",
      changeOrder: { $0.amount = Money(minorUnits: 49_900, currency: $0.amount.currency) }),
    Mistake(
      testDescription: "another time zone", subject: "sales.orders.created_at", words: "wrong time zone",
      isProblem: false,
      changeOrder: { $0.createdAt = $0.createdAt + .hours(1) }),
  ]

  @Test("a mistake in all rows is found with three examples", arguments: mistakes)
  func found(_ mistake: Mistake) throws {
    let found = try diagnoses(mistake)
    let only = try #require(found.first)
    #expect(found.count == 1 && only.subject == mistake.subject, "\(found)")
    let text = try #require(mistake.isProblem ? only.problem : only.warning)
    #expect(text.contains("40") && text.contains(mistake.words), "\(text)")
    #expect(text.components(separatedBy: "Examples: ").last?.components(separatedBy: "; ").count == 3, "\(text)")
  }

  @Test("sound orders, a handful of mistakes and sandbox transactions have no remark")
  func sound() throws {
    #expect(try diagnoses(nil).isEmpty)
    #expect(try diagnoses(Self.mistakes[0], rows: 19).isEmpty)
    var sandbox = Self.mistakes[0]
    sandbox.changeFact = {
      $0.bundleId = "com.example.other"
      $0.environment = .sandbox
    }
    #expect(try diagnoses(sandbox).isEmpty)
  }
}
