import AuditStore
import Postgres
import Publishing
import Reconciliation
import Reporting
import Run
import SalesStore
import Settings

/// Report options and summary texts of an audit.
extension Audit {
  func options(
    _ folder: ReportFolder, _ connection: borrowing BlockingConnection, _ sales: SalesRows
  ) throws -> ReportOptions {
    // Only the workbook needs the number of rows of its sheets in advance.
    let rows = settings.formats.contains(.xlsx) ? try listed(connection, sales) : (orders: 0, receipts: 0)
    var options = ReportOptions(
      directory: folder.staging, period: plan.period, formats: settings.formats, timeZone: settings.timeZone,
      asOf: plan.asOf, apps: settings.apps.map { "\($0.name) (\($0.bundleId))" }, ordersInPeriod: rows.orders,
      receiptsInScope: rows.receipts, workbookOrders: settings.workbookOrders)
    options.appNames = settings.appNames
    options.hasTieOut = supplement != nil
    options.hasJournal = !settings.journalAccounts.isEmpty
    options.excelLocale = settings.excelLocale
    options.pseudonyms = settings.pseudonyms
    return options
  }

  func listed(
    _ connection: borrowing BlockingConnection, _ sales: SalesRows
  ) throws -> (orders: Int, receipts: Int) {
    let isListed = try plan.selection.orderCondition(onlyBundleId: plan.onlyBundleId)
    let orders = try connection.execute(
      """
      SELECT count(*) FROM \(sales.schema).orders o
      WHERE o.created_at >= $1 AND o.created_at < $2 AND \(try sales.isKnown("o.created_at")) AND \(isListed)
      """,
      [.timestamp(plan.period.start.microseconds), .timestamp(plan.period.end.microseconds)]
    ).single().int64(0)
    let scope = try plan.selection.receiptScope(sales, onlyBundleId: plan.onlyBundleId)
    let receipts = try connection.execute(
      """
      SELECT count(*) FROM \(sales.schema).receipts r \(scope.joins)
      WHERE r.received_at >= $1 AND \(try sales.isKnown("r.received_at")) AND \(scope.condition)
      """,
      [.timestamp(plan.judgedFrom.microseconds)]
    ).single().int64(0)
    return (Int(orders), Int(receipts))
  }

  func summary(
    _ collector: AuditCollector, owedBehindCriticals: Int, findings: FindingsSummary, history: [Night],
    unswept: [String], coverage: [String: FeedCoverage]
  ) -> SummaryFacts {
    var reasons = faults.sorted { $0.key < $1.key }.map { "The re-check of \($0.key) was ended: \($0.value)" }
    reasons += unswept
    for (reason, count) in collector.outstanding.sorted(by: { $0.key < $1.key }) {
      let them = count == 1 ? "it" : "them"
      if reason == AuditCollector.notAsked {
        reasons.append("\(Self.receipts(count)) due, and Apple was not asked about \(them). The next re-check asks.")
        continue
      }
      let words = PaymentReason(rawValue: reason)?.explanation ?? "the last answer is too old"
      reasons.append("\(Self.receipts(count)) due and Apple has given no usable answer for \(them): \(words).")
    }
    if owedBehindCriticals > 0 {
      reasons.append(
        "\(Self.receipts(owedBehindCriticals)) due once more, because critical findings rest on older answers, and "
          + "there is no newer answer.")
    }
    let tonight = Night(date: plan.period.until, totals: collector.totals, atStake: findings.atStake)
    let nights = plan.isOfNight ? history + [tonight] : history
    var summary = SummaryFacts(
      isComplete: reasons.isEmpty, incompleteReasons: reasons, period: plan.period,
      timeZone: settings.timeZoneName, configuration: settings.digest, findings: findings, history: nights)
    summary.missingDays = plan.period.missingDays(at: plan.asOf, in: settings.timeZone)
    summary.feedCoverage = coverage
    summary.notChecked = settings.notChecked(coverage, in: plan.selection)
    for app in settings.apps { summary.notAsked[app.name] = collector.lookupImpossible[app.bundleId] }
    summary.settings = settings.settingWords
    return summary
  }

  private static func receipts(_ count: Int) -> String {
    count == 1 ? "1 receipt was" : "\(grouped(count)) receipts were"
  }

  /// Differences between tonight's totals of earlier days and the totals reported at the time.
  func adjustments(
    _ collector: AuditCollector, _ coordinator: borrowing BlockingConnection
  ) throws(PostgresError) -> (adjustments: [Adjustment], days: [DayLine], uncompared: String?) {
    let days = collector.days
    guard let first = days.days.first else { return ([], [], nil) }
    let isOfOneDay = plan.period.since == plan.period.until
    let reported = try ReportedDays.statements(
      of: isOfOneDay ? .but(plan.period.until) : .before(plan.period.since), asOf: plan.asOf,
      timeZone: settings.timeZoneName, on: coordinator)
    let now = reported.keys.reduce(into: [:]) { $0[$1] = days.sums(of: $1) }
    // Each day of a longer period was reported by its own night, the last day included.
    let atTheTime = try ReportedDays.statements(
      of: isOfOneDay ? .before(plan.period.until) : .upTo(plan.period.until), asOf: plan.asOf, isOfOwnNight: true,
      timeZone: settings.timeZoneName, on: coordinator)
    let elsewhere = try ReportedDays.reportedInOtherTimeZones(
      from: first.name, before: plan.period.since, asOf: plan.asOf, timeZone: settings.timeZoneName, on: coordinator
    ).subtracting(reported.keys).sorted()
    return (Adjustment.between(reported, now), DayLine.lines(days, reported: atTheTime), Self.uncompared(elsewhere))
  }

  private static func uncompared(_ days: [String]) -> String? {
    guard let first = days.first, let last = days.last else { return nil }
    let span = days.count == 1 ? "\(first) was" : "\(days.count) days from \(first) to \(last) were"
    return
      "\(span) reported in another report.timeZone, so later changes are in no adjustment; to report a day again, run: "
      + "night-audit run --date \(last)"
  }

  func exitStatus(_ summary: SummaryFacts, isHeld: Bool) -> ExitStatus {
    if !faults.isEmpty { return .configuration }
    if isHeld { return .held }
    if !summary.isComplete { return .incomplete }
    return plan.threshold?.isExceeded(by: summary.findings) == true ? .criticalFindings : .complete
  }
}
