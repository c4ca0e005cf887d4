import Reconciliation

/// One thing that is different from the last complete night.
package struct ChangeRow: Hashable, Sendable {
  /// What happened; the raw value is the word in `changes.csv`.
  package enum Change: String, Hashable, CaseIterable, Sendable {
    /// A finding that is gone: it was open then, and the facts agree now.
    case closed
    /// A finding that no night up to that one has told of.
    case new
    /// A finding that had closed and stands again.
    case reopened
    /// People made something else of a finding that was open then and is now.
    case status
    /// An order of an earlier day whose disposition is another one now.
    case adjusted
  }

  package var change: Change
  /// nil for an order.
  package var findingId: String?
  /// nil for an order.
  package var kind: FindingKind?
  /// nil for an order.
  package var severity: Severity?
  package var orderId: Identifier?
  package var userId: Identifier?
  /// What is, or was, at stake; of an order nothing by itself.
  package var atStake: Money?
  /// Amount of the order, or of the payment where there is no order.
  package var amount: Money?
  /// Of both amounts.
  package var currency: Currency?
  /// The word then.
  package var before: String?
  /// The word now.
  package var after: String?
  /// Why, as a sentence; never empty for what has closed or was adjusted.
  package var because: String?
  /// When the transaction or order behind it happened.
  package var occurredAt: Instant?
  /// The day of `occurredAt` in the report's time zone, set by `place(in:)`.
  private(set) var day: String?

  /// A change of a finding.
  package init(
    _ change: Change, finding: Finding, findingId: String, before: String?, after: String?, because: String? = nil
  ) {
    self.change = change
    self.findingId = findingId
    kind = finding.kind
    severity = finding.severity
    orderId = finding.orderId
    userId = finding.userId
    atStake = finding.atStake
    amount = finding.amountBesideStake
    currency = finding.currency
    occurredAt = finding.occurredAt
    self.before = before
    self.after = after
    self.because = because
  }

  /// A change of any kind, from known values.
  package init(
    _ change: Change, findingId: String?, kind: FindingKind?, severity: Severity?, orderId: Identifier?,
    userId: Identifier?, atStake: Money?, amount: Money?, currency: Currency?, before: String?, after: String?,
    because: String?, occurredAt: Instant?
  ) {
    self.change = change
    self.findingId = findingId
    self.kind = kind
    self.severity = severity
    self.orderId = orderId
    self.userId = userId
    self.atStake = atStake
    self.amount = amount
    self.currency = currency
    self.occurredAt = occurredAt
    self.before = before
    self.after = after
    self.because = because
  }

  /// An order of an earlier day that has another outcome now.
  package init(
    adjusted orderId: Identifier, userId: Identifier, amount: Money?, createdAt: Instant, before: Disposition,
    after: Disposition, because: String
  ) {
    self.init(
      .adjusted, findingId: nil, kind: nil, severity: nil, orderId: orderId, userId: userId, atStake: nil,
      amount: amount, currency: amount?.currency, before: before.rawValue, after: after.rawValue, because: because,
      occurredAt: createdAt)
  }

  /// Sets the business day.
  mutating func place(in dimensions: inout ReportDimensions) {
    day = occurredAt.map { dimensions.businessDay(of: $0) }
  }

  /// What has changed: the kind of a finding, or an order.
  package var kindWord: String { kind?.rawValue ?? "order" }

  /// Sorts rows by severity, currency and money: critical first, orders behind the majors, the most money first.
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

  /// The change as one line for people: `closed: Paid, not delivered, order o1, 4.99 USD (the goods were delivered)`.
  package var line: String {
    var words = [kind?.title ?? "order of an earlier day"]
    if let orderId { words.append("order \(orderId)") }
    if let money = atStake ?? amount { words.append("\(money.decimalText) \(money.currency)") }
    if let before, let after { words.append("\(before.title) → \(after.title)") }
    // The file has the whole reason; a line of a sheet or a mail has room for its beginning.
    let reason = because.map { " (\($0.count > 100 ? $0.prefix(100) + "…" : $0[...]))" } ?? ""
    return "\(change.rawValue): \(words.joined(separator: ", "))\(reason)"
  }
}

