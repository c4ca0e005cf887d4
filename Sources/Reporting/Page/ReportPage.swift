import Crypto
import Foundation
import Mustache
import Reconciliation

/// `report.html`: the summary, the trend and the worst findings in one self-contained file.
///
/// The template escapes every text. A content security policy permits only the program's style and script, by hash, so
/// that no text of a database can run.
struct ReportPage {
  static let fileName = "report.html"
  /// Limit of listed findings; `findings.csv` has all.
  static let shownFindings = 2_000

  private var rows: [Row] = []
  private let options: ReportOptions
  private var clock: LocalClock

  init(_ options: ReportOptions) {
    self.options = options
    clock = LocalClock(timeZone: options.timeZone)
  }

  mutating func add(_ finding: FindingLine) {
    guard rows.count < ReportPage.shownFindings else { return }
    rows.append(Row(finding, pseudonyms: options.pseudonyms, &clock))
  }

  func encoded(totals: Totals, summary: SummaryFacts, control: [ControlTotal]) throws(ReportError) -> [UInt8] {
    try Template.page.render(Page(self, totals, summary, control))
  }

  // MARK: - Content of the template

  private struct SummaryTile {
    var label: String
    var value: String
    var tone = ""
  }

  private struct Bucket {
    var name: String
    var meaning: String
    var orders: String
    var amounts: [String]
  }

  private struct RollForwardRow {
    var name: String
    var opening: String
    var new: String
    var closed: String
    var changed: String
    var closing: String
  }

  private struct Age {
    var name: String
    var findings: String
    var money: [String]
    var known: String
  }

  private struct Explained {
    var name: String
    var units: String
  }

  private struct TieOut {
    var days: String
    var sentence: String
    var hasReasons: Bool
    var reasons: [String]
    var rows: [Explained]
    var unexplained: String

    init(_ facts: TieOutFacts) {
      days = "\(facts.firstDay) to \(facts.lastDay)"
      sentence = facts.sentence
      reasons = facts.incompleteReasons + facts.revisions.map(\.words) + facts.remarks
      hasReasons = !reasons.isEmpty
      rows =
        [
          Explained(name: "Apple counts", units: Money.shown(facts.text(facts.own))),
          Explained(name: "Known here", units: facts.ourUnits.shown()),
          Explained(name: "Difference", units: Money.shown(facts.text(facts.own - facts.ourUnits.decimal))),
        ]
        + facts.explained.filter { $0.units.scaled != 0 && $0.name != "other_scope" }.map {
          Explained(name: $0.name.displayText, units: $0.units.shown())
        }
      unexplained = facts.unexplained.shown()
    }
  }

  private struct Kind {
    var word: String
    var name: String
    var count: String
    var severity: String
    var money: [String]
  }

  private struct FirstRow {
    var kind: String
    var severity: String
    var facts: String
    var action: String

    init(_ reported: ReportedFinding) {
      let finding = reported.finding
      (kind, severity) = (finding.kind.title, finding.severity.rawValue)
      let all = [reported.place, reported.stakeText, reported.owner, reported.due.map { "due \($0)" }]
      facts = all.compactMap(\.self).filter { !$0.isEmpty }.joined(separator: " · ")
      action = finding.suggestedAction
    }
  }

  private struct OwnerRow {
    var name: String
    var open: String
    var critical: String
    var overdue: String
  }

  private struct SalesRow {
    var currency: String
    var cells: [String]

    init(_ line: SalesLine) {
      currency = line.code
      func text(_ units: Int128) -> String {
        units == 0 ? "–" : Money.grouped(Money.decimalText(units, digits: line.digits))
      }
      let proceeds = [line.proceeds?.proceedsEarned, line.proceeds?.proceedsPaid]
      cells =
        [text(line.ordered), text(line.refunded)] + proceeds.map { $0?.shown(decimals: line.digits) ?? "" }
        + [text(line.owed.reduce(0, +))] + line.owed.map(text)
    }
  }

  private struct Rate {
    var name: String
    var currency: String
    var ordered: String
    var refunded: String
    var rate: String

    init(_ rate: RefundRate) {
      (name, currency, self.rate) = (rate.name, rate.currency.code, rate.words)
      (ordered, refunded) = (rate.currency.shown(rate.ordered), rate.currency.shown(rate.refunded))
    }
  }

  private struct Settlement {
    var period: String
    var currency: String
    var figures: [String]

    init(_ line: SettlementLine) {
      (period, currency) = (line.period, line.currency)
      let digits = Currency(code: line.currency)?.digits ?? 2
      figures = line.figures.map { $0?.shown(decimals: digits) ?? "" }
    }
  }

