import Reconciliation
import Reporting

/// What one night counts, for the decision whether a person looks at it first.
package struct NightFigures: Equatable, Sendable {
  /// Rows of one sort: how many there are, and the first three of them in words.
  package struct Sample: Hashable, Sendable {
    package private(set) var count = 0
    package private(set) var examples: [String] = []

    package init() {}

    package init(count: Int, examples: [String] = []) {
      self.count = count
      self.examples = examples
    }

    package mutating func add(_ words: @autoclosure () -> String) {
      count += 1
      if examples.count < 3 { examples.append(words()) }
    }
  }

  /// Orders and deliveries in the lookback.
  package var orders = 0
  package var deliveries = 0
  /// Amounts of the orders in the lookback.
  package var ordered = MoneyByCurrency()
  /// Orders with a critical or major finding that the last complete night did not have, by kind. A finding without an
  /// order counts for itself.
  package private(set) var new: [FindingKind: Sample] = [:]
  /// Money at stake in new findings.
  package private(set) var newAtStake = MoneyByCurrency()
  /// How many of them put money in a currency at stake.
  package private(set) var newWithStake: [Currency: Int] = [:]
  /// By currency the new findings with the most money at stake.
  private var largest: [Currency: [Largest]] = [:]
  /// Orders whose rows break the contract.
  package private(set) var badRows = Sample()
  /// Findings that were open in the last complete night, and of these the ones that would close.
  package private(set) var openBefore = 0
  package private(set) var closing = Sample()
  /// Orders that were counted, of kinds that one order can have twice.
  private var counted: [FindingKind: Set<Identifier>] = [:]

  private struct Largest: Hashable, Sendable {
    var minorUnits: Int64
    var words: String
  }

  package init(
    orders: Int = 0, deliveries: Int = 0, ordered: MoneyByCurrency = MoneyByCurrency(), badRows: Sample = Sample()
  ) {
    self.orders = orders
    self.deliveries = deliveries
    self.ordered = ordered
    self.badRows = badRows
  }

  /// Counts a finding that is open tonight.
  ///
  /// - Parameter wasOpen: whether the last complete night had it.
  package mutating func add(_ finding: Finding, wasOpen: Bool) {
    if finding.kind == .badRow, finding.subject.kind == .order { badRows.add(finding.example) }
    if wasOpen {
      openBefore += finding.kind == .unreportedByShop ? 0 : 1
      return
    }
    if let atStake = finding.atStake { add(atStake, of: finding) }
    guard finding.severity != .minor, finding.kind != .stuckUnconfirmed else { return }
    if finding.subject.kind != .order, let orderId = finding.orderId {
      guard counted[finding.kind, default: []].insert(orderId).inserted else { return }
    }
    new[finding.kind, default: Sample()].add(finding.example)
  }

  private mutating func add(_ atStake: Money, of finding: Finding) {
    newAtStake.add(atStake)
    newWithStake[atStake.currency, default: 0] += 1
    var known = largest[atStake.currency] ?? []
    if known.count == 3, let least = known.last, least.minorUnits >= atStake.minorUnits { return }
    known.append(Largest(minorUnits: atStake.minorUnits, words: finding.example))
    known.sort { $0.minorUnits > $1.minorUnits }
    largest[atStake.currency] = Array(known.prefix(3))
  }

  /// Counts a finding that the last complete night had and tonight has not.
  ///
  /// Apple's corrections of its sales reports close findings that the shop's tables have nothing to do with.
  package mutating func add(closing finding: Finding) {
    guard finding.kind != .unreportedByShop else { return }
    openBefore += 1
    closing.add(finding.example)
  }

  fileprivate func examples(in currency: Currency) -> [String] { largest[currency, default: []].map(\.words) }
}

extension Finding {
  /// Its subject and reason, as an example of its kind.
  fileprivate var example: String {
    let place = orderId.map { "order \($0.text)" } ?? "\(subject.kind.rawValue) \(subject.id.text)"
    let money = atStake.map { " (\($0.decimalText) \($0.currency))" } ?? ""
    let words = reason.text(naming: { _ in "(user)" })
    return "\(place)\(money): \(words.isEmpty ? kind.title : words)"
  }
}

/// Why a night is held: a count that is too large or too small, its likely cause, and rows to look at.
package enum HoldCause: Hashable, Sendable, CustomStringConvertible {
  case fewerOrders(now: Int, before: Int)
  case fewerDeliveries(now: Int, before: Int)
  case findings(FindingKind, NightFigures.Sample, of: Int)
  case badRows(NightFigures.Sample, of: Int)
  case closings(NightFigures.Sample, of: Int)
  case atStake(Currency, new: Int128, ordered: Int128, examples: [String])

  package var description: String {
    switch self {
    case .fewerOrders(let now, let before):
      "The lookback holds \(now) orders, and held \(before) in the last complete night: look whether the view or table "
        + "orders still shows them all."
    case .fewerDeliveries(let now, let before):
      "The lookback holds \(now) deliveries, and held \(before) in the last complete night: look whether the view or "
        + "table deliveries still shows them all, and whether the delivery job has run."
    case .findings(let kind, let sample, let total):
      "\(sample.count) of \(total) \(kind == .orphanDelivery ? "deliveries" : "orders") would newly have the finding "
        + "“\(kind.title)”: look \(kind.likelyCause)." + Self.words(sample.examples)
    case .badRows(let sample, let total):
      "\(sample.count) of \(total) orders have rows that break the contract: look at what changed in the view or table "
        + "orders; night-audit doctor names columns and types." + Self.words(sample.examples)
    case .closings(let sample, let total):
      "\(sample.count) of \(total) open findings would close at once. A mended view does this: if one was mended, release "
        + "the night with --accept; else look whether orders, receipts and deliveries are still there."
        + Self.words(sample.examples)
    case .atStake(let currency, let new, let ordered, let examples):
      "\(Money.decimalText(new, digits: currency.digits)) \(currency) would newly be at stake, and all orders of the "
        + "lookback add up to \(Money.decimalText(ordered, digits: currency.digits)) \(currency): look whether units of "
        + "orders and deliveries are the same, and whether amounts are in \(currency) and not in its hundredths."
        + Self.words(examples)
    }
  }

  private static func words(_ examples: [String]) -> String {
    examples.isEmpty ? "" : " For example " + examples.joined(separator: "; ")
  }
}

