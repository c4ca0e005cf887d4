import Reconciliation

/// The share of the amounts ordered in the period that is refunded in full, of one product or user in one currency.
package struct RefundRate: Hashable, Sendable {
  package var name: String
  package var currency: Currency
  package var ordered: Int128
  package var refunded: Int128

  /// - Returns: nil without a refund.
  init?(_ name: String, _ currency: Currency, _ sums: Totals.Line) {
    refunded = sums.sum(of: .refunded) + sums.sum(of: .refundedStillDelivered)
    guard refunded > 0 else { return nil }
    (self.name, self.currency, ordered) = (name, currency, sums.ordered)
  }

  /// Thousandths of the amounts ordered.
  private var permille: Int128 { refunded.permille(of: ordered) }

  /// `12.5 %`.
  package var words: String { Money.decimalText(permille, digits: 1) + " %" }

  static let shown = 5

  static let title = "Refund rates: of the period's orders, refunded so far"
  static let note =
    "Orders of the period that are refunded in full, whenever the refund was; partial refunds are only on the sheet "
    + "Refunds. The highest rates come first."

  /// Takes a rate into the highest ones.
  static func add(_ rate: RefundRate?, to highest: inout [RefundRate]) {
    guard let rate else { return }
    let place = highest.firstIndex { $0.isLess(than: rate) } ?? highest.endIndex
    highest.insert(rate, at: place)
    if highest.count > shown { highest.removeLast() }
  }

  private func isLess(than other: RefundRate) -> Bool {
    if permille != other.permille { return permille < other.permille }
    if refunded != other.refunded { return refunded < other.refunded }
    return (other.name, other.currency) < (name, currency)
  }
}
