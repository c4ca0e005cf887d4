import Reconciliation
import Reporting

/// The counts of a night that decide if it is held.
package struct NightFigures: Sendable {
  /// A count of rows with up to three examples.
  package struct Sample: Hashable, Sendable {
    package private(set) var count = 0
    package private(set) var examples: [String] = []

    package init() {}

    package init(count: Int, examples: [String] = []) { (self.count, self.examples) = (count, examples) }

    package mutating func add(_ words: @autoclosure () -> String) {
      count += 1
      if examples.count < 3 { examples.append(words()) }
    }

    package mutating func join(_ other: Sample) {
      count += other.count
      examples = Array((examples + other.examples).prefix(3))
    }
  }

  package var orders = 0
  package var deliveries = 0
  package var ordered = MoneyByCurrency()
  package var ordersByCurrency: [Currency: Int] = [:]
  /// Orders by kind of new critical or major finding. Without an order, the receipts of a user count once, and other
  /// findings by themselves.
  package private(set) var new: [FindingKind: Sample] = [:]
  /// Without payments that no order has: neither units nor amounts of the shop are part of them.
  fileprivate private(set) var newAmountsAtRisk: [Currency: [FindingKind: AmountAtRisk]] = [:]
  package private(set) var badRows = Sample()
  package var paymentTimes = PaymentTimes()
  /// Orders that the last complete night had too, and those of them with another amount tonight.
  package private(set) var ordersBefore = 0
  package private(set) var otherAmounts = Sample()
  /// Orders of earlier nights that are missing tonight.
  package private(set) var missingOrders = Sample()
  /// Orders with goods in the last complete night, and without them tonight.
  package private(set) var lostGoods = Sample()
  /// Receipts that had an order in the last complete night, and those of them with another order, or none, tonight.
  package var receiptsBefore = 0
  package var movedReceipts = Sample()
  /// Orders with a purchase in the last complete night, and those of them without one tonight.
  package private(set) var purchasesBefore = 0
  package private(set) var lostPurchases = Sample()
  /// Findings of the last complete night, and those of them that close.
  package private(set) var openBefore = 0
  package private(set) var closing = Sample()
  /// The counted orders, for kinds that can concern an order twice. An order counts once.
  private var counted: [FindingKind: Set<Identifier>] = [:]
  /// The counted users of receipts without an order. A user counts once.
  private var countedUsers: [FindingKind: Set<Identifier>] = [:]
  private let pseudonyms: Pseudonyms?

  /// The money newly at risk by the findings of one kind in one currency.
  fileprivate struct AmountAtRisk: Hashable, Sendable {
    private(set) var findings = 0
    private(set) var minorUnits: Int128 = 0
    private var largest: [LargestAmount] = []

    private struct LargestAmount: Hashable, Sendable {
      var minorUnits: Int64
      var words: String
    }

    var examples: [String] { largest.map(\.words) }

    mutating func add(_ amount: Money, _ words: @autoclosure () -> String) {
      findings += 1
      minorUnits += Int128(amount.minorUnits)
      if largest.count == 3, let least = largest.last, least.minorUnits >= amount.minorUnits { return }
      largest.append(LargestAmount(minorUnits: amount.minorUnits, words: words()))
      largest.sort { $0.minorUnits > $1.minorUnits }
      largest = Array(largest.prefix(3))
    }
  }

  package init(pseudonyms: Pseudonyms? = nil) { self.pseudonyms = pseudonyms }

  package mutating func add(_ finding: Finding, wasOpen: Bool) {
    let pseudonyms = pseudonyms
    let order = finding.orderId ?? (finding.subject.kind == .order ? finding.subject.id : nil)
    if finding.kind == .badRow, let order, counted[.badRow, default: []].insert(order).inserted {
      badRows.add(finding.example(pseudonyms))
    }
    if wasOpen {
      openBefore += finding.kind.has(.isClosedByApple) ? 0 : 1
      return
    }
    if let atStake = finding.atStake, finding.kind != .orphanPayment {
      newAmountsAtRisk[atStake.currency, default: [:]][finding.kind, default: AmountAtRisk()].add(
        atStake, finding.example(pseudonyms))
    }
    guard finding.holdsNights else { return }
    // Findings on receipts of orders have the order as their subject.
    if finding.subject.kind == .receipt, let userId = finding.userId {
      guard countedUsers[finding.kind, default: []].insert(userId).inserted else { return }
    } else if finding.subject.kind != .order, let orderId = finding.orderId {
      guard counted[finding.kind, default: []].insert(orderId).inserted else { return }
    }
    new[finding.kind, default: Sample()].add(finding.example(pseudonyms))
  }

  /// Counts an order that the last complete night had too, with its state of that night and of tonight.
  package mutating func add(
    _ orderId: Identifier, from before: (disposition: Disposition, amount: Money?),
    to now: (disposition: Disposition, amount: Money?)
  ) {
    ordersBefore += 1
    if let amount = before.amount, let other = now.amount, amount != other {
      otherAmounts.add("order \(orderId.text): \(amount.text), now \(other.text)")
    }
    if before.disposition.hasGoods, now.disposition.lacksGoods {
      lostGoods.add("order \(orderId.text): \(before.disposition.title), now \(now.disposition.title)")
    }
    guard before.disposition.hasPurchase else { return }
    purchasesBefore += 1
    if !now.disposition.hasPurchase {
      lostPurchases.add("order \(orderId.text): \(before.disposition.title), now \(now.disposition.title)")
    }
  }

  package mutating func add(missing orderId: Identifier) { missingOrders.add("order \(orderId.text)") }

  /// Findings that Apple's answers and corrected reports close do not count.
  package mutating func add(closing finding: Finding) {
    guard !finding.kind.has(.isClosedByApple) else { return }
    openBefore += 1
    let pseudonyms = pseudonyms
    closing.add(finding.example(pseudonyms))
  }
}

