import AppStore
import Reconciliation
import Reporting
import Run

/// Compares orders with the signed transactions of their receipts. Signatures are not checked.
struct PayloadComparison {
  let settings: Settings
  private let rules: Rules
  private var bundles = Tally()
  private var products = Tally()
  private var amounts = Tally()
  private var times = Tally()

  /// Tolerance of time differences. Wrong time zones differ by 30 minutes or more.
  private static let late = Span.minutes(29)

  init(settings: Settings) {
    self.settings = settings
    rules = settings.rules(asOf: .now)
  }

  mutating func add(_ fact: TransactionFact, _ order: Order?) {
    guard fact.environment == .production else { return }
    let transaction = "transaction \(fact.transactionId)"
    if let bundle = fact.bundleId {
      let isOdd = !settings.apps.contains { $0.bundleId == bundle }
      bundles.count(isOdd, "\(transaction) of \(bundle)")
    }
    guard let order else { return }
    let name = "order \(order.orderId)"
    products.count(
      fact.productId != order.productId.text, "\(name): \(order.productId), \(transaction) \(fact.productId)")
    if fact.currency == order.amount.currency.code, let price = fact.priceMilliunits, fact.hasOffer != true {
      amounts.count(
        !rules.tolerates(order.amount, charged: price),
        "\(name): \(order.amount.decimalText) \(order.amount.currency), Apple \(Money.decimalText(Int128(price), digits: 3))"
      )
    }
    if fact.isRenewal == false, let date = fact.purchaseDate {
      let distance = Span(microseconds: abs(date.microseconds - order.createdAt.microseconds))
      times.count(distance > Self.late, "\(name) created \(order.createdAt.text), purchased \(date.text)")
    }
  }

  var diagnoses: [Diagnosis] {
    let names = settings.apps.map(\.bundleId).joined(separator: ", ")
    let schema = settings.salesSchema
    var found: [Diagnosis] = []
    func compare(_ column: String, _ tally: Tally, _ kind: FindingKind, _ words: String, _ remedy: String) {
      guard tally.isMore(thanPercent: 5) else { return }
      found.append(
        Diagnosis(
          subject: "\(schema).\(column)", held: tally.holdsNight(settings.holdShare),
          because: "\(tally.odd) of the newest \(tally.all) signed transactions \(words)", kind: kind, remedy: remedy,
          examples: tally.examples))
    }
    compare(
      "receipts.payload", bundles, .wrongBundle, "belong to another app than \(names)",
      "correct bundleId in the configuration, or leave receipts of other apps out of the view")
    compare(
      "orders.product_id", products, .productMismatch, "are of another product than their order",
      "select Apple's product identifier in the view")
    compare(
      "orders.amount", amounts, .amountMismatch, "have another price than their order",
      "select the total that the customer paid, in major units, in the view")
    if times.isMore(thanPercent: 80) {
      found.append(
        Diagnosis(
          subject: "\(schema).orders.created_at", held: false,
          because: "\(times.odd) of \(times.all) orders are half an hour or more from their purchase", kind: nil,
          remedy: "if the column is read in a wrong time zone, write its own zone into the view: AT TIME ZONE '<zone>'",
          examples: times.examples))
    }
    return found
  }
}

extension Tally {
  fileprivate mutating func count(_ isOdd: Bool, _ example: @autoclosure () -> String) {
    all += 1
    guard isOdd else { return }
    odd += 1
    if examples.count < 3 { examples.append(example()) }
  }
}
