import Reconciliation

/// Units that Apple counted: rows of sales reports of one product, day, storefront, currency and price.
package struct AppleUnits: Hashable, Sendable {
  package var day: ReportDay
  package var country: Identifier
  package var currency: Identifier
  package var kind: TieOutClass
  /// For one unit, without sign.
  package var price: Millionths
  /// Negative for refunds.
  package var units: Millionths

  package init(
    day: ReportDay, country: Identifier, currency: Identifier, kind: TieOutClass, price: Millionths, units: Millionths
  ) {
    self.day = day
    self.country = country
    self.currency = currency
    self.kind = kind
    self.price = price
    self.units = units
  }

  /// What a sum of rows counts as; nil for rows without units, which are partial refunds and counted apart.
  package static func kind(of rows: SalesRowKind, price: Millionths, sign: Int8) -> TieOutClass? {
    switch rows {
    case .app: nil
    case .restore: .restore
    case .purchase, .unknown:
      switch sign {
      case 0: nil
      default: price == .zero ? .free : sign < 0 ? .refund : .sale
      }
    }
  }
}

/// Units that we know of: one transaction's, on the day on which it was bought or taken back.
package struct OurUnits: Hashable, Sendable {
  package var day: ReportDay
  /// nil: no channel told.
  package var country: Identifier?
  package var currency: Identifier?
  package var kind: TieOutClass
  /// What they cost in all, without sign; nil: no channel told.
  package var price: Millionths?
  /// Negative for refunds.
  package var units: Int
  /// A renewal that no order claims.
  package var isUnclaimedRenewal = false
  /// An offer whose price nobody told: it may have been free.
  package var mayBeFree = false

  package init(
    day: ReportDay, country: Identifier? = nil, currency: Identifier? = nil, kind: TieOutClass = .sale,
    price: Millionths? = nil, units: Int = 1
  ) {
    self.day = day
    self.country = country
    self.currency = currency
    self.kind = kind
    self.price = price
    self.units = units
  }
}

/// Something that we know about a transaction which may explain a return at Apple.
package struct RefundEvidence: Hashable, Sendable {
  package var day: ReportDay
  package var country: Identifier?
  package var currency: Identifier?

  package init(day: ReportDay, country: Identifier? = nil, currency: Identifier? = nil) {
    self.day = day
    self.country = country
    self.currency = currency
  }
}

/// What the shop booked as paid.
package struct ShopUnits: Hashable, Sendable {
  package var day: ReportDay
  package var currency: Identifier
  package var units: Int
  package var amount: Millionths

  package init(day: ReportDay, currency: Identifier, units: Int, amount: Millionths) {
    self.day = day
    self.currency = currency
    self.units = units
    self.amount = amount
  }

  /// A sum of the same day and currency of which nothing is added up yet.
  var nothing: ShopUnits { ShopUnits(day: day, currency: currency, units: 0, amount: .zero) }

  /// Adds what has the same day and currency.
  mutating func add(_ other: ShopUnits) {
    units += other.units
    amount += other.amount
  }
}

/// All that is known about one product on all sides, within the days that are looked at.
package struct ProductSides: Sendable {
  package var app: String
  package var productId: Identifier
  /// Whether any order or transaction here ever had the product.
  package var isKnown: Bool
  package var apple: [AppleUnits] = []
  package var ours: [OurUnits] = []
  /// Prorated refunds that we know of, on the day of the refund.
  package var partialRefunds: [RefundEvidence] = []
  /// Subscriptions that their owners left for a dearer one, on the day of purchase.
  package var upgrades: [RefundEvidence] = []
  package var shop: [ShopUnits] = []
  /// Purchases as what restores them tells them, by the purchases' ids.
  var restored: [Identifier: RestoredSale] = [:]
  /// The ids of purchases that are here themselves.
  var recorded: Set<Identifier> = []

  package init(app: String, productId: Identifier, isKnown: Bool) {
    self.app = app
    self.productId = productId
    self.isKnown = isKnown
  }
}

/// Which days Apple has reported.
package struct DayCoverage: Sendable {
  package enum Coverage: Hashable, Sendable {
    /// No vendor's report that could be read.
    case missing
    /// There are some, but Apple still changes reports of that age.
    case young
    /// Reports of some vendors, but not of all: what they count is the least that Apple does.
    case partial
    case final
  }

  /// The days that are looked at, some of them before the first one that is compared.
  package let days: ClosedRange<ReportDay>
  /// The days that rows are made for.
  package let compared: ClosedRange<ReportDay>
  /// Of those the ones that reports list and sum.
  package let printed: ClosedRange<ReportDay>
  /// Of each of the days.
  let each: [Coverage]

  package init(
    days: ClosedRange<ReportDay>, compared: ClosedRange<ReportDay>, printed: ClosedRange<ReportDay>,
    coverage: (ReportDay) -> Coverage
  ) {
    self.days = days
    self.compared = compared
    self.printed = printed
    each = days.map(coverage)
  }

  package subscript(_ index: Int) -> Coverage { each[index] }
  package subscript(_ day: ReportDay) -> Coverage { each[index(day)] }
  /// Whether a day is looked at and its reports stand.
  func isFinal(_ day: ReportDay) -> Bool { days.contains(day) && self[day] == .final }
  func index(_ day: ReportDay) -> Int { day.number - days.lowerBound.number }
  func day(_ index: Int) -> ReportDay { days.lowerBound.advanced(by: index) }
  var count: Int { each.count }
}