  private struct AdjustedTotal {
    var name: String
    var day: String
    var currency: String
    var figures: [String]

    init(_ adjustment: Adjustment) {
      let currency = adjustment.bucket.currency
      let (reported, now) = (adjustment.reported, adjustment.now)
      (name, day, self.currency) = (adjustment.bucket.disposition.title, adjustment.day, currency.code)
      let counts = [reported.orders, now.orders, now.orders - reported.orders]
      let amounts = [reported.minorUnits, now.minorUnits, now.minorUnits - reported.minorUnits]
      figures = counts.map { shown($0) } + amounts.map { currency.shown($0) }
    }

    init(net currency: Currency, _ units: Int128) {
      (name, day, self.currency) = (Adjustment.netTitle, "", currency.code)
      figures = Array(repeating: "", count: Adjustment.titles.count - 1) + [currency.shown(units)]
    }
  }

  private struct Control {
    var name: String
    var left: String
    var right: String
    var result: String
  }

  /// Returns its values by name, because reflection is too slow for two thousand rows of twenty values.
  private struct Row: MustacheParent {
    var severity: String
    var severityRank: Int
    var kind: String
    var kindName: String
    var order: String
    var user: String
    var currency: String
    var stake: String
    var stakeNumber: String
    var days: String
    var status: String
    var owner: String
    var due: String
    var isNew: Bool
    var reason: String
    var action: String
    var hasDetails: Bool
    var hasExplanation: Bool
    var explanation: [String]
    var facts: [[String: String]]

    private static let values: [String: @Sendable (Row) -> Any] = [
      "severity": { $0.severity }, "severityRank": { $0.severityRank }, "kind": { $0.kind },
      "kindName": { $0.kindName },
      "order": { $0.order }, "user": { $0.user }, "currency": { $0.currency }, "stake": { $0.stake },
      "stakeNumber": { $0.stakeNumber }, "days": { $0.days }, "status": { $0.status }, "owner": { $0.owner },
      "due": { $0.due }, "isNew": { $0.isNew }, "reason": { $0.reason }, "action": { $0.action },
      "hasDetails": { $0.hasDetails }, "hasExplanation": { $0.hasExplanation }, "explanation": { $0.explanation },
      "facts": { $0.facts },
    ]

    func child(named name: String) -> Any? { Row.values[name]?(self) }

    init(_ line: FindingLine, pseudonyms: Pseudonyms?, _ clock: inout LocalClock) {
      let (reported, finding) = (line.reported, line.reported.finding)
      severity = finding.severity.rawValue
      severityRank = Severity.allCases.firstIndex(of: finding.severity) ?? 0
      kind = finding.kind.rawValue
      kindName = finding.kind.title
      order = finding.orderId?.text ?? ""
      user = finding.userId.map { pseudonyms?.pseudonym(of: $0) ?? $0.text } ?? ""
      currency = finding.currency?.code ?? ""
      stakeNumber = finding.atStake?.decimalText ?? ""
      stake = reported.stakeText
      days = finding.occurredAt.map { String(max(0, (line.asOf - $0).wholeDays)) } ?? ""
      (status, owner, due) = (reported.status, reported.owner ?? "", reported.due ?? "")
      isNew = reported.firstSeen >= line.asOf
      reason = clock.localTimes(in: finding.reason.text)
      action = finding.suggestedAction
      explanation = reported.explanation.map { clock.localTimes(in: $0) }
      hasExplanation = !explanation.isEmpty
      func local(_ instant: Instant?) -> String? { instant.map { clock.text($0) } }
      let all: [(String, String?)] = [
        ("Meaning", Glossary.meaning(finding.kind)), ("Product", finding.productId?.text),
        ("Transaction", finding.transactionId?.text), ("Receipt", finding.receiptId?.text),
        ("Delivery", finding.deliveryId?.text), ("Environment", finding.environment?.rawValue),
        ("Amount", finding.amount?.text),
        ("Date", local(finding.occurredAt)), ("Paid", local(finding.paidAt)),
        ("Delivered", local(finding.deliveredAt)), ("First seen", local(reported.firstSeen)),
        ("Remark", reported.remark),
        ("Finding", reported.findingId),
      ]
      facts = all.compactMap { name, value in value.map { ["name": name, "value": $0] } }
      hasDetails = finding.severity == .critical
    }
  }

