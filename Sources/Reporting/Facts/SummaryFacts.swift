import Reconciliation

/// What the summary says beside the totals of the orders.
package struct SummaryFacts: Sendable {
  /// Whether everything that was due was answered.
  package var isComplete: Bool
  /// What is missing and why, one sentence each; empty when complete.
  package var incompleteReasons: [String]
  /// First day of the period, `2026-11-19`.
  package var since: String
  /// Last day of the period.
  package var until: String
  /// `report.timeZone`, such as `Europe/Berlin`.
  package var timeZone: String
  /// Hash of the configuration.
  package var configuration: String
  /// What became of the findings.
  package var findings: FindingsSummary
  /// Up to 30 nights for the chart, this one included, oldest first.
  package var history: [Night]
  /// How earlier days differ from what was reported about them.
  package var adjustments: [Adjustment] = []
  /// The days of the lookback against what was reported about them, newest first.
  package var days: [DayLine] = []
  /// What is different from the last complete night.
  package var changes = ChangesSummary()
  /// By app the kinds of finding that nothing it is asked through can tell of.
  package var notChecked: [String: [FindingKind]] = [:]
  /// What the audit was set to, in words, for readers who have nothing but the workbook.
  package var settings: [SettingWords] = []

  /// Apple's reports beside what is known here; nil: not configured.
  package var tieOut: TieOutFacts?

  /// Facts of one run.
  package init(
    isComplete: Bool, incompleteReasons: [String], since: String, until: String, timeZone: String,
    configuration: String, findings: FindingsSummary, history: [Night]
  ) {
    self.isComplete = isComplete
    self.incompleteReasons = incompleteReasons
    self.since = since
    self.until = until
    self.timeZone = timeZone
    self.configuration = configuration
    self.findings = findings
    self.history = history
  }

  /// Both sides of every control total of the report.
  package func control(_ totals: Totals) -> [ControlTotal] { totals.control + findings.control }
}

/// One setting in words: `Lookback`, `120 days: orders older than that are not audited`.
package struct SettingWords: Hashable, Sendable {
  /// What it is.
  package var name: String
  /// What it is set to and what that means.
  package var value: String

  /// A line of the sheet About.
  package init(_ name: String, _ value: String) {
    self.name = name
    self.value = value
  }
}