extension ChangeRow: TableRow {
  static let table = ReportTable.changes

  static let shape = ReportTable.Shape(
    title: "Changes", formulaName: "ChangesTable", fileName: "changes.csv",
    meaning: "What is different from the last complete night, or from the one before a longer period. "
      + "Empty on the first one.",
    sheetNote:
      "What is different from the night compared with, and why: findings, what people decided, orders with another outcome.",
    primaryKey: ["change", "finding_id", "order_id"], keysMayFail: true,
    frozenColumns: 1, printedColumns: 13, tabColour: Palette.red)

  static let columns: [Column<ChangeRow>] = [
    Column("change", .word(Change.allCases.map(\.rawValue)), 11, "What happened since the last complete night.") {
      .text($0.change.rawValue)
    },
    Column("finding_id", .digest, 12, "The finding's stable id; empty for an order.") { Cell($0.findingId) },
    Column("kind", .spelt(), 24, "The kind of the finding; order: an order that has another outcome now.") {
      .text($0.kindWord)
    },
    Column("severity", .severity, 10, "critical: now; major: this week; minor: data quality.") {
      Cell($0.severity?.rawValue)
    },
    Column("order_id", .id, 21, "The shop's id of the order.") { Cell($0.orderId) },
    Column("user_id", .user, 19, "The shop's id of the user.") { Cell($0.userId) },
    Column("currency", .currency, 10, "ISO 4217 code.") { Cell($0.currency?.code) },
    Column("at_stake", .amount, 14, "Money that is at stake, or was in what has closed.") { Cell($0.atStake) },
    Column("before", .spelt(), 22, "The status or disposition then.") { Cell($0.before) },
    Column("after", .spelt(), 22, "The status or disposition now.") { Cell($0.after) },
    Column("because", .prose, 64, "Why; always there for what has closed or was adjusted.") { Cell($0.because) },
    Column("amount", .amount, 14, "Amount of the order, or of the payment where there is no order.") {
      Cell($0.amount)
    },
    Column("day", .day, 13, "Business day of the payment, refund or order that has changed.") {
      $0.day.map { .day($0) } ?? .blank
    },
  ]
}

/// What changed, in numbers and in the lines that matter most.
package struct ChangesSummary: Sendable {
  /// As-of of the last complete night, or where there never was one of the last night with a report; nil: this is the first
  /// one, and nothing is compared.
  package var since: Instant?
  /// Whether that night was complete.
  package var isSinceComplete: Bool
  /// How many of each.
  package private(set) var counts: [ChangeRow.Change: Int] = [:]
  /// The first lines for people.
  package private(set) var first: [String] = []

  /// Critical findings that are new, stand again or have closed.
  package private(set) var criticals = 0

  /// In mails and on terminals.
  package static let shownLines = 10

  /// Nothing changed.
  package init(since: Instant? = nil, isSinceComplete: Bool = true) {
    self.since = since
    self.isSinceComplete = isSinceComplete
  }

  /// What is compared with, after “from” or “since”.
  package var nightWords: String { ChangesSummary.nightWords(isComplete: isSinceComplete) }

  static func nightWords(isComplete: Bool) -> String { isComplete ? "the last complete night" : "the last night" }

  /// Counts a change; they come in the order of ``ChangeRow/sortingKey``.
  package mutating func add(_ row: ChangeRow) {
    counts[row.change, default: 0] += 1
    switch row.change {
    case .new, .reopened, .closed: criticals += row.severity == .critical ? 1 : 0
    case .status, .adjusted: break
    }
    if first.count < ChangesSummary.shownLines { first.append(row.line) }
  }

  /// All of them.
  package var total: Int { counts.values.reduce(0, +) }

  /// The lines, and how many more there are.
  package var lines: [String] { ChangesSummary.lines(first, total: total) }

  static func lines(_ first: [String], total: Int) -> [String] {
    total > first.count ? first + ["… and \(total - first.count) more, in changes.csv or on the sheet Changes"] : first
  }
}
