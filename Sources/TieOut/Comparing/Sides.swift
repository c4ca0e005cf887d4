import Reconciliation

/// Units in Apple's sales reports, for one product, day, storefront, currency and price.
package struct AppleUnits: Hashable, Sendable {
  package var day: ReportDay
  package var country: Identifier
  package var currency: Identifier
  package var kind: TieOutClass
  /// For one unit, without sign.
  package var price: Millionths
  /// Negative for refunds.
  package var units: Millionths

  /// nil for rows without units: partial refunds, which are counted separately.
  package static func kind(of rows: SalesRowKind, price: Millionths, sign: Int8) -> TieOutClass? {
    switch rows {
    case .app: nil
    case .restore: .restore
    case .purchase, .unknown: sign == 0 ? nil : price == .zero ? .free : sign < 0 ? .refund : .sale
    }
  }
}

package struct OurUnits: Hashable, Sendable {
  package var day: ReportDay
  package var country: Identifier?
  package var currency: Identifier?
  package var kind: TieOutClass = .sale
  /// The total price without sign; nil: unknown.
  package var price: Millionths?
  /// Negative for refunds.
  package var units = 1
  package var isUnclaimedRenewal = false
  /// An offer without a known price.
  package var mayBeFree = false
}

package struct RefundEvidence: Hashable, Sendable {
  package var day: ReportDay
  package var country: Identifier?
  package var currency: Identifier?
}

package struct ShopUnits: Hashable, Sendable {
  package var day: ReportDay
  package var currency: Identifier
  package var units: Int
  package var amount: Millionths
}

package struct ProductSides: Sendable {
  package var app: String
  package var productId: Identifier
  /// True if any order or transaction had the product.
  package var isKnown: Bool
  package var apple: [AppleUnits] = []
  package var ours: [OurUnits] = []
  package var partialRefunds: [RefundEvidence] = []
  /// Subscriptions left for a more expensive one, by the day of purchase.
  package var upgrades: [RefundEvidence] = []
  package var shop: [ShopUnits] = []
  var restored: [Identifier: RestoredSale] = [:]
  var recorded: Set<Identifier> = []
}

package struct DayCoverage: Sendable {
  package enum Coverage: Hashable, Sendable {
    /// No readable report of any vendor.
    case missing
    /// Apple still changes reports of this age.
    case young
    /// Reports of some vendors only: their units are a lower bound.
    case partial
    case final
  }

  /// Includes days before the first compared one.
  package let days: ClosedRange<ReportDay>
  package let compared: ClosedRange<ReportDay>
  /// Days in the report's lists and sums.
  package let printed: ClosedRange<ReportDay>
  let each: [Coverage]

  package init(
    days: ClosedRange<ReportDay>, compared: ClosedRange<ReportDay>, printed: ClosedRange<ReportDay>,
    coverage: (ReportDay) -> Coverage
  ) {
    (self.days, self.compared, self.printed) = (days, compared, printed)
    each = days.map(coverage)
  }

  package subscript(_ index: Int) -> Coverage { each[index] }
  package subscript(_ day: ReportDay) -> Coverage { each[index(day)] }
  func isFinal(_ day: ReportDay) -> Bool { days.contains(day) && self[day] == .final }
  func index(_ day: ReportDay) -> Int { day.number - days.lowerBound.number }
  var count: Int { each.count }
}