extension Disposition {
  fileprivate var hasGoods: Bool {
    switch self {
    case .settled, .partlyDelivered, .deliveredNotPaid, .refundedStillDelivered: true
    case .paidNotDelivered, .inFlight, .refunded, .unconfirmed, .void, .sandbox, .badRow: false
    }
  }

  /// True if the goods are known to be missing. A refund takes them back as it should.
  fileprivate var lacksGoods: Bool {
    switch self {
    case .paidNotDelivered, .inFlight, .void: true
    case .settled, .partlyDelivered, .deliveredNotPaid, .refundedStillDelivered, .refunded, .unconfirmed, .sandbox,
      .badRow:
      false
    }
  }
}

extension Finding {
  /// True if a night is held when many orders newly have it. An ID that differs from the order's own proof is minor for
  /// one order, and for many a sign of receipts or IDs that are attached to other orders.
  fileprivate var holdsNights: Bool {
    kind == .transactionIdMismatch || severity != .minor && kind != .stuckUnconfirmed
  }

  fileprivate func example(_ pseudonyms: Pseudonyms?) -> String {
    let place = orderId.map { "order \($0.text)" } ?? "\(subject.kind.rawValue) \(subject.id.text)"
    let money = atStake.map { " (\($0.text))" } ?? ""
    let words = reason.text { pseudonyms?.pseudonym(of: $0) ?? $0.text }
    return "\(place)\(money): \(words.isEmpty ? kind.title : words)"
  }
}

