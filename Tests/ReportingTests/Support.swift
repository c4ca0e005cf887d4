import Foundation
import Reconciliation
import TestSupport
import Testing

@testable import Reporting

func instant(_ text: String) -> Instant {
  guard let date = try? Date(text, strategy: .iso8601) else { preconditionFailure("\(text) is an instant") }
  return Instant(seconds: Int64(date.timeIntervalSince1970))
}

func currency(_ code: String) -> Currency {
  guard let currency = Currency(code: code) else { preconditionFailure("\(code) is in ISO 4217") }
  return currency
}

func money(_ minorUnits: Int64, _ code: String) -> Money { Money(minorUnits: minorUnits, currency: currency(code)) }

func object(_ text: String) throws -> [String: Any] {
  try #require(try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any])
}

func contents(_ name: String, in directory: String) throws -> String {
  String(decoding: try Data(contentsOf: URL(filePath: "\(directory)/\(name)")), as: UTF8.self)
}

/// Judges an order of 2026-11-19T10:00:00Z. Its purchase is one second later, its delivery 20 seconds after that.
func order(
  _ id: Identifier, _ amount: Money, user: Identifier = "u1", product: Identifier = "gems.100", isPaid: Bool = true,
  isDelivered: Bool = true, environment: AppleEnvironment = .production
) -> Judgement {
  let createdAt = instant("2026-11-19T10:00:00Z")
  var rules = Rules(asOf: SampleReport.asOf, bundleIds: ["com.example.game"], lookbackStart: createdAt - .days(120))
  rules.testUsers = ["tester"]
  var order = Order(
    orderId: id, userId: user, productId: product, amount: amount, status: .verified, createdAt: createdAt)
  var facts = OrderFacts(order: order)
  if isPaid {
    let transactionId = Identifier("T-" + id.text)
    order.transactionId = transactionId
    var transaction = TransactionRecord(environment: environment, transactionId: transactionId, productId: product)
    transaction.bundleId = "com.example.game"
    transaction.details.storefront = "DEU"
    transaction.purchaseDate = createdAt + .seconds(1)
    transaction.checkedAt = SampleReport.asOf
    facts = OrderFacts(order: order, known: [transaction])
    facts.claims = Matching.uncontested(facts.claimant(rules), rules: rules)
  }
  if isDelivered {
    facts.deliveries = [
      Delivery(deliveryId: "D1", orderId: id, userId: user, productId: product, deliveredAt: createdAt + .seconds(21))
    ]
  }
  return Judgement(judging: facts, rules: rules)
}

/// A row in which almost every value is outside the contract.
func badOrder(_ id: Identifier) -> Judgement {
  Judgement(
    reporting: BadOrder(
      orderId: id, userId: "u,5", bundleId: nil, productId: "ge\"ms", quantity: -2, amountText: "-1.999",
      currencyText: "usd", statusText: "@paid", transactionId: "T9", createdAt: instant("2026-11-19T11:00:00Z"),
      defect: "amount below zero"))
}

/// A refund of a purchase without an order, full unless stated.
func refund(
  _ transactionId: Identifier, _ amount: Money?, at date: Instant = SampleReport.asOf, reason: String? = nil,
  milliPercent: Int32? = 100_000
) -> RefundRow {
  RefundRow(
    transactionId: transactionId, productId: "gems.100", refunded: amount, milliPercent: milliPercent,
    purchasedAt: nil, refundedAt: date, reason: reason)
}

func receipt(_ id: Identifier, _ state: ProofState = .neverChecked, at date: Instant = SampleReport.asOf) -> Receipt {
  Receipt(receiptId: id, orderId: nil, userId: nil, receivedAt: date, state: state)
}

/// The figures of a settlement in hundredths; nil is unknown.
func settlement(_ figures: [Int128?], _ period: String = "2027-02") -> SettlementLine {
  SettlementLine(
    period: period, currency: "USD", figures: figures.map { $0.map { Millionths(count: $0 * 10_000) } })
}

/// An adjustment of orders in USD; amounts are in cents.
func adjustment(
  _ outcome: Disposition, from before: (orders: Int, cents: Int128) = (0, 0), to now: (orders: Int, cents: Int128),
  day: String = "2026-11-18"
) -> Adjustment {
  Adjustment(
    day: day, bucket: DayTotals.Bucket(currency: currency("USD"), disposition: outcome),
    reported: DayTotals.Sum(orders: before.orders, minorUnits: before.cents),
    now: DayTotals.Sum(orders: now.orders, minorUnits: now.cents))
}

extension Finding {
  init(_ kind: FindingKind, _ subject: Subject, _ atStake: Money? = nil, reason: Reason = "r") {
    self.init(kind: kind, subject: subject, reason: reason)
    if subject.kind == .order { orderId = subject.id }
    self.atStake = atStake
  }
}