extension FindingKind {
  /// Where to look when many orders have it at once.
  fileprivate var likelyCause: String {
    switch self {
    case .paidNotDelivered, .partlyDelivered:
      "whether deliveries are loaded up to tonight, name the same orders, and count units as orders do"
    case .deliveredNotPaid: "whether receipts are loaded up to tonight and name the same orders"
    case .wrongUser: "whether user_id of deliveries and of orders are IDs of the same kind"
    case .productMismatch, .soldOutsideCatalogue, .unknownProduct:
      "whether product_id holds Apple's product IDs"
    case .wrongBundle: "whether the view names the app of each order, and bundleId in the configuration is right"
    case .signatureInvalid: "whether receipts are shown as the client sent them, and Apple's roots are installed"
    case .sandboxDelivered, .environmentMislabelled: "whether the view shows orders of a test system"
    case .deliveredTwice, .quantityMismatch:
      "whether quantity counts the same unit in orders and deliveries: packs, or what is in them"
    case .orphanDelivery: "whether deliveries of other stores are left out, and order_id is that of orders"
    case .amountMismatch, .currencyMismatch:
      "whether amount is what the customer paid, in units of currency and not cents"
    case .orphanPayment, .renewalWithoutOrder:
      "whether the view shows all orders, subscriptions included, with their receipts or transaction IDs"
    case .duplicateClaim, .chargedTwice, .boughtTwice:
      "whether transaction_id is the ID of each order's own purchase, and receipts belong to one order"
    case .cancelledButPaid, .statusMismatch: "whether each status of the shop is mapped to the right word"
    case .refundedStillDelivered, .deliveredAfterRefund, .refundReversedNotReinstated, .lapsedStillServed:
      "whether revoked_at is set where goods were taken back or access ended"
    case .partialRefund, .refundNotBooked, .refundOnlyHere: "whether refunds of the shop are mapped to status refunded"
    case .familySharedSale, .restoredAsSale: "whether the view shows restored and family purchases as orders"
    case .deliveredBeforePaid, .purchasePredatesOrder, .futureDated:
      "whether all times are in the same time zone"
    case .accountTokenMissing: "whether the client sends account tokens"
    case .unreportedByShop: "whether the view leaves out products or days"
    case .stuckUnconfirmed, .badRow: "at a few of them with night-audit explain"
    }
  }
}

/// Whether a night may be published without a person having looked at it.
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

  /// Fewer than this many are never too large a share.
  private static let least = 20

  /// `audit.holdShare`; the whole holds nothing.
  package var share: Share
  /// nil on the first night, where all findings are new.
  package var precedent: Precedent?

  package init(share: Share, precedent: Precedent?) {
    self.share = share
    self.precedent = precedent
  }

  /// Everything that is implausible about a night; empty for an ordinary one.
  package func causes(_ night: NightFigures) -> [HoldCause] {
    guard share != .whole else { return [] }
    var causes: [HoldCause] = []
    if let precedent {
      if night.orders * 2 < precedent.orders {
        causes.append(.fewerOrders(now: night.orders, before: precedent.orders))
      }
      if night.deliveries * 2 < precedent.deliveries {
        causes.append(.fewerDeliveries(now: night.deliveries, before: precedent.deliveries))
      }
    }
    for (kind, sample) in night.new.sorted(by: { $0.key.index < $1.key.index }) {
      let total = kind == .orphanDelivery ? night.deliveries : night.orders
      if isMuch(sample.count, of: total) { causes.append(.findings(kind, sample, of: total)) }
    }
    if isMuch(night.badRows.count, of: night.orders) { causes.append(.badRows(night.badRows, of: night.orders)) }
    if isMuch(night.closing.count, of: night.openBefore) {
      causes.append(.closings(night.closing, of: night.openBefore))
    }
    let ordered = night.ordered.minorUnits
    // One lost payment in a currency that nobody had ordered in before is no slip.
    for (currency, new) in night.newAtStake.sorted
    where new > ordered[currency, default: 0] && night.newWithStake[currency, default: 0] >= Plausibility.least {
      causes.append(
        .atStake(currency, new: new, ordered: ordered[currency, default: 0], examples: night.examples(in: currency)))
    }
    return causes
  }

  private func isMuch(_ count: Int, of total: Int) -> Bool {
    count >= Plausibility.least && share.isExceeded(by: count, of: total)
  }
}