/// The reason to hold a night: an implausible count, its likely cause, and examples.
package enum HoldCause: Hashable, Sendable, CustomStringConvertible {
  /// A problem that doctor finds in the shop's rows.
  case mapping(String)
  case fewerOrders(now: Int, before: Int, examples: [String])
  case fewerDeliveries(now: Int, before: Int, examples: [String])
  case findings(FindingKind, NightFigures.Sample, of: Int)
  case badRows(NightFigures.Sample, of: Int)
  case closings(NightFigures.Sample, of: Int)
  case lostPurchases(NightFigures.Sample, of: Int)
  case otherAmounts(NightFigures.Sample, of: Int)
  case movedReceipts(NightFigures.Sample, of: Int)
  /// The kind is the one with the largest part of the new amount.
  case atStake(Currency, FindingKind, new: Int128, ordered: Int128, examples: [String])
  case paidLate(PaymentTimes)

  package var description: String {
    switch self {
    case .mapping(let problem): "The mapping looks wrong before a first night is published: \(problem)."
    case .fewerOrders(let now, let before, let examples):
      "The lookback has \(now) \(now == 1 ? "order" : "orders"), and had \(before) in the last complete night: check "
        + "whether the view or table orders still shows them all." + Self.words(examples)
    case .fewerDeliveries(let now, let before, let examples):
      "The lookback has \(now) \(now == 1 ? "delivery" : "deliveries"), and had \(before) in the last complete night: "
        + "check whether the view or table deliveries still shows them all, and whether the delivery job has run."
        + Self.words(examples)
    case .findings(let kind, let sample, let total):
      Self.subjects(kind, sample, of: total) + ": check \(kind.definition.likelyCause)." + Self.words(sample.examples)
    case .badRows(let sample, let total):
      "\(sample.count) of \(total) orders have rows that break the contract, in orders, receipts or deliveries: check "
        + "what changed in these views or tables; night-audit doctor names columns and types."
        + Self.words(sample.examples)
    case .closings(let sample, let total):
      "\(sample.count) of \(total) open findings would close at once. A corrected view has this effect: if a view was "
        + "corrected, release the night with --accept; else check whether orders, receipts and deliveries are still there."
        + Self.words(sample.examples)
    case .lostPurchases(let sample, let total):
      "\(sample.count) of \(total) orders had a confirmed purchase in the last complete night, and would have none: check "
        + "whether receipts name the same orders as before, and whether payload and transaction_id are still shown."
        + Self.words(sample.examples)
    case .otherAmounts(let sample, let total):
      "\(sample.count) of \(total) orders have another amount than in the last complete night: check whether amount is "
        + "still the total of each order; if the view was corrected, release the night with --accept."
        + Self.words(sample.examples)
    case .movedReceipts(let sample, let total):
      "\(sample.count) of \(total) receipts name another order than in the last complete night: check whether order_id "
        + "of receipts is still the order that each receipt was sent for; if the view was corrected, release the night "
        + "with --accept." + Self.words(sample.examples)
    case .atStake(let currency, let kind, let new, let ordered, let examples):
      "\(currency.text(new)) \(currency) would newly be at risk, most of it with the finding “\(kind.title)”, and all "
        + "orders of the lookback add up to \(currency.text(ordered)) \(currency): check \(kind.definition.likelyCause)."
        + Self.words(examples)
    case .paidLate(let times):
      "\(times.late) of \(times.orders) paid orders were placed more than three days before their purchase: check whether "
        + "created_at is the time of the order, in the right time zone."
        + Self.words(times.examples.map { "order \($0.orderId): created \($0.createdAt.text), paid \($0.paidAt.text)" })
    }
  }

  /// The rows with the finding. Payments and receipts without an order are no share of the orders.
  private static func subjects(_ kind: FindingKind, _ sample: NightFigures.Sample, of total: Int) -> String {
    let finding = "would newly have the finding “\(kind.title)”"
    return switch kind.definition.subject {
    case .order: "\(sample.count) of \(total) orders \(finding)"
    case .delivery: "\(sample.count) of \(total) deliveries \(finding)"
    case .transaction: "\(sample.count) payments \(finding), against \(total) orders"
    case .receipt:
      "\(sample.count) orders, or customers with receipts without an order, \(finding), against \(total) orders"
    case .productWeek: "\(sample.count) weeks of products \(finding), against \(total) orders"
    }
  }

  private static func words(_ examples: [String]) -> String {
    examples.isEmpty ? "" : " For example " + examples.joined(separator: "; ")
  }
}