extension ReportedFinding {
  init(_ finding: Finding) { self.init(finding, firstSeen: SampleReport.asOf) }
}

extension ChangeRow {
  /// Order o8 of 2026-11-11 in Berlin was refunded.
  static let refunded = ChangeRow(
    adjusted: "o8", userId: "u8", amount: money(300, "USD"), createdAt: instant("2026-11-10T23:30:00Z"),
    before: .settled, after: .refunded, because: "Apple refunded it 2026-11-19T23:30:00Z")

  /// The finding is new.
  init(new reported: ReportedFinding) {
    self.init(.new, finding: reported.finding, findingId: reported.findingId, before: nil, after: "open")
  }
}

struct SampleReport {
  var options: ReportOptions
  var judgements: [Judgement] = []
  var findings: [ReportedFinding] = []
  var receipts: [Receipt] = []
  var refunds: [RefundRow] = []
  var refundRequests: [RefundRequestRow] = []
  var journal: [JournalEntry] = []
  var settlement: [SettlementLine] = []
  var changes: [ChangeRow] = []
  var sandbox: [SandboxRow] = []
  var totals = Totals()
  var summary: SummaryFacts

  static let asOf = Instant(seconds: 1_795_132_800)  // 2026-11-20T00:00:00Z

  init() {
    options = ReportOptions(
      directory: "",
      period: Period(
        since: "2026-11-19", until: "2026-11-19", start: Instant(seconds: 1_795_042_800),
        end: Instant(seconds: 1_795_129_200)), formats: [.csv, .xlsx],
      timeZone: TimeZone(identifier: "Europe/Berlin") ?? .gmt, asOf: SampleReport.asOf,
      apps: ["Game (com.example.game)"], ordersInPeriod: 0, receiptsInScope: 0)
    options.appNames = ["com.example.game": "game"]
    summary = SummaryFacts(
      isComplete: true, incompleteReasons: [], period: options.period, timeZone: "Europe/Berlin",
      configuration: "c0ffee", findings: FindingsSummary(), history: [])
  }

  mutating func add(_ judgement: Judgement) {
    judgements.append(judgement)
    totals.read(judgement.row)
    totals.add(judgement)
    options.ordersInPeriod += 1
    for finding in judgement.findings { report(ReportedFinding(finding, firstSeen: SampleReport.asOf - .hours(50))) }
  }

  mutating func addRowsWithoutIds() {
    add(badOrder(""))
    var receipt = receipt("")
    receipt.defect = "receipt_id is empty"
    receipts.append(receipt)
  }

  mutating func report(_ finding: ReportedFinding) {
    findings.append(finding)
    findings.sort { $0.findingId < $1.findingId }
    summary.findings.add(finding, asOf: SampleReport.asOf, today: "2026-11-20")
    summary.findings.count(finding.finding, openBefore: false, atStakeBefore: nil)
  }

  mutating func addSandboxPurchase() {
    sandbox = [
      SandboxRow(userId: "u9", productId: "gems", currency: currency("USD"), orders: 1, minorUnits: 1, isAllowed: false)
    ]
  }

  /// Adds nights of November, each with the square of its day at risk in every currency.
  mutating func addNights(_ days: ClosedRange<Int>, atRisk codes: String...) {
    for day in days {
      var amounts = MoneyByCurrency()
      for code in codes { amounts.add(money(Int64(day * day), code)) }
      summary.history.append(
        Night(date: "2026-11-\(day)", paid: totals.ordered, delivered: totals.ordered, atStake: amounts))
    }
  }

  mutating func addDays() {
    var days = DayTotals(days: [
      DayTotals.Day(name: "2026-11-19", start: instant("2026-11-19T00:00:00Z"), end: instant("2026-11-20T00:00:00Z"))
    ])
    for judgement in judgements { days.add(judgement) }
    summary.dayLines = DayLine.lines(days, reported: [:])
  }

  /// Adds a tie-out without differences, and the settlement of fiscal 2027-02.
  mutating func tieOut(_ figures: [Int128?]) {
    var facts = TieOutFacts(
      incompleteReasons: [], firstDay: "2026-11-01", lastDay: "2026-11-18",
      appleUnits: Millionths(3), ourUnits: Millionths(3), explained: [], unexplained: .zero)
    settlement = [ReportingTests.settlement(figures)]
    facts.proceeds = settlement
    summary.tieOut = facts
    options.hasTieOut = true
  }

  /// Adds the journal's entries of a sale and its refund.
  mutating func post() {
    options.hasJournal = true
    var sold = JournalPosting(amount: money(199, "USD"), day: "2026-11-19", app: "game", transactionId: "T1")
    sold.service = "2026-11-19"..."2026-12-19"
    let refunded = JournalPosting(amount: money(99, "USD"), day: "2026-11-19", app: "game")
    journal = [
      JournalEntry(event: JournalEvent(.sale, "o1"), posting: sold, version: 1, postedFor: "2026-11-19"),
      JournalEntry(event: JournalEvent(.refund, "o2"), posting: refunded, version: 1, postedFor: "2026-11-19"),
    ]
  }

