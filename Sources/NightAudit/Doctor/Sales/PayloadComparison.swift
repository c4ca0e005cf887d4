import AppStore
import Reconciliation
import Reporting
import Run
import Settings

/// Compares orders with the transactions in their receipts. Signatures are not checked.
struct PayloadComparison {
  private enum Comparison: CaseIterable {
    case payload, bundle, transaction, product, token, quantity, amount, currency, status, createdLate, createdEarly,
      zone

    /// The report if the transactions of many rows do not agree with their orders.
    struct Difference {
      let column: String
      let words: String
      /// The finding on each differing order; nil: none.
      var kind: FindingKind?
      let remedy: String
      /// The share of differing transactions that is reported.
      var percent = 5
    }

    var difference: Difference {
      switch self {
      case .payload:
        Difference(
          column: "receipts.payload", words: "belong to no configured app", kind: .wrongBundle,
          remedy: "correct bundleId in the configuration, or leave receipts of other apps out of the view")
      case .bundle:
        Difference(
          column: "orders.bundle_id", words: "belong to another app than their order", kind: .wrongBundle,
          remedy: "select the bundle ID of the app that sold the order in the view")
      case .transaction:
        Difference(
          column: "orders.transaction_id", words: "have another ID than their order states",
          kind: .transactionIdMismatch,
          remedy: "select Apple's transaction ID of the order's own purchase, and check receipts.order_id, in the views"
        )
      case .product:
        Difference(
          column: "orders.product_id", words: "are of another product than their order", kind: .productMismatch,
          remedy: "select Apple's product identifier in the view")
      case .token:
        Difference(
          column: "orders.app_account_token", words: "have another account token than their order", kind: .wrongUser,
          remedy: "select the token that the client gave to StoreKit for the order's user, else NULL, in the view")
      case .quantity:
        Difference(
          column: "orders.quantity", words: "have another quantity than their order", kind: .quantityMismatch,
          remedy: "count Apple's units in the view: one purchase of a pack of 80 gems is quantity 1")
      case .amount:
        Difference(
          column: "orders.amount", words: "have another price than their order", kind: .amountMismatch,
          remedy: "select the total that the customer paid, in major units, in the view")
      case .currency:
        Difference(
          column: "orders.currency", words: "have another currency than their order", kind: .currencyMismatch,
          remedy: "select the currency in which the customer paid in the view")
      case .status:
        Difference(
          column: "orders.status", words: "belong to orders that failed or were cancelled", kind: .cancelledButPaid,
          remedy: "check which state of the shop is mapped to which status")
      case .createdLate:
        Difference(
          column: "orders.created_at", words: "are more than three days older than their order",
          kind: .purchasePredatesOrder, remedy: "select the time of the order in the view")
      case .createdEarly:
        Difference(
          column: "orders.created_at", words: "are more than three days later than their order",
          remedy: "select the time of the order in the view")
      case .zone:
        Difference(
          column: "orders.created_at", words: "are half an hour or more from their order",
          remedy: "if the column is read in a wrong time zone, write its own zone into the view: AT TIME ZONE '<zone>'",
          percent: 80)
      }
    }
  }

  let settings: Settings
  /// The compared transactions, in words.
  private let transactions: String
  private let rules: Rules
  private var tallies: [Comparison: Tally] = [:]
  /// Consumables and products that are bought once.
  private(set) var lastingProducts: Set<String> = []

  /// True if Apple states the prices of enough orders to compare amounts with them.
  var hasPrices: Bool { (tallies[.currency]?.all ?? 0) >= Tally.fewest }

  /// Tolerance of time differences. Wrong time zones differ by 30 minutes or more.
  private static let late = Span.minutes(29)

  init(settings: Settings, transactions: String = "transactions in receipts") {
    self.settings = settings
    self.transactions = transactions
    rules = settings.rules(asOf: .now)
  }

  private mutating func count(_ comparison: Comparison, _ isOdd: Bool, _ example: @autoclosure () -> String) {
    tallies[comparison, default: Tally()].count(isOdd, example())
  }

  /// Adds an app receipt, which lists other purchases of the user too. The transaction that the order states is compared,
  /// else the nearest one of its product.
  mutating func add(_ listed: [TransactionFact], _ order: Order?) {
    for fact in listed { note(fact) }
    guard let first = listed.first, first.environment == .production else { return }
    guard let order else { return compareBundle(of: first, nil) }
    func distance(_ fact: TransactionFact) -> Span { ((fact.purchaseDate ?? .now) - order.createdAt).magnitude }
    let stated = order.transactionId?.text
    let own =
      listed.first { $0.transactionId == stated }
      ?? listed.filter {
        stated != nil && $0.originalTransactionId == stated || $0.productId == order.productId.text
      }.min { distance($0) < distance($1) }
    if let own { return add(own, order) }
    compareBundle(of: first, order)
    count(
      .product, true,
      "order \(order.orderId): \(order.productId), transaction \(first.transactionId) \(first.productId)")
  }

