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
  /// Days of the period that had not ended at the as-of.
  package var missingDays = 0
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
  package var dayLines: [DayLine] = []
  /// What is different from the last complete night.
  package var changes = ChangesSummary()
  /// The five most urgent findings.
  package var first: [ReportedFinding] = []
  /// What people decided since the previous report.
  package var decisions = DecisionCounts()
  /// By app the kinds of finding that nothing it is asked through can tell of.
  package var notChecked: [String: [FindingKind]] = [:]
  /// By app how many orders name an id that its channel cannot ask about, and have no receipt. Nobody owes an answer about
  /// them, so that a night is complete without it.
  package var notAsked: [String: Int] = [:]
  /// Kinds of finding, and refunds, on a much larger share of the orders than in the nights before.
  package var unusual: [UnusualShare] = []
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

  /// Orders that cannot be verified, one sentence for each app.
  package var notAskedWords: [String] {
    notAsked.sorted { $0.key < $1.key }.map { app, orders in
      """
      \(orders) \(orders == 1 ? "order" : "orders") of \(app) cannot be verified: no receipt, and verifyReceipt cannot look up \
      a transaction ID. Have the client send receipts, or configure a Server API key.
      """
    }
  }

  /// Whether it is about more than one day.
  var isRange: Bool { since != until }

  /// The days of the period for people: `2026-11-19`, or `2026-11-01 to 2026-11-30`.
  var days: String { isRange ? "\(since) to \(until)" : until }

  /// Both sides of every control total of the report.
  package func control(_ totals: Totals) -> [ControlTotal] { totals.control + findings.control }
}

extension UnusualShare {
  /// One sentence: `Unusual: “Charged twice” is on 14 of 100 orders (14.0 %), in the 28 nights before on 0.9 %.`
  package var words: String {
    let now = "\(count) of \(orders) orders (\(Self.percent(count, of: orders)))"
    let before = Self.percent(countBefore, of: ordersBefore)
    return switch subject {
    case .kind(let kind): "Unusual: “\(kind.title)” is on \(now), in the \(nights) nights before on \(before)."
    case .refunds: "Unusual: refunds are as many as \(now), in the \(nights) nights before \(before)."
    }
  }

  private static func percent(_ count: Int, of all: Int) -> String {
    Money.decimalText(Int128(count) * 1_000 / Int128(max(all, 1)), digits: 1) + " %"
  }
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