  @discardableResult
  func write(to directory: String, rowsPerSheet: Int? = nil) throws -> [ReportFile] {
    var options = options
    options.directory = directory
    options.receiptsInScope = receipts.count
    var writer = try ReportWriter(options, rowsPerSheet: rowsPerSheet)
    for judgement in judgements { try writer.write(order: OrderLine(judgement)) }
    for finding in findings { try writer.write(finding: finding) }
    let worstFirst = findings.sorted {
      $0.urgency(asOf: SampleReport.asOf).lexicographicallyPrecedes($1.urgency(asOf: SampleReport.asOf))
    }
    for finding in worstFirst { try writer.writeToSheet(finding: finding) }
    var summary = summary
    for change in changes.sorted(by: { $0.sortingKey.lexicographicallyPrecedes($1.sortingKey) }) {
      try writer.write(change: change)
      summary.changes.add(change)
    }
    for receipt in receipts { try writer.write(receipt: receipt) }
    for refund in refunds { try writer.write(refund: refund) }
    for request in refundRequests { try writer.write(refundRequest: request) }
    let lines = journal.flatMap { JournalLine.lines(of: $0, accounts: [.sale: "4000"]) }
    for line in lines.sorted(by: { $0.digest.lexicographicallyPrecedes($1.digest) }) { try writer.write(journal: line) }
    for line in journal.compactMap({ StripeImportLine($0) }) { try writer.write(stripeImport: line) }
    for line in settlement { try writer.write(settlement: line) }
    for row in sandbox { try writer.write(sandbox: row) }
    return try writer.finish(totals: totals, summary: summary)
  }

  /// Writes the report and runs `body` with its directory.
  func written<Result>(rowsPerSheet: Int? = nil, _ body: (String) throws -> Result) throws -> Result {
    try withTemporaryDirectory { directory in
      try write(to: directory, rowsPerSheet: rowsPerSheet)
      return try body(directory)
    }
  }

  func file(_ name: String) throws -> String { try written { try contents(name, in: $0) } }

  func book(rowsPerSheet: Int? = nil) throws -> ReadWorkbook {
    var report = self
    report.options.formats = [.xlsx]
    return try report.written(rowsPerSheet: rowsPerSheet) { try ReadWorkbook(report: $0) }
  }

  var document: SummaryDocument {
    SummaryDocument(totals: totals, summary: summary, control: [], asOf: SampleReport.asOf)
  }

  func mail(link: String? = nil) -> SummaryMail {
    SummaryMail(document, folder: "reports", attachment: nil, link: link)
  }

  func actions() throws -> [[String: Any]] {
    let text = try file(ActionsFile.fileName)
    return try #require(try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [[String: Any]])
  }
}

extension ReadWorkbook {
  init(report directory: String, name: String = "night-audit-2026-11-19.xlsx") throws {
    try self.init(path: "\(directory)/\(name)")
  }
}

extension ReadWorkbook.Sheet {
  func texts(_ row: Int) -> [String] {
    guard row < rows.count else { return [] }
    return rows[row].sorted { ($0.key.count, $0.key) < ($1.key.count, $1.key) }
      .map { $0.value.text ?? $0.value.number.map { "\($0)" } ?? "" }
  }

  /// - Parameter number: from 1, as spreadsheets count.
  func row(_ number: Int) throws -> [String: ReadWorkbook.Cell] {
    try #require(number <= rows.count, "\(name) has no row \(number)")
    return rows[number - 1]
  }

  func letter(_ heading: String) throws -> String {
    try #require(rows.first?.first { $0.value.text == heading }?.key, "\(name) has no column \(heading)")
  }

  func cell(_ heading: String, _ number: Int) throws -> ReadWorkbook.Cell? { try row(number)[letter(heading)] }

  func column(_ letter: String, _ numbers: ClosedRange<Int>) throws -> [String?] {
    try numbers.map { try row($0)[letter]?.text }
  }

  func row(named name: String) -> [String: ReadWorkbook.Cell]? { rows.first { $0["A"]?.text == name } }

  /// The cells of the second row in which people enter something.
  var entries: Set<String> {
    Set(cells.filter { $0.key.trimmingPrefix(/[A-Z]+/) == "2" && $0.value.fill == "FFFFF9E5" }.keys)
  }

  /// The rows of the controls on the sheet Summary.
  var controls: [[String: ReadWorkbook.Cell]] {
    rows.filter { $0["E"]?.formula?.hasPrefix("=IF(ISNUMBER(D") == true }
  }
}