  private struct Page {
    let title: String
    let style = String(decoding: PackageResources.page_css, as: UTF8.self)
    let script = String(decoding: PackageResources.page_js, as: UTF8.self)
    let styleHash: String
    let scriptHash: String
    let apps: String
    let days: String
    let timeZone: String
    let asOf: String
    let bannerClass: String
    let state: String
    let stateText: String
    let hasReasons: Bool
    let reasons: [String]
    let unusual: [String]
    let tiles: [SummaryTile]
    let currencies: [String]
    let dispositions: [Bucket]
    let totalOrders: String
    let totalAmounts: [String]
    let stakeTitle = MoneyTable.atStakeTitle
    let stakeAmounts: [String]
    let hasFirst: Bool
    let first: [FirstRow]
    let hasOwners: Bool
    let ownerRows: [OwnerRow]
    let hasDecisions: Bool
    let decisions: String
    let hasSales: Bool
    let salesTitle = SalesLine.title
    let salesNote: String
    let salesHeaders: [String]
    let sales: [SalesRow]
    let hasRates: Bool
    let productRates: [Rate]
    let hasUserRates: Bool
    let userRates: [Rate]
    let movement: RollForwardTitles
    let roll: [RollForwardRow]
    let hasUnknown: Bool
    let unknown: Int
    let tieOut: TieOut?
    let hasKinds: Bool
    let hasAdjustments: Bool
    let adjustmentsNote: String
    let hasAdjustmentLines: Bool
    let adjustmentHeaders = Adjustment.titles
    let adjustments: [AdjustedTotal]
    let adjustmentsNet: [AdjustedTotal]
    let hasSettlement: Bool
    let settlementHeaders = SettlementLine.titles + SettlementLine.grossTitles
    let settlement: [Settlement]
    let controlText: String
    let controls: [Control]
    let hasNotChecked: Bool
    let notChecked: [String]
    let owners: [String]
    let statuses: [String]
    let hasRequests: Bool
    let requests: String
    let ratesTitle = RefundRate.title
    let ratesNote = RefundRate.note
    let hasChanges: Bool
    let changeCounts: String
    let hasChangeLines: Bool
    let changes: [String]
    let ages: [Age]
    let hasTrend: Bool
    let trends: [Trend]
    let hasFindings: Bool
    let severities: [String]
    let kinds: [Kind]
    let stakeCurrencies: [String]
    let shownText: String
    let findings: [Row]