package struct Plausibility: Hashable, Sendable {
  package struct EarlierNights: Hashable, Sendable {
    package var orders: Int
    package var deliveries: Int

    package init(orders: Int, deliveries: Int) { (self.orders, self.deliveries) = (orders, deliveries) }
  }

  /// Fewer rows than this never hold a night.
  private static let least = 20

  /// `audit.holdShare`; 100 % never holds a night.
  package var share: Share
  /// nil for the first night, in which all findings are new.
  package var precedent: EarlierNights?

  package init(share: Share, precedent: EarlierNights?) { (self.share, self.precedent) = (share, precedent) }

  package func causes(_ night: NightFigures) -> [HoldCause] {
    guard share != .whole else { return [] }
    var causes: [HoldCause] = []
    if let precedent {
      if night.orders * 2 < precedent.orders {
        causes.append(.fewerOrders(now: night.orders, before: precedent.orders, examples: night.missingOrders.examples))
      }
      if night.deliveries * 2 < precedent.deliveries {
        causes.append(
          .fewerDeliveries(now: night.deliveries, before: precedent.deliveries, examples: night.lostGoods.examples))
      }
      if exceedsHoldShare(night.movedReceipts.count, of: night.receiptsBefore) {
        causes.append(.movedReceipts(night.movedReceipts, of: night.receiptsBefore))
      }
    }
    var heldKinds: Set<FindingKind> = []
    for (kind, sample) in night.new.sorted(by: { $0.key.index < $1.key.index }) {
      let total = kind == .orphanDelivery ? night.deliveries : night.orders
      guard exceedsHoldShare(sample.count, of: total) else { continue }
      heldKinds.insert(kind)
      causes.append(.findings(kind, sample, of: total))
    }
    if exceedsHoldShare(night.paymentTimes.late, of: night.paymentTimes.orders) {
      causes.append(.paidLate(night.paymentTimes))
    }
    let shares: [(NightFigures.Sample, Int, HoldCause)] = [
      (night.badRows, night.orders, .badRows(night.badRows, of: night.orders)),
      (night.closing, night.openBefore, .closings(night.closing, of: night.openBefore)),
      (night.lostPurchases, night.purchasesBefore, .lostPurchases(night.lostPurchases, of: night.purchasesBefore)),
      (night.otherAmounts, night.ordersBefore, .otherAmounts(night.otherAmounts, of: night.ordersBefore)),
    ]
    for (sample, total, cause) in shares where exceedsHoldShare(sample.count, of: total) { causes.append(cause) }
    return causes + amountCauses(night, except: heldKinds)
  }

  /// The currencies in which more is newly at risk than was ordered.
  ///
  /// Kinds that hold the night by their number are left out, because their cause is named already. So is a currency of
  /// fewer than 20 orders and 20 such findings: one wrong row would exceed its few orders.
  private func amountCauses(_ night: NightFigures, except heldKinds: Set<FindingKind>) -> [HoldCause] {
    night.newAmountsAtRisk.sorted { $0.key < $1.key }.compactMap { currency, amounts in
      let others = amounts.filter { !heldKinds.contains($0.key) }
      let new = others.values.reduce(0) { $0 + $1.minorUnits }
      let ordered = night.ordered.minorUnits[currency, default: 0]
      let count = max(others.values.reduce(0) { $0 + $1.findings }, night.ordersByCurrency[currency, default: 0])
      guard new > ordered, count >= Plausibility.least,
        let (kind, amount) = others.max(by: {
          ($0.value.minorUnits, $1.key.index) < ($1.value.minorUnits, $0.key.index)
        })
      else { return nil }
      return .atStake(currency, kind, new: new, ordered: ordered, examples: amount.examples)
    }
  }

  private func exceedsHoldShare(_ count: Int, of total: Int) -> Bool {
    count >= Plausibility.least && share.isExceeded(by: count, of: total)
  }
}
