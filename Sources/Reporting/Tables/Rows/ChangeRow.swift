import Reconciliation

/// A change since the last complete night.
package struct ChangeRow: Hashable, Sendable {
  /// The kind of change; the raw value is the word in `changes.csv`.
  package enum Change: String, Hashable, CaseIterable, Sendable {
    /// A finding that was open then and is closed now.
    case closed
    /// A finding that was never reported before.
    case new
    /// A closed finding that is open again.
    case reopened
    /// A finding that stayed open and whose status people changed.
    case status
    /// An order or a refund of an earlier day that is different now.
    case adjusted

    var title: String { self == .status ? "with another status" : rawValue }
  }

  package var change: Change
  /// nil for an order or a refund.
  package var findingId: String?
  /// True for an adjusted refund.
  package var isRefund = false
  package var kind: FindingKind?
  package var severity: Severity?
  package var orderId: Identifier?
  package var userId: Identifier?
  package var atStake: Money?
  /// Amount of the order, or of the payment without an order. Of an adjusted refund the difference, negative if more is
  /// refunded now.
  package var amount: Money?
  package var currency: Currency?
  package var before: String?
  package var after: String?
  /// The reason as a sentence; set for closed findings and adjusted orders.
  package var because: String?
  package var occurredAt: Instant?
  /// The day of `occurredAt` in the report's time zone, set by `place(in:)`.
  private(set) var day: String?

  package init(
    _ change: Change, finding: Finding, findingId: String, before: String?, after: String?, because: String? = nil
  ) {
    self.init(
      change, findingId: findingId, kind: finding.kind, severity: finding.severity, orderId: finding.orderId,
      userId: finding.userId, atStake: finding.atStake, amount: finding.amountInRiskCurrency,
      currency: finding.currency, before: before, after: after, because: because, occurredAt: finding.occurredAt)
  }

  package init(
    _ change: Change, findingId: String? = nil, kind: FindingKind? = nil, severity: Severity? = nil,
    orderId: Identifier?, userId: Identifier?, atStake: Money? = nil, amount: Money?, currency: Currency?,
    before: String?, after: String?, because: String?, occurredAt: Instant?
  ) {
    (self.change, self.findingId, self.kind, self.severity, self.orderId) = (change, findingId, kind, severity, orderId)
    (self.userId, self.atStake, self.amount, self.currency) = (userId, atStake, amount, currency)
    (self.occurredAt, self.before, self.after, self.because) = (occurredAt, before, after, because)
  }

  package init(
    adjusted orderId: Identifier, userId: Identifier, amount: Money?, createdAt: Instant, before: Disposition,
    after: Disposition, because: String
  ) {
    self.init(
      .adjusted, orderId: orderId, userId: userId, amount: amount, currency: amount?.currency,
      before: before.rawValue, after: after.rawValue, because: because, occurredAt: createdAt)
  }

  /// An order with another amount, or one that the shop no longer has.
  package init(
    adjusted orderId: Identifier, userId: Identifier?, before: Money, after: Money?, createdAt: Instant
  ) {
    self.init(
      .adjusted, orderId: orderId, userId: userId, amount: after ?? before, currency: (after ?? before).currency,
      before: before.decimalText, after: after?.decimalText,
      because: after.map { "The shop now states \($0.text) instead of \(before.text)" }
        ?? "The shop no longer has this order",
      occurredAt: createdAt)
  }

  /// An order that the shop added after its day was reported.
  package init(
    added orderId: Identifier, userId: Identifier, amount: Money, createdAt: Instant, disposition: Disposition
  ) {
    self.init(
      .adjusted, orderId: orderId, userId: userId, amount: amount, currency: amount.currency, before: nil,
      after: disposition.rawValue, because: "The shop added this order after the day was reported",
      occurredAt: createdAt)
  }

  /// An order that is of another day now.
  /// - Parameter createdAt: its date before or now, of a day that was reported.
  package init(
    moved orderId: Identifier, userId: Identifier, amount: Money, from before: String, to after: String,
    createdAt: Instant
  ) {
    self.init(
      .adjusted, orderId: orderId, userId: userId, amount: amount, currency: amount.currency, before: before,
      after: after, because: "The shop now dates this order \(after) instead of \(before)", occurredAt: createdAt)
  }

  /// The reason why a refund is different now.
  package enum RefundChange: Hashable, Sendable {
    case withdrawn
    /// A refund of a later date is listed in its place.
    case replaced(by: Money)
    /// Apple refunds another share.
    case share(Money)
    /// Apple refunds the same share, but of another payment: the shop has changed the order, or Apple the price.
    case payment(Money)

    /// The amount refunded now, beside the adjusted refund.
    fileprivate var now: Money? {
      switch self {
      case .withdrawn, .replaced: nil
      case .share(let now), .payment(let now): now
      }
    }

    fileprivate func because(_ before: Money, of transactionId: Identifier, isOfOrder: Bool) -> String {
      switch self {
      case .withdrawn: "Apple has withdrawn the refund of \(before.text) of transaction \(transactionId)"
      case .replaced(let later):
        "Apple has refunded \(later.text) later, which replaces the refund of \(before.text) of transaction "
          + transactionId.text
      case .share(let now):
        "Apple has refunded \(now.text) instead of \(before.text) of transaction \(transactionId)"
      case .payment(let now):
        "The \(isOfOrder ? "order's amount" : "price") has changed, and the refund of transaction \(transactionId) "
          + "is now \(now.text) instead of \(before.text)"
      }
    }
  }

  /// A refund that is different now: a row, or one for each currency if the currency is another. `orderId` is nil for a
  /// payment without an order.
  package static func adjustedRefund(
    of transactionId: Identifier, orderId: Identifier?, userId: Identifier?, _ before: Money, _ change: RefundChange,
    refundedAt: Instant
  ) -> [ChangeRow] {
    func none(_ currency: Currency) -> Money { Money(minorUnits: 0, currency: currency) }
    var amounts = [(before: before, after: change.now ?? none(before.currency))]
    if let now = change.now, now.currency != before.currency {
      amounts = [(before, none(before.currency)), (none(now.currency), now)]
    }
    let because = change.because(before, of: transactionId, isOfOrder: orderId != nil)
    return amounts.map { before, after in
      var row = ChangeRow(
        .adjusted, orderId: orderId, userId: userId,
        amount: Money(minorUnits: before.minorUnits - after.minorUnits, currency: before.currency),
        currency: before.currency, before: before.decimalText, after: after.decimalText, because: because,
        occurredAt: refundedAt)
      row.isRefund = true
      return row
    }
  }

  mutating func place(in dimensions: inout ReportDimensions) {
    day = occurredAt.map { dimensions.businessDay(of: $0) }
  }

  package var kindText: String { kind?.rawValue ?? (isRefund ? "refund" : "order") }

  /// Sorts by severity, with orders after major findings, then by currency, largest amount first.
  package var sortingKey: [UInt8] {
    let severity: UInt8 =
      switch severity {
      case .some(.critical): 0
      case .some(.major): 1
      case .none: 2
      case .some(.minor): 3
      }
    let money = (atStake ?? amount).map { ~UInt64(bitPattern: $0.minorUnits &+ Int64.min) } ?? .max
    return [severity] + [UInt8]((currency?.code ?? "~~~").utf8)
      + withUnsafeBytes(of: money.bigEndian) { [UInt8]($0) } + [UInt8](change.rawValue.utf8) + [0]
      + [UInt8]((findingId ?? "").utf8) + [0] + (orderId?.bytes ?? [])
  }

  /// One line such as `closed: Paid, not delivered, order o1, 4.99 USD (the goods were delivered)`.
  package var line: String {
    var words = [kind?.title ?? "\(kindText) of an earlier day"]
    if let orderId { words.append("order \(orderId)") }
    if let money = atStake ?? amount { words.append(money.text) }
    if let before, let after { words.append("\(before.title) → \(after.title)") }
    // A sheet or mail has room for the first sentence of a reason; the file has the whole.
    let reason = because.map { " (\($0.split(separator: "; ").first ?? ""))" } ?? ""
    return "\(change.rawValue): \(words.joined(separator: ", "))\(reason)"
  }
}

