import Foundation
import Postgres
import Reconciliation
import Reporting
import Run
import Settings
import TieOut

/// The stored tie-out for a report, the same in the night that made it and in a report made again.
struct TieOutReport: Sendable {
  var facts: TieOutFacts
  /// One for each product and week of which Apple counted more units than are known here.
  var findings: [Finding] = []
  /// Mondays of weeks without a complete count of Apple's; nil if nothing could be read.
  var undecidedWeeks: Set<ReportDay>?
  var record: TieOutTable.Record?
  var periods: [TieOutTable.Period] = []

  init(problem: String) {
    facts = TieOutFacts(
      incompleteReasons: [problem], firstDay: "", lastDay: "", appleUnits: .zero, ourUnits: .zero,
      explained: TieOutExplanation.allCases.map { ($0.rawValue, .zero) }, unexplained: .zero)
  }

  /// - Parameter listed: bundle ID of the only listed app; nil for all.
  static func read(
    settings: Settings, asOf: Instant, listed: String?, problem: String?, on connection: borrowing BlockingConnection,
    sales: borrowing BlockingConnection
  ) throws -> TieOutReport {
    guard let record = try TieOutTable.newest(asOf: asOf, on: connection) else {
      return TieOutReport(problem: problem ?? "no tie-out was made yet")
    }
    // Whole weeks within the lookback are listed.
    let firstWeek = settings.tieOut.timeZone.firstWeek(since: asOf - settings.lookback)
    var (totals, weeks) = (TieOutTotals(), TieOutTotals())
    try TieOutTable.forEach(
      min(firstWeek, record.days.lowerBound)...record.days.upperBound, asOf: record.asOf, on: connection
    ) { row in
      if record.days.contains(row.day) { totals.add(row) }
      if row.day >= firstWeek { weeks.add(row) }
    }
    let names = try ProductNames.read(schema: settings.salesSchema, on: sales)
    var report = TieOutReport(problem: "")
    report.facts = facts(record, totals, problem: problem, settings: settings)
    report.facts.revisions = try TieOutFacts.Revision.since(
      lastReportedBefore: asOf, day: Period.dayBefore(asOf, in: settings.timeZone).until, on: connection)
    report.findings = findings(weeks.weeks, names: names, listed: listed, settings)
    let unreadable = try ConnectReportTable.unreadableDays(asOf: record.asOf, on: connection)
    report.undecidedWeeks = TieOutTotals.weeks(around: unreadable).filter { $0 >= firstWeek }
    report.record = record
    report.periods = try TieOutTable.periods(endedBy: record.days.upperBound, asOf: record.asOf, on: connection)
    report.facts.proceeds = report.periods.filter { $0.name == report.periods.last?.name }.map { SettlementLine($0) }
    return report
  }

  private static func facts(
    _ record: TieOutTable.Record, _ totals: TieOutTotals, problem: String?, settings: Settings
  ) -> TieOutFacts {
    var facts = TieOutFacts(record, totals)
    facts.incompleteReasons = [problem].compactMap(\.self) + facts.incompleteReasons
    facts.notes = record.notes
    facts.days = record.days.suffix(28).map { day in
      let counts = totals.days[day] ?? TieOutTotals.Day()
      let share = Int128(settings.tieOut.alertShare.millionths)
      let isAlarming = counts.unexplained.magnitude.count * 1_000_000 > counts.apple.magnitude.count * share
      return TieOutFacts.Day(
        date: day.description, apple: counts.apple, unexplained: counts.unexplained, isAlarming: isAlarming)
    }
    return facts
  }

  /// One finding for each product and week; it covers all apps that sell the product.
  static func findings(
    _ weeks: [TieOutTotals.Week], names: [Identifier: String], listed: String?, _ settings: Settings
  ) -> [Finding] {
    let byWeek = Dictionary(grouping: weeks) { Subject.product($0.productId, weekOf: $0.monday.description) }
    return byWeek.sorted { $0.key < $1.key }.compactMap { subject, weeks -> Finding? in
      guard let first = weeks.first else { return nil }
      let units = weeks.map(\.units).reduce(.zero, +)
      let isUnknown = weeks.contains(where: \.isUnknownProduct)
      let name = names[first.productId].map { "\($0) (\(first.productId))" } ?? first.productId.text
      let knows = isUnknown ? "a product that no order here has" : "that no order and no payment here explains"
      var finding = Finding(
        kind: .unreportedByShop, subject: subject,
        reason: """
          Apple counted \(units) \(units == .one ? "unit" : "units") of \(name) in the week from \(first.monday), \
          \(isUnknown ? "" : "units ")\(knows).
          """)
      finding.productId = first.productId
      // Noon in UTC is the same Monday in nearly every time zone.
      finding.occurredAt = Instant(seconds: Int64(first.monday.number) * 86_400 + 43_200)
      let apps = settings.apps.filter { app in weeks.contains { Scope.name($0.app, includes: app.name) } }
        .map(\.bundleId)
      finding.bundleId = apps.count == 1 ? apps[0] : apps.first { $0 == listed }
      finding.severity = units >= Millionths(settings.tieOut.alertUnits) ? .major : .minor
      let amounts = weeks.compactMap(\.amount)
      if amounts.count == weeks.count, Set(weeks.map(\.currency)).count == 1, let code = first.currency,
        let currency = Currency(code)
      {
        finding.amount = amounts.reduce(.zero, +).money(in: currency)
        finding.atStake = finding.amount
      }
      finding.isAmountAtRiskUnknown = finding.atStake == nil
      return finding
    }
  }
}

extension TieOutFacts {
  init(_ record: TieOutTable.Record, _ totals: TieOutTotals) {
    self.init(
      incompleteReasons: record.incompleteReasons, firstDay: record.days.lowerBound.description,
      lastDay: record.days.upperBound.description, appleUnits: totals.apple, ourUnits: totals.ours,
      explained: TieOutExplanation.allCases.map { ($0.rawValue, totals.explained[$0]) },
      unexplained: totals.unexplained)
  }
}
