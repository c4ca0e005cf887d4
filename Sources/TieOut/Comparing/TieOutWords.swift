import Reconciliation

/// The level of a comparison; for each, Apple = ours + explained + unexplained.
package enum TieOutLevel: String, Hashable, CaseIterable, Sendable {
  case units
  /// Units per storefront and currency.
  case country
  case amount
}

package enum TieOutClass: String, Hashable, CaseIterable, Sendable {
  case sale
  case refund
  /// Units at price 0: trials, promo and offer codes.
  case free
  /// Restored purchases, without money.
  case restore

  var index: Int { Self.allCases.firstIndex(of: self) ?? 0 }
}

package enum TieOutExplanation: String, Hashable, CaseIterable, Sendable {
  /// The day has no report, or one so young that Apple still changes it.
  case notReported = "not_reported"
  /// Apps and products that are not configured.
  case otherScope = "other_scope"
  case free
  case restore
  /// Apple counts the unit on another day.
  case timing
  case refundTiming = "refund_timing"
  case refundUnknown = "refund_unknown"
  case partialRefund = "partial_refund"
  case upgrade
  case renewal
  case countryUnknown = "country_unknown"
  /// The same units at another price.
  case price
  case rounding
  case unknownProduct = "unknown_product"
}

package struct Explained: Hashable, Sendable {
  /// Without zeros.
  private var values: [TieOutExplanation: Millionths] = [:]

  package subscript(_ explanation: TieOutExplanation) -> Millionths {
    get { values[explanation] ?? .zero }
    set { values[explanation] = newValue == .zero ? nil : newValue }
  }

  package var sum: Millionths { values.values.reduce(.zero, +) }
  package var isZero: Bool { values.isEmpty }

  package static func += (left: inout Explained, right: Explained) {
    for (explanation, value) in right.values { left[explanation] += value }
  }
}

/// A row of the tie-out: a key, both sides, and the explanation of their difference.
package struct TieOutRow: Hashable, Sendable {
  package var level: TieOutLevel
  /// The configured name; for other apps the SKU, marked if it equals a configured name.
  package var app: String
  package var productId: Identifier
  package var day: ReportDay
  /// Alpha-2; empty if unknown or if the level has none.
  package var country: Identifier
  package var currency: Identifier
  package var kind: TieOutClass
  /// Units, or at level `amount` major units of the currency. nil: unknown.
  package var apple: Millionths?
  package var ours: Millionths?
  package var shop: Millionths?
  /// nil if a required side is unknown.
  package var comparison: Comparison?
  /// Unexplained units of orders whose payment is not confirmed yet.
  package var awaited = Millionths.zero

  /// Both sides, the shop's side, the difference, each explanation, and the unexplained rest; nil: unknown.
  package var figures: [Millionths?] {
    [apple, ours, shop, comparison?.difference] + TieOutExplanation.allCases.map { comparison?.explained[$0] }
      + [comparison?.unexplained]
  }

  var isUnexplainedSale: Bool { level == .units && kind == .sale && comparison.map { $0.unexplained > .zero } ?? false }

  /// `difference` = Apple - ours = the sum of `explained` + `unexplained`.
  package struct Comparison: Hashable, Sendable {
    package var explained: Explained
    package var unexplained: Millionths

    package var difference: Millionths { explained.sum + unexplained }
  }
}