extension ChangeRow: TableRow {
  static let table = ReportTable.changes

  static let shape = ReportTable.Shape(
    title: "Changes", formulaName: "ChangesTable", fileName: "changes.csv",
    meaning: "Differences from the last complete night, or from the last one before a longer period. "
      + "Empty on the first night.",
    sheetNote: """
      Differences from the last complete night, with reasons: findings, people's decisions, orders with another \
      outcome, amount or day, added and missing orders, refunds with another amount.
      """,
    primaryKey: ["change", "finding_id", "order_id"], keysMayFail: true,
    frozenColumns: 1, printedColumns: 13,
    emptyNote: "Nothing has changed since the last complete night, or there is no earlier night to compare with.",
    tabColour: Palette.red)

  static let columns: [Column<ChangeRow>] = [
    Column("change", .word(Change.allCases.map(\.rawValue)), 11, "What happened since the last complete night.") {
      .text($0.change.rawValue)
    },
    Column("finding_id", .digest, 34, "The finding's stable id; empty for an order or a refund.") {
      Cell($0.findingId)
    },
    Column(
      "kind", .spelt(), 24, "The kind of the finding; order: it is different now; refund: another amount now."
    ) {
      .text($0.kindText)
    },
    Column("severity", .severity, 10, "critical: now; major: this week; minor: data quality.") {
      Cell($0.severity?.rawValue)
    },
    Column("order_id", .id, 21, "The shop's id of the order.") { Cell($0.orderId) },
    Column("user_id", .user, 21, "The shop's id of the user.") { Cell($0.userId) },
    Column("currency", .currency, 10, "ISO 4217 code.") { Cell($0.currency?.code) },
    Column("at_stake", .amount, 14, "Amount at risk, or the former one of a closed finding.") { Cell($0.atStake) },
    Column("before", .spelt(), 22, "The status, outcome, amount or day then.") { Cell($0.before) },
    Column("after", .spelt(), 22, "The status, outcome, amount or day now.") { Cell($0.after) },
    Column("because", .prose, 64, "The reason. Always present for closed and adjusted.") { Cell($0.because) },
    Column(
      "amount", .amount, 14,
      """
      Amount of the order, or of the payment where there is no order; of an adjusted refund the difference, negative if more is \
      refunded now. Add it up within one kind only: an order can have several.
      """
    ) {
      Cell($0.amount)
    },
    Column("day", .day, 13, "Business day of the payment, refund or order that has changed.") {
      Cell(day: $0.day)
    },
  ]
}