/// What happened to findings since the last complete night, and what is open now.
package struct FindingsSummary: Sendable {
  /// Open findings by kind; a kind without any may be left out.
  package private(set) var byKind: [FindingKind: Stake] = [:]
  /// One kind of one severity in one currency.
  package struct Line: Hashable, Sendable {
    package var kind: FindingKind
    package var severity: Severity
    /// nil: nobody knows what money it is about.
    package var currency: Currency?
    package var findings = 0
    package var minorUnits: Int128 = 0
    package var unknown = 0
  }

  private struct LineKey: Hashable {
    var kind: FindingKind
    var severity: Severity
    var currency: Currency?
  }

  private var byLine: [LineKey: Line] = [:]
  private var bySeverity: [Severity: Int] = [:]
  /// All open findings.
  package private(set) var open = Stake()
  /// How old the open ones are.
  package private(set) var ageing = Ageing()
  /// The amounts beside the open ones, added up only to find out whether one was changed.
  package private(set) var amounts = MoneyByCurrency()
  /// Open at the end of that night.
  package var opening = 0
  /// Met since for the first time, or again after they were closed.
  package var new = 0
  /// Closed since.
  package var closed = 0
  /// The same in money.
  package var rollForward = RollForward()

  /// No findings, then and now.
  package init() {}

  /// Counts a finding that is open now.
  package mutating func add(_ reported: ReportedFinding, asOf: Instant) {
    let finding = reported.finding
    byKind[finding.kind, default: Stake()].add(finding)
    bySeverity[finding.severity, default: 0] += 1
    open.add(finding)
    let currency = (finding.atStake ?? finding.amount)?.currency
    let key = LineKey(kind: finding.kind, severity: finding.severity, currency: currency)
    var line = byLine[key] ?? Line(kind: finding.kind, severity: finding.severity, currency: currency)
    line.findings += 1
    line.minorUnits += Int128(finding.atStake?.minorUnits ?? 0)
    line.unknown += finding.isStakeUnknown ? 1 : 0
    byLine[key] = line
    // As the column shows it: in the currency of what is at stake.
    if let amount = finding.amount, amount.currency == (finding.atStake ?? amount).currency {
      amounts.add(amount)
    }
    ageing.add(reported, asOf: asOf)
  }

  /// Counts how a finding that is open now came to be so.
  package mutating func count(_ finding: Finding, openBefore: Bool, atStakeBefore: Money?) {
    guard openBefore else {
      new += 1
      if let atStake = finding.atStake { rollForward.new.add(atStake) }
      return
    }
    opening += 1
    if let before = atStakeBefore { rollForward.opening.add(before) }
    guard finding.atStake != atStakeBefore else { return }
    if let now = finding.atStake { rollForward.changed.add(now) }
    if let before = atStakeBefore { rollForward.changed.subtract(before) }
  }

  /// Counts a finding that was open then and is not now.
  package mutating func count(closed atStakeBefore: Money?) {
    opening += 1
    closed += 1
    guard let before = atStakeBefore else { return }
    rollForward.opening.add(before)
    rollForward.closed.add(before)
  }

  /// The open ones by kind, severity and currency, in no order.
  package var lines: [Line] { Array(byLine.values) }

  /// Open now.
  package var closing: Int { open.findings }

  /// Money at stake in the open findings.
  package var atStake: MoneyByCurrency { open.money }

  /// Open findings of the kinds that have any.
  package var openByKind: [FindingKind: Int] { byKind.mapValues(\.findings) }

  /// The kinds that have any, worst first.
  package var openKinds: [FindingKind] { FindingKind.allCases.filter { byKind[$0] != nil } }

  /// Open findings of one severity.
  package func count(_ severity: Severity) -> Int { bySeverity[severity, default: 0] }

  /// Findings do not get lost between two nights, and neither does their money.
  package var control: [ControlTotal] {
    [
      ControlTotal(
        name: "findings: opening + new - closed = closing", left: String(opening + new - closed), right: String(closing)
      )
    ]
      + rollForward.currencies(with: atStake).map { currency in
        ControlTotal(
          name: "at stake \(currency): opening + new - closed + changed = closing",
          left: Money.decimalText(rollForward.closing(currency), digits: currency.digits),
          right: Money.decimalText(atStake.minorUnits[currency] ?? 0, digits: currency.digits))
      }
  }
}

/// One night's money.
package struct Night: Sendable {
  /// The period's last day, `2026-11-19`.
  package var date: String
  /// Orders that Apple confirms as paid.
  package var paid: MoneyByCurrency
  /// Orders whose goods were delivered.
  package var delivered: MoneyByCurrency
  /// In the findings that were open.
  package var atStake: MoneyByCurrency

  /// The sums of one night.
  package init(date: String, paid: MoneyByCurrency, delivered: MoneyByCurrency, atStake: MoneyByCurrency) {
    self.date = date
    self.paid = paid
    self.delivered = delivered
    self.atStake = atStake
  }
}

extension MoneyByCurrency {
  fileprivate mutating func subtract(_ money: Money) {
    add(Money(minorUnits: -money.minorUnits, currency: money.currency))
  }
}

extension EvidenceChannel {
  /// The kinds of finding that asking through this interface can never tell of: what its answers do not carry.
  ///
  /// verifyReceipt knows no price, no part of a refund and no refund of a consumable; signed data that a client sent knows
  /// what was true when it was signed.
  package var unseenKinds: [FindingKind] {
    switch self {
    case .serverApi, .notification: []
    case .verifyReceipt: [.partialRefund, .amountMismatch, .currencyMismatch]
    case .offline:
      [
        .deliveredAfterRefund, .refundReversedNotReinstated, .refundedStillDelivered, .partialRefund, .refundNotBooked,
        .refundOnlyHere,
      ]
    }
  }
}
