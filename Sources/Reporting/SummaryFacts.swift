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
}

/// What happened to findings since the run before, and what is open now.
package struct FindingsSummary: Sendable {
  /// Open findings; a kind without any may be left out.
  package var openByKind: [FindingKind: Int]
  /// Open at the end of the run before.
  package var opening: Int
  /// Met by this run for the first time, or again after they were closed.
  package var new: Int
  /// Closed since the run before.
  package var closed: Int
  /// Open now.
  package var closing: Int
  /// Money at stake in the open findings.
  package var atStake: MoneyByCurrency
  /// How old the open ones are.
  package var ageing: Ageing

  /// Numbers of one run.
  package init(
    openByKind: [FindingKind: Int], opening: Int, new: Int, closed: Int, closing: Int, atStake: MoneyByCurrency,
    ageing: Ageing
  ) {
    self.openByKind = openByKind
    self.opening = opening
    self.new = new
    self.closed = closed
    self.closing = closing
    self.atStake = atStake
    self.ageing = ageing
  }

  /// A finding does not get lost between two nights.
  package var control: ControlTotal {
    ControlTotal(
      name: "findings: opening + new - closed = closing", left: String(opening + new - closed), right: String(closing))
  }
}

/// Open findings by age in days of 24 hours.
package struct Ageing: Hashable, Sendable {
  /// Younger than a day.
  package var underOneDay = 0
  /// From one day to under three.
  package var oneToThreeDays = 0
  /// From three days to under seven.
  package var threeToSevenDays = 0
  /// Seven days and older.
  package var overSevenDays = 0

  /// Nothing counted.
  package init() {}

  /// Counts a finding of this age. Three days sharp are the third bucket's, seven days sharp the last one's.
  package mutating func count(_ age: Span) {
    switch age.wholeDays {
    case ..<1: underOneDay += 1
    case 1..<3: oneToThreeDays += 1
    case 3..<7: threeToSevenDays += 1
    default: overSevenDays += 1
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