  private mutating func note(_ fact: TransactionFact) {
    switch fact.productType {
    case .consumable, .nonConsumable: lastingProducts.insert(fact.productId)
    case .autoRenewable, .nonRenewing, nil: break
    }
  }

  private mutating func compareBundle(of fact: TransactionFact, _ order: Order?) {
    guard let bundle = fact.bundleId else { return }
    let transaction = "transaction \(fact.transactionId)"
    let isKnown = settings.apps.contains { $0.bundleId == bundle }
    count(.payload, !isKnown, "\(transaction) of \(bundle)")
    if isKnown, let order, let stated = order.bundleId {
      count(.bundle, stated != bundle, "order \(order.orderId): \(stated), \(transaction) \(bundle)")
    }
  }

  mutating func add(_ fact: TransactionFact, _ order: Order?) {
    note(fact)
    guard fact.environment == .production else { return }
    compareBundle(of: fact, order)
    let transaction = "transaction \(fact.transactionId)"
    guard let order else { return }
    let name = "order \(order.orderId)"
    if let stated = order.transactionId {
      let ids = [fact.transactionId, fact.originalTransactionId]
      count(.transaction, !ids.contains(stated.text), "\(name): \(stated), \(transaction)")
    }
    let refusal = Refusal(
      .verified, reason: nil, provenProductId: fact.productId, orderedProductId: order.productId.text)
    count(.product, refusal != nil, "\(name): \(order.productId), \(transaction) \(fact.productId)")
    if let token = order.appAccountToken, case .stated(.some(let other)) = fact.appAccountToken {
      // Tokens that are no UUID are skipped because the rules do not compare them.
      if let isSame = AccountToken.isSame(token, other) {
        count(.token, !isSame, "\(name): \(token), \(transaction) \(other)")
      }
    }
    if let quantity = fact.quantity {
      count(.quantity, quantity != order.quantity, "\(name): \(order.quantity), \(transaction) \(quantity)")
    }
    if let currency = fact.currency, let price = fact.priceMilliunits { addPrice(price, currency: currency, order) }
    if fact.revocation == .stated(nil) {
      let isCancelled = order.status == .failed || order.status == .cancelled
      count(.status, isCancelled, "\(name): \(order.status.rawValue), \(transaction)")
    }
    // App receipts do not state whether a transaction renews or restores an earlier one.
    let isFirst =
      fact.isRenewal.map { !$0 }
      ?? (fact.expiresDate == nil && [nil, fact.transactionId].contains(fact.originalTransactionId))
    if isFirst, let date = fact.purchaseDate {
      let lead = date - order.createdAt
      let times = "\(name) created \(order.createdAt.text), purchased \(date.text)"
      count(.createdLate, order.createdAt - date > .days(3), times)
      count(.createdEarly, lead > .days(3), times)
      count(.zone, lead.magnitude > Self.late, times)
    }
  }

  mutating func addPrice(_ milliunits: Int64, currency: String, _ order: Order) {
    let isSame = currency == order.amount.currency.code
    let charged = "\(Money.decimalText(Int128(milliunits), digits: 3)) \(currency)"
    let prices = "order \(order.orderId): \(order.amount.decimalText) \(order.amount.currency), Apple \(charged)"
    count(.currency, !isSame, prices)
    if isSame { count(.amount, !rules.tolerates(order.amount, charged: milliunits), prices) }
  }

  var diagnoses: [Diagnosis] {
    var noticeable = Comparison.allCases.filter { tallies[$0]?.isMore(thanPercent: $0.difference.percent) == true }
    // A wrong day is no wrong time zone.
    if noticeable.contains(.createdLate) || noticeable.contains(.createdEarly) { noticeable.removeAll { $0 == .zone } }
    return noticeable.map { comparison in
      let (tally, difference) = (tallies[comparison] ?? Tally(), comparison.difference)
      return Diagnosis(
        subject: "\(settings.salesSchema).\(difference.column)",
        held: comparison != .zone && tally.holdsNight(settings.holdShare),
        because: "\(tally.odd) of \(tally.all) \(transactions) \(difference.words)", kind: difference.kind,
        remedy: difference.remedy,
        examples: tally.examples)
    }
  }
}
