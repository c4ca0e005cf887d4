import Reconciliation

/// What one night counts, as far as it tells whether the night is plausible.
package struct NightFigures: Hashable, Sendable {
  /// Orders and deliveries in the lookback.
  package var orders: Int
  package var deliveries: Int
  /// Orders that are paid and not delivered in full, or delivered and not paid.
  package var accused: Int
  /// Of these the ones that were not known as such.
  package var newlyAccused: Int
  /// Orders whose rows break the contract.
  package var badRows: Int
  /// Findings that were open before, and of these the ones that would close.
  package var openBefore: Int
  package var closing: Int

  package init(
    orders: Int, deliveries: Int, accused: Int = 0, newlyAccused: Int = 0, badRows: Int = 0, openBefore: Int = 0,
    closing: Int = 0
  ) {
    self.orders = orders
    self.deliveries = deliveries
    self.accused = accused
    self.newlyAccused = newlyAccused
    self.badRows = badRows
    self.openBefore = openBefore
    self.closing = closing
  }
}

/// Why a night is held: what is odd, and what to look at before it is accepted.
package enum HoldCause: Hashable, Sendable, CustomStringConvertible {
  case fewerOrders(now: Int, before: Int)
  case fewerDeliveries(now: Int, before: Int)
  case accusations(Int, of: Int)
  case closings(Int, of: Int)
  case badRows(Int, of: Int)
  case withoutPrecedent(Int, of: Int)

  package var description: String {
    switch self {
    case .fewerOrders(let now, let before):
      "The lookback holds \(now) orders, and held \(before) in the last complete night: look whether the view or table "
        + "orders still shows them all."
    case .fewerDeliveries(let now, let before):
      "The lookback holds \(now) deliveries, and held \(before) in the last complete night: look whether the view or "
        + "table deliveries still shows them all, and whether the delivery job has run."
    case .accusations(let count, let total):
      "\(count) of \(total) orders would newly be paid and not delivered, or delivered and not paid: look at a few of "
        + "them with night-audit explain, and whether deliveries and receipts are loaded up to tonight."
    case .closings(let count, let total):
      "\(count) of \(total) open findings would close at once: look whether their orders, receipts and deliveries are "
        + "still there."
    case .badRows(let count, let total):
      "\(count) of \(total) orders have rows that break the contract: look at what changed in the view or table orders; "
        + "night-audit doctor names columns and types."
    case .withoutPrecedent(let count, let total):
      "No night was complete yet, so that there is none to compare with, and \(count) of \(total) orders are bad rows, paid "
        + "and not delivered, or delivered and not paid: look whether the views show what they should, with night-audit "
        + "doctor and night-audit explain."
    }
  }
}

/// Whether a night may be published without a person having looked at it. Pure.
package struct Plausibility: Hashable, Sendable {
  /// Orders and deliveries in the lookback of the last complete night.
  package struct Precedent: Hashable, Sendable {
    package var orders: Int
    package var deliveries: Int

    package init(orders: Int, deliveries: Int) {
      self.orders = orders
      self.deliveries = deliveries
    }
  }

  /// What stands before the share counts: a share of a handful says nothing.
  private static let least = 20

  /// `audit.holdShare`; the whole holds nothing.
  package var share: Share
  /// nil: there is no complete night to compare with.
  package var precedent: Precedent?

  package init(share: Share, precedent: Precedent?) {
    self.share = share
    self.precedent = precedent
  }

  /// Everything that is implausible about a night; empty for an ordinary one.
  package func causes(_ night: NightFigures) -> [HoldCause] {
    guard share != .whole else { return [] }
    guard let precedent else {
      let odd = night.accused + night.badRows
      return odd * 2 > night.orders ? [.withoutPrecedent(odd, of: night.orders)] : []
    }
    var causes: [HoldCause] = []
    if night.orders * 2 < precedent.orders { causes.append(.fewerOrders(now: night.orders, before: precedent.orders)) }
    if night.deliveries * 2 < precedent.deliveries {
      causes.append(.fewerDeliveries(now: night.deliveries, before: precedent.deliveries))
    }
    if isMuch(night.newlyAccused, of: night.orders) {
      causes.append(.accusations(night.newlyAccused, of: night.orders))
    }
    if isMuch(night.closing, of: night.openBefore) { causes.append(.closings(night.closing, of: night.openBefore)) }
    if isMuch(night.badRows, of: night.orders) { causes.append(.badRows(night.badRows, of: night.orders)) }
    return causes
  }

  private func isMuch(_ count: Int, of total: Int) -> Bool {
    count >= Plausibility.least && share.isExceeded(by: count, of: total)
  }
}