    init(_ page: ReportPage, _ totals: Totals, _ summary: SummaryFacts, _ control: [ControlTotal]) {
      let options = page.options
      days = summary.days
      title = "App Store night audit \(days)"
      styleHash = Page.hash(PackageResources.page_css)
      scriptHash = Page.hash(PackageResources.page_js)
      apps = options.apps.joined(separator: " · ")
      timeZone = summary.timeZone
      var clock = page.clock
      asOf = clock.text(options.asOf)
      bannerClass = summary.state.isFinal ? "complete" : "incomplete"
      state = summary.state.heading
      stateText = "All control totals balance. \(summary.state.text)"
      reasons = summary.incompleteReasons
      hasReasons = !reasons.isEmpty
      let open = summary.findings
      let critical = open.count(.critical)
      tiles = [
        SummaryTile(label: "Orders read", value: grouped(totals.ordersRead)),
        SummaryTile(label: "Open findings", value: grouped(open.closing)),
        SummaryTile(label: "Critical", value: grouped(critical), tone: critical > 0 ? "bad" : ""),
        SummaryTile(label: "New", value: grouped(open.new)), SummaryTile(label: "Closed", value: grouped(open.closed)),
        SummaryTile(
          label: "Amount unknown", value: grouped(open.open.unknown), tone: open.open.unknown > 0 ? "bad" : ""),
      ]
      let money = totals.ordered.currencies(with: open.atStake)
      currencies = money.map(\.code)
      func amounts(_ sums: MoneyByCurrency) -> [String] {
        money.map { $0.shown(sums.minorUnits[$0] ?? 0) }
      }
      dispositions = Disposition.allCases.compactMap { disposition in
        let orders = totals.ordersByDisposition[disposition.index]
        if orders == 0 { return nil }
        let inTotals = Disposition.inMoneyTotals.contains(disposition)
        return Bucket(
          name: disposition.title, meaning: "Orders \(disposition.clause)\(inTotals ? "" : " (excluded from totals)")",
          orders: grouped(orders),
          amounts: inTotals ? amounts(totals.amountByDisposition[disposition.index]) : money.map { _ in "" })
      }
      totalOrders = shown(Disposition.inMoneyTotals.reduce(0) { $0 + totals.ordersByDisposition[$1.index] })
      totalAmounts = amounts(totals.ordered)
      stakeAmounts = amounts(open.atStake)
      unusual = summary.unusual.map(\.words)
      first = summary.first.map { FirstRow($0) }
      hasFirst = !first.isEmpty
      ownerRows = open.shownOwners.map { name, line in
        OwnerRow(name: name, open: shown(line.open), critical: shown(line.critical), overdue: shown(line.overdue))
      }
      hasOwners = !ownerRows.isEmpty
      decisions = summary.decisions.words
      hasDecisions = summary.changes.since != nil
      sales = SalesLine.all(totals, summary).map { SalesRow($0) }
      hasSales = !sales.isEmpty
      salesNote = SalesLine.note(summary)
      salesHeaders = SalesLine.headers(summary)
      productRates = summary.refundRates.products.map { Rate($0) }
      userRates = summary.refundRates.users.map { Rate($0) }
      hasUserRates = !userRates.isEmpty
      hasRates = !productRates.isEmpty
      movement = RollForwardTitles(summary, options)
      roll = Page.roll(open)
      unknown = open.open.unknown
      hasUnknown = unknown > 0
      tieOut = summary.tieOut.map { TieOut($0) }
      changes = summary.changes.lines
      hasChanges = summary.changes.since != nil
      hasChangeLines = !changes.isEmpty
      changeCounts = summary.changes.countsText
      requests = summary.refundRequests.words(in: options.timeZone, named: options.zoneName) ?? ""
      hasRequests = !requests.isEmpty
      ages = open.ageing.buckets.map { bucket in
        Age(
          name: bucket.title, findings: shown(open.ageing[bucket].findings), money: open.ageing[bucket].shown,
          known: shown(open.ageing.known(bucket)))
      }
      trends = Trend.all(summary.history)
      hasTrend = !trends.isEmpty
      findings = page.rows
      hasFindings = !findings.isEmpty
      severities = Severity.allCases.map(\.rawValue).filter { word in page.rows.contains { $0.severity == word } }
      kinds = open.openKinds.map { kind in
        let stake = open.byKind[kind] ?? Stake()
        return Kind(
          word: kind.rawValue, name: kind.title, count: grouped(stake.findings), severity: open.severityText(of: kind),
          money: stake.shown)
      }
      hasKinds = !kinds.isEmpty
      adjustments = summary.adjustments.prefix(60).map { AdjustedTotal($0) }
      adjustmentsNet = summary.adjustments.net.map { AdjustedTotal(net: $0.currency, $0.units) }
      hasAdjustmentLines = !adjustments.isEmpty
      adjustmentsNote = summary.adjustmentsNote ?? ""
      hasAdjustments = !adjustmentsNote.isEmpty
      settlement = summary.tieOut?.proceeds.map { Settlement($0) } ?? []
      hasSettlement = !settlement.isEmpty
      controls = control.map {
        Control(
          name: $0.title, left: Money.shown($0.left), right: Money.shown($0.right),
          result: $0.isBalanced ? "balanced" : "NOT BALANCED")
      }
      controlText = "\(grouped(control.count)) control totals of the program agree."
      owners = Set(page.rows.map(\.owner)).subtracting([""]).sorted()
      statuses = FindingStatus.allCases.map(\.rawValue).filter { word in page.rows.contains { $0.status == word } }
      stakeCurrencies = Set(page.rows.map(\.currency)).subtracting([""]).sorted()
      shownText =
        open.closing > findings.count
        ? "The worst \(grouped(findings.count)) of \(openFindings(open.closing)); all are "
          + (options.hasFiles ? "in findings.csv." : "on the sheet Findings.")
        : "\(openFindings(open.closing)), worst first."
      notChecked = summary.uncheckedTexts + summary.uncheckedOrderTexts
      hasNotChecked = !notChecked.isEmpty
    }

    private static func hash(_ content: [UInt8]) -> String {
      "'sha256-\(Data(SHA256.hash(data: content)).base64EncodedString())'".replacing("'", with: "")
    }

    private static func roll(_ findings: FindingsSummary) -> [RollForwardRow] {
      let roll = findings.rollForward
      let counts = RollForwardRow(
        name: "Findings", opening: shown(findings.opening), new: shown(findings.new),
        closed: shown(findings.closed), changed: "", closing: shown(findings.closing))
      return [counts]
        + roll.currencies(with: findings.atStake).map { currency in
          func text(_ units: Int128?) -> String { currency.shown(units ?? 0) }
          return RollForwardRow(
            name: currency.code, opening: text(roll.opening.minorUnits[currency]),
            new: text(roll.new.minorUnits[currency]), closed: text(roll.closed.minorUnits[currency]),
            changed: text(roll.changed.minorUnits[currency]), closing: text(roll.closing(currency)))
        }
    }
  }
}
