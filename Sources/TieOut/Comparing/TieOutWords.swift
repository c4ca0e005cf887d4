import Reconciliation

/// What is compared; each level prints Apple = ours + explained + unexplained of its own.
package enum TieOutLevel: String, Hashable, CaseIterable, Sendable {
  /// Units per product and day: works whatever channel told us of a transaction.
  case units
  /// The same per storefront and currency.
  case country
  /// What customers paid, per product, day and currency.
  case amount
}

/// What kind of counting a row is about.
package enum TieOutClass: String, Hashable, CaseIterable, Sendable {
  case sale
  case refund
  /// Units at price 0: trials, promo and offer codes.
  case free
  /// Purchases that were given back without money.
  case restore

  var index: Int {
    switch self {
    case .sale: 0
    case .refund: 1
    case .free: 2
    case .restore: 3
    }
  }
}

/// Why Apple's number is not ours. The order is the one in which residuals are explained and in which columns stand.
package enum TieOutExplanation: String, Hashable, CaseIterable, Sendable {
  /// The day's report is not there, or so young that Apple still changes it.
  case notReported = "not_reported"
  /// Apps and products that are not configured here.
  case otherScope = "other_scope"
  case free
  case restore
  /// Counted on another day by Apple than by us.
  case timing
  case refundTiming = "refund_timing"
  /// Apple has taken something back, and we know of no revocation.
  case refundUnknown = "refund_unknown"
  case partialRefund = "partial_refund"
  case upgrade
  case renewal
  /// Our transaction does not say in which storefront it was bought.
  case countryUnknown = "country_unknown"
  /// Equal units at another price.
  case price
  case rounding
  /// A product that no order and no transaction here ever had.
  case unknownProduct = "unknown_product"

  var index: Int {
    switch self {
    case .notReported: 0
    case .otherScope: 1
    case .free: 2
    case .restore: 3
    case .timing: 4
    case .refundTiming: 5
    case .refundUnknown: 6
    case .partialRefund: 7
    case .upgrade: 8
    case .renewal: 9
    case .countryUnknown: 10
    case .price: 11
    case .rounding: 12
    case .unknownProduct: 13
    }
  }
}

/// A number for each explanation.
package struct Explained: Hashable, Sendable {
  private var values = [Millionths](repeating: .zero, count: TieOutExplanation.allCases.count)

  package init() {}

  package subscript(_ explanation: TieOutExplanation) -> Millionths {
    get { values[explanation.index] }
    set { values[explanation.index] = newValue }
  }

  package var sum: Millionths { values.reduce(.zero, +) }
  package var isZero: Bool { values.allSatisfy { $0 == .zero } }

  package static func += (left: inout Explained, right: Explained) {
    for index in left.values.indices { left.values[index] += right.values[index] }
  }
}

/// One row of the tie-out: a key with what each side says, and where the difference comes from.
package struct TieOutRow: Hashable, Sendable {
  package var level: TieOutLevel
  /// The app's name in the configuration; of other apps the SKU that Apple names, marked where an app here is called so.
  package var app: String
  package var productId: Identifier
  package var day: ReportDay
  /// Alpha-2; empty where the level has none or nobody told.
  package var country: Identifier
  package var currency: Identifier
  package var kind: TieOutClass
  /// Units, or at level `amount` major units of the currency. nil: not told.
  package var apple: Millionths?
  package var ours: Millionths?
  package var shop: Millionths?
  /// nil where a side that must be known is not told: then nothing is compared.
  package var comparison: Comparison?
  /// Of what is unexplained: units of orders whose payment nobody has confirmed so far.
  package var awaited = Millionths.zero

  /// Whether it is of units that Apple sold and nothing explains.
  var isUnexplainedSale: Bool {
    level == .units && kind == .sale && comparison.map { $0.unexplained > .zero } ?? false
  }

  /// `difference` = Apple - ours = the sum of `explained` + `unexplained`.
  package struct Comparison: Hashable, Sendable {
    package var explained: Explained
    package var unexplained: Millionths

    package var difference: Millionths { explained.sum + unexplained }
  }
}
