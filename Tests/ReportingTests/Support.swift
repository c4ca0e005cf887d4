import Foundation
import Reconciliation
import Testing

@testable import Reporting

func withTemporaryDirectory<Result>(_ body: (String) throws -> Result) throws -> Result {
  let directory = FileManager.default.temporaryDirectory.appending(path: "reporting-\(UUID().uuidString)")
  try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
  defer { try? FileManager.default.removeItem(at: directory) }
  return try body(directory.path)
}

func contents(_ name: String, in directory: String) throws -> String {
  String(decoding: try Data(contentsOf: URL(filePath: "\(directory)/\(name)")), as: UTF8.self)
}

func instant(_ text: String) throws -> Instant {
  Instant(seconds: Int64(try Date(text, strategy: .iso8601).timeIntervalSince1970))
}

func currency(_ code: String) throws -> Currency { try #require(Currency(code: code)) }

func money(_ minorUnits: Int64, _ code: String) throws -> Money {
  Money(minorUnits: minorUnits, currency: try currency(code))
}

/// A full refund of a purchase without an order.
func refund(
  _ transactionId: Identifier, _ amount: Money, at date: Instant = SampleReport.asOf, reason: String? = nil
) -> RefundRow {
  RefundRow(
    transactionId: transactionId, productId: "gems", refunded: amount, milliPercent: 100_000, purchasedAt: nil,
    refundedAt: date, reason: reason)
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

  init() throws {
    options = ReportOptions(
      directory: "",
      period: Period(
        since: "2026-11-19", until: "2026-11-19", start: Instant(seconds: 1_795_042_800),
        end: Instant(seconds: 1_795_129_200)), formats: [.csv, .xlsx],
      timeZone: try #require(TimeZone(identifier: "Europe/Berlin")), asOf: SampleReport.asOf,
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
    let createdAt = SampleReport.asOf - .hours(14)
    add(
      Judgement(
        reporting: BadOrder(
          orderId: "", userId: "u1", bundleId: nil, productId: "gems.100", quantity: 1, amountText: "1.99",
          currencyText: "USD", statusText: "verified", transactionId: nil, createdAt: createdAt,
          defect: "order_id is empty")))
    receipts.append(
      Receipt(
        receiptId: "", orderId: nil, userId: nil, receivedAt: createdAt, state: .neverChecked,
        defect: "receipt_id is empty"))
  }

  mutating func report(_ finding: ReportedFinding) {
    findings.append(finding)
    findings.sort { $0.findingId < $1.findingId }
    summary.findings.add(finding, asOf: SampleReport.asOf, today: "2026-11-20")
    summary.findings.count(finding.finding, openBefore: false, atStakeBefore: nil)
  }

  mutating func addSandboxPurchase() throws {
    sandbox = [
      SandboxRow(
        userId: "u9", productId: "gems", currency: try currency("USD"), orders: 1, minorUnits: 1, isAllowed: false)
    ]
  }

  mutating func addDays() throws {
    var days = DayTotals(days: [
      DayTotals.Day(
        name: "2026-11-19", start: try instant("2026-11-19T00:00:00Z"), end: try instant("2026-11-20T00:00:00Z"))
    ])
    for judgement in judgements { days.add(judgement) }
    summary.dayLines = DayLine.lines(days, reported: [:])
  }

  /// Adds the journal's entries of a sale and its refund.
  mutating func post() throws {
    options.hasJournal = true
    var sold = JournalPosting(amount: try money(199, "USD"), day: "2026-11-19", app: "game", transactionId: "T1")
    sold.service = "2026-11-19"..."2026-12-19"
    let refunded = JournalPosting(amount: try money(99, "USD"), day: "2026-11-19", app: "game")
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
    }
    for change in changes.sorted(by: { $0.sortingKey.lexicographicallyPrecedes($1.sortingKey) }) {
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

  func file(_ name: String) throws -> String {
    try withTemporaryDirectory { directory in
      try write(to: directory)
      return try contents(name, in: directory)
    }
  }

  func actions() throws -> [[String: Any]] {
    let text = try file(ActionsFile.fileName)
    return try #require(try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [[String: Any]])
  }
}

func object(_ text: String) throws -> [String: Any] {
  try #require(try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any])
}

struct OrderFixture {
  var userId: Identifier = "u1"
  var productId: Identifier = "gems.100"
  var amount: Money
  var isPaid = true
  var isDelivered = true
  var environment = AppleEnvironment.production

  /// Judges the order. Its purchase is of 2026-11-19T10:00:01Z, its delivery 20 seconds later.
  func judgement(_ orderId: Identifier) throws -> Judgement {
    let createdAt = try instant("2026-11-19T10:00:00Z")
    var rules = Rules(asOf: SampleReport.asOf, bundleIds: ["com.example.game"], lookbackStart: createdAt - .days(120))
    rules.testUsers = ["tester"]
    var order = Order(
      orderId: orderId, userId: userId, productId: productId, amount: amount, status: .verified, createdAt: createdAt)
    var facts = OrderFacts(order: order)
    if isPaid {
      let transactionId = Identifier("T-" + orderId.text)
      order.transactionId = transactionId
      facts.order = order
      var transaction = TransactionRecord(environment: environment, transactionId: transactionId, productId: productId)
      transaction.bundleId = "com.example.game"
      transaction.details.storefront = "DEU"
      transaction.purchaseDate = createdAt + .seconds(1)
      transaction.checkedAt = SampleReport.asOf
      facts = OrderFacts(order: order, known: [transaction])
      facts.claims = Matching.uncontested(facts.claimant(rules), rules: rules)
    }
    if isDelivered {
      facts.deliveries = [
        Delivery(
          deliveryId: "D1", orderId: orderId, userId: userId, productId: productId,
          deliveredAt: createdAt + .seconds(21))
      ]
    }
    return Judgement(judging: facts, rules: rules)
  }
}