/// The changes of a report: counts and the most important lines.
package struct ChangesSummary: Sendable {
  /// As-of of the compared night; nil for the first night. The last complete night, or the last one with a report if
  /// none was complete.
  package var since: Instant?
  package var isSinceCompleteNight: Bool
  package private(set) var counts: [ChangeRow.Change: Int] = [:]
  private var firstRows: [ChangeRow] = []
  package var first: [String] { firstRows.map(\.line) }

  /// New, reopened and closed critical findings.
  package private(set) var criticals = 0

  package static let shownLines = 10

  package init(since: Instant? = nil, isSinceCompleteNight: Bool = true) {
    (self.since, self.isSinceCompleteNight) = (since, isSinceCompleteNight)
  }

  /// The compared night, to follow “from” or “since”.
  package var baseNightText: String { ChangesSummary.baseNightText(isComplete: isSinceCompleteNight) }

  static func baseNightText(isComplete: Bool) -> String { isComplete ? "the last complete night" : "the last night" }

  /// Counts a change, in order of ``ChangeRow/sortingKey``.
  package mutating func add(_ row: ChangeRow) {
    counts[row.change, default: 0] += 1
    switch row.change {
    case .new, .reopened, .closed: criticals += row.severity == .critical ? 1 : 0
    case .status, .adjusted: break
    }
    if firstRows.count < ChangesSummary.shownLines { firstRows.append(row) }
  }

  /// Shows the times of the reasons as local ones.
  mutating func showLocalTimes(_ clock: inout LocalClock) {
    for place in firstRows.indices {
      firstRows[place].because = firstRows[place].because.map { clock.localTimes(in: $0) }
    }
  }

  package var total: Int { counts.values.reduce(0, +) }

  /// The counts by kind of change: `1 closed · 2 new · …`.
  var countsText: String {
    ChangeRow.Change.allCases.map { "\(grouped(counts[$0, default: 0])) \($0.title)" }.joined(separator: " · ")
  }

  package var lines: [String] { ChangesSummary.lines(first, total: total) }

  static func lines(_ first: [String], total: Int) -> [String] {
    if total <= first.count { return first }
    return first + ["… and \(grouped(total - first.count)) more, in changes.csv or on the sheet Changes"]
  }
}
