import Reconciliation

/// The content of the summary apart from the totals of the orders.
package struct SummaryFacts: Sendable {
  package var isComplete: Bool
  package var incompleteReasons: [String]
  package var period: Period
  /// Days of the period that were not over at the as-of.
  package var missingDays = 0
  package var timeZone: String
  package var configuration: String
  package var findings: FindingsSummary
  /// Up to 30 nights for the chart, oldest first, with this one.
  package var history: [Night]
  package var adjustments: [Adjustment] = []
  /// Changed orders of days that no night reported, which no adjustment has; set by the report's writer.
  var unreportedAdjustments = 0
  /// The days of the lookback against the amounts reported at the time, newest first.
  package var dayLines: [DayLine] = []
  package var changes = ChangesSummary()
  package var first: [ReportedFinding] = []
  package var decisions = DecisionCounts()
  /// Kinds of finding that the channel or the notifications of an app cannot show, by app.
  package var notChecked: [String: [FindingKind]] = [:]
  /// By app, the share of known sales that Apple's notifications reported.
  package var feedCoverage: [String: FeedCoverage] = [:]
  /// Orders by app that state an ID which the channel cannot look up, and that have no receipt. They do not make a
  /// night incomplete, because no answer is possible.
  package var notAsked: [String: Int] = [:]
  /// Findings and refunds with an unusually large share of the orders.
  package var unusual: [UnusualShare] = []
  /// The refunds of the period, negative; set by the report's writer.
  var refunded = MoneyByCurrency()
  /// The open refund requests, set by the report's writer.
  var refundRequests = OpenRefundRequests()
  /// The highest refund rates, set by the report's writer.
  var refundRates: (products: [RefundRate], users: [RefundRate]) = ([], [])
  /// False if no snapshot spans the shop's store.
  package var hasOneSnapshot = true
  /// The settings of the audit, for readers who have only the workbook.
  package var settings: [SettingText] = []

  /// nil if no tie-out is configured.
  package var tieOut: TieOutFacts?

  package init(
    isComplete: Bool, incompleteReasons: [String], period: Period, timeZone: String, configuration: String,
    findings: FindingsSummary, history: [Night]
  ) {
    (self.isComplete, self.incompleteReasons, self.period) = (isComplete, incompleteReasons, period)
    (self.timeZone, self.configuration, self.findings, self.history) = (timeZone, configuration, findings, history)
  }

  /// Why the as-of is earlier than the start of the audit; nil if it need not be.
  package var asOfText: String? {
    hasOneSnapshot
      ? nil
      : "No snapshot spans the shop's store, so this report describes an instant at least ten minutes before its audit "
        + "began. Later changes belong to the next report."
  }

  package var uncheckedTexts: [String] {
    notChecked.sorted { $0.key < $1.key }.flatMap { app, kinds in
      let kinds = kinds.map(\.title).joined(separator: ", ")
      guard let coverage = feedCoverage[app], coverage.isInsufficient else {
        return ["Not checked for \(app) (not available through its channel): \(kinds)."]
      }
      return ["Not checked for \(app): \(kinds).", coverage.sentence(app)]
    }
  }

  package var uncheckedOrderTexts: [String] {
    notAsked.sorted { $0.key < $1.key }.map { app, orders in
      """
      \(counted(orders, "order")) of \(app) cannot be verified: no receipt, and verifyReceipt cannot look up \
      a transaction ID. Have the client send receipts, or configure a Server API key.
      """
    }
  }

  mutating func showLocalTimes(_ clock: inout LocalClock) {
    incompleteReasons = incompleteReasons.map { clock.localTimes(in: $0) }
    changes.showLocalTimes(&clock)
  }

  typealias Tile = (label: String, count: Int, isBad: Bool)

  /// The figures at the top of the first sheet and of the page.
  func tiles(_ totals: Totals) -> [Tile] {
    let (critical, unknown) = (findings.count(.critical), findings.open.unknown)
    return [
      ("Orders read", totals.ordersRead, false), ("Open findings", findings.closing, false),
      ("Critical", critical, critical > 0), ("New", findings.new, false), ("Closed", findings.closed, false),
      ("Amount unknown", unknown, unknown > 0),
    ]
  }

  package func control(_ totals: Totals) -> [ControlTotal] { totals.control + findings.control }
}

extension FeedCoverage {
  /// For example `Apple's notifications reported 290 of 300 known sales of game.`
  package func sentence(_ app: String) -> String {
    let remedy =
      " Switch on App Store Server Notifications version 2 in App Store Connect, or payments without an order stay unknown."
    return
      "Apple's notifications reported \(grouped(reported)) of \(grouped(sales)) known sales of \(app).\(isInsufficient ? remedy : "")"
  }
}

extension UnusualShare {
  /// `Unusual: “Charged twice” is on 14 of 100 orders (14.0 %), in the 28 nights before on 0.9 %.`
  package var words: String {
    let share = "\(grouped(orders)) orders (\(Self.percent(count, of: orders)))"
    let before = Self.percent(countBefore, of: ordersBefore)
    // Refunds, and payments and deliveries without an order, are not of the period's orders.
    let against = "\(grouped(count)) times against \(share), in the \(nights) nights before against \(before)"
    return switch subject {
    case .kind(let kind) where kind.isOfOrphan: "Unusual: “\(kind.title)” occurs \(against)."
    case .kind(let kind):
      "Unusual: “\(kind.title)” is on \(grouped(count)) of \(share), in the \(nights) nights before on \(before)."
    case .refunds: "Unusual: refunds occur \(against)."
    }
  }

  private static func percent(_ count: Int, of all: Int) -> String {
    Money.decimalText(Int128(count).permille(of: Int128(all)), digits: 1) + " %"
  }
}

/// A setting as text: `Lookback`, `120 days: orders older than that are not audited`.
package struct SettingText: Hashable, Sendable {
  package var name: String
  package var value: String

  package init(_ name: String, _ value: String) { (self.name, self.value) = (name, value) }
}

package struct Night: Sendable {
  /// The period's last day, `2026-11-19`.
  package var date: String
  /// Amount of orders whose payment Apple confirms.
  package var paid: MoneyByCurrency
  package var delivered: MoneyByCurrency
  /// Amount at risk in the findings that were open.
  package var atStake: MoneyByCurrency

  package init(date: String, paid: MoneyByCurrency, delivered: MoneyByCurrency, atStake: MoneyByCurrency) {
    (self.date, self.paid, self.delivered, self.atStake) = (date, paid, delivered, atStake)
  }
}
