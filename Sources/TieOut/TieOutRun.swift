import AppStore
import AuditStore
import Foundation
import Logging
import Postgres
import Reconciliation
import Reporting
import Run
import Settings

package struct TieOutOutcome: Sendable {
  package var record: TieOutTable.Record
  package var totals: TieOutTotals
  package var weeks: [TieOutTotals.Week]
  package var periods: [TieOutTable.Period]
  package var names: [Identifier: String]
  /// Days that Apple has reported again since a published report.
  package var revised: [TieOutFacts.Revision]

  package var isComplete: Bool { record.isComplete }
}

/// The imperative shell of the tie-out: downloads reports, compares, stores results. Ownership is decided by the audit.
/// A failure only makes the tie-out incomplete, because Apple's reports are normally hours to weeks late.
package struct TieOutRun: Sendable {
  /// Apple changes reports of days that ended more recently.
  private static let youngFor = Span.hours(48)
  /// Days before the first compared one, as far as refunds are looked for.
  private static let margin = 8

  let settings: Settings
  let account: ConnectAccount?
  private var zone: TimeZone { settings.tieOut.timeZone }
  package var asOf: Instant
  let logger: Logger
  let isStopped: @Sendable () -> Bool

  /// Throws `ConfigurationError` for a key that cannot work.
  package init(
    settings: Settings, asOf: Instant, logger: Logger, isStopped: @escaping @Sendable () -> Bool
  ) throws {
    let connect = settings.appStoreConnect
    account = try connect.privateKeyFile.map { _ in try ConnectAccount(connect) }
    (self.settings, self.asOf, self.logger, self.isStopped) = (settings, asOf, logger, isStopped)
  }

  package struct Gathered: Sendable {
    var problems: [String] = []
    var payments: [Payment] = []
  }

  /// Downloads due reports, if `mayFetch`, and reads those in the folder. Throws if they cannot be stored.
  package func gather(mayFetch: Bool, year: Int? = nil) async throws -> Gathered {
    try await settings.withStore("night-audit tie-out") { session in
      var gathered = Gathered()
      let asOf = asOf
      let storedAsOf = try await session.withConnection { try ConnectReportTable.storedAsOf(asOf, on: $0) }
      if let folder = settings.tieOut.folder {
        let vendors = account?.vendors ?? []
        let reader = ReportFolderReader(
          directory: folder, onlyVendor: vendors.count == 1 ? vendors[0] : nil, asOf: storedAsOf, logger: logger)
        gathered = try await session.withConnection { try reader.read(on: $0) }
      }
      if mayFetch, let account { gathered.problems += try await fetch(account, year: year, asOf: storedAsOf, session) }
      if let keepRaw = settings.tieOut.keepRaw {
        let oldest = asOf - keepRaw
        try await session.withConnection { try ConnectReportTable.dropRaw(before: oldest, on: $0) }
      }
      return gathered
    }
  }

  private func fetch(
    _ account: ConnectAccount, year: Int?, asOf storedAsOf: Instant, _ session: PostgresSession
  ) async throws -> [String] {
    // Two million rows are 40 MiB compressed, and several times that if a proxy inflates them.
    let transport = HTTPTransport(
      timeout: max(settings.timeout, .minutes(5)), concurrency: 1, inflates: false, maximumBodyBytes: 1 << 30)
    return try await finally({ await transport.shutdown() }) {
      let client = try ConnectClient(
        transport: transport, url: account.url, credentials: account.credentials, version: Version.current,
        now: { Instant.now }
      ) { span throws(CancellationError) in
        // Sleeps for Apple's Retry-After.
        do { try await Task.sleep(for: .microseconds(span.microseconds)) } catch { throw CancellationError() }
      }
      let downloads = ReportDownloads(
        settings: settings, account: account, client: client, session: session,
        today: zone.reportDay(of: asOf), asOf: storedAsOf, logger: logger, isStopped: isStopped)
      return try await downloads.run(year: year)
    }
  }

  // MARK: - Comparing

  /// Compares stored reports with the judged orders and stores the result. `orders` passes them unsorted.
  package func compare(
    _ scope: BlockingScope, _ gathered: Gathered, temporaryDirectory: String,
    orders: (_ each: (JudgedOrder) throws -> Void) throws -> Void
  ) throws -> TieOutOutcome {
    let reading = try scope.connect(settings.databaseURL, applicationName: "night-audit tie-out")
    let other = try scope.connect(settings.databaseURL, applicationName: "night-audit tie-out")
    let sales = try scope.connect(
      settings.salesURL ?? settings.databaseURL, applicationName: "night-audit tie-out", profile: .salesReader)
    let writing = try scope.connect(settings.databaseURL, applicationName: "night-audit tie-out")
    let today = zone.reportDay(of: asOf)
    let vendors = account?.vendors ?? []
    let firstWeek = zone.firstWeek(since: asOf - settings.lookback)
    // Sales this old still affect a compared fiscal period.
    let oldest = (SettlementComparison.periods(today).first?.first ?? today).advanced(
      by: -ProceedsSettlement.longestPeriod)
    let proceeds = try SettlementReports.Sales.read(since: oldest, asOf: asOf, on: reading)
    let window = ReportWindow(
      today: today, first: firstWeek, margin: Self.margin,
      known: proceeds.reports, vendors: vendors)
    let days = ReportDays(window.days, in: zone)
    func isYoung(_ day: ReportDay) -> Bool { days.end(of: day) + Self.youngFor > asOf }
    let coverage = DayCoverage(days: window.days, compared: window.compared, printed: window.printed) {
      window.coverage($0, isYoung: isYoung($0))
    }
    let reported = try reported(window.days, on: reading)
    let productOwnership = try productOwnership(reported, reading: reading, sales: sales)
    let units = UnitsComparison(
      settings: settings, asOf: asOf, coverage: coverage, days: days, firstWeek: firstWeek, scope: productOwnership)
    func finance(_ kind: ReportKind) throws(PostgresError) -> SettlementReports {
      SettlementReports(
        today: today, known: try ConnectReportTable.known(kind, frequency: "", asOf: asOf, on: reading),
        vendors: vendors, sales: proceeds)
    }
    let settlement = try SettlementComparison.run(
      finance(.detail), asOf: asOf, sales: reading, finance: other
    ) { period in
      (period.first...period.last).allSatisfy(window.isFinal)
    }
    var ordersByProduct = try OrdersByProduct(orders, of: days, directory: temporaryDirectory)
    var reasons = gathered.problems
    reasons += window.reasons(since: oldest) { !isYoung($0) }
    reasons += try ConnectReportTable.unreadable(
      min(oldest, window.days.lowerBound)...window.days.upperBound, settlement.names, asOf: asOf, on: reading)
    reasons += productOwnership.ambiguous.map {
      "two apps sell the product \($0) and are compared together; set app.<name>.sku of each to tell them apart"
    }
    for kind in [ReportKind.detail, .financial] { reasons += try finance(kind).late(kind) }
    reasons += settlement.reasons
    reasons += try SettlementComparison.crossChecks(asOf: asOf, on: reading)
    reasons += Payment.problems(of: gathered.payments, earned: settlement.earned)
    let names = try ProductNames.read(schema: settings.salesSchema, on: sales)
    let day = Period.dayBefore(asOf, in: settings.timeZone).until
    let revised = try TieOutFacts.Revision.since(lastReportedBefore: asOf, day: day, on: reading)
    return try writing.transaction { writing in
      var seen = UnitsComparison.ObservedUnits()
      try TieOutTable.replace(window.compared, asOf: asOf, on: writing) { append in
        seen = try units.run(apple: reading, ours: other, orders: &ordersByProduct, append: append)
      }
      let unseen = Scope.unseen(settings.apps, reported: reported, sold: seen.sellers)
      try TieOutTable.replace(settlement.periods, of: settlement.names, asOf: asOf, on: writing)
      let record = TieOutTable.Record(
        asOf: asOf, days: window.printed, incompleteReasons: (reasons + unseen).uniqued(),
        notes: notes(seen, settlement))
      try TieOutTable.insert(record, on: writing)
      try Trail.appendTieOuts(on: writing)
      return TieOutOutcome(
        record: record, totals: seen.totals, weeks: seen.weeks.weeks, periods: settlement.periods, names: names,
        revised: revised)
    }
  }

  private func reported(
    _ days: ClosedRange<ReportDay>, on connection: borrowing BlockingConnection
  ) throws(PostgresError) -> Set<Scope.Product> {
    let rows = try connection.execute(
      """
      SELECT DISTINCT s.parent, s.sku FROM \(try ConnectSalesRows.ofDailyReports(asOf)) AND s.day BETWEEN $1 AND $2
      """, [.int(Int64(days.lowerBound.number)), .int(Int64(days.upperBound.number))])
    return Set(
      try rows.map { (row) throws(PostgresError) in
        Scope.Product(parent: Identifier(try row.text(0)), productId: Identifier(try row.text(1)))
      })
  }

  /// Assigns products to apps by orders, transactions and reports.
  private func productOwnership(
    _ reported: Set<Scope.Product>, reading: borrowing BlockingConnection, sales: borrowing BlockingConnection
  ) throws -> Scope {
    // Rows without a bundle ID belong to the only app.
    func app(_ bundleId: String) -> String {
      bundleId.isEmpty && settings.apps.count == 1 ? settings.apps[0].bundleId : bundleId
    }
    var known: [String: Set<Identifier>] = [:]
    for (bundleId, products) in try OurTransactions.products(on: reading) {
      known[app(bundleId), default: []].formUnion(products)
    }
    // Orders are read only for products that transactions leave open, because there may be many. If transactions assign
    // the product to another app, only paid orders count: others are probably mistakes.
    let open = Scope.open(reported, of: settings.apps, known: known).sorted().map { Optional($0.text) }
    if !open.isEmpty {
      let sold = settings.apps.reduce(into: Set<Identifier>()) { $0.formUnion(known[$1.bundleId] ?? []) }
      let orders = try sales.execute(
        """
        SELECT coalesce(bundle_id::text, ''), product_id::text,
          coalesce(bool_or(status::text COLLATE "C" IN ('verified', 'refunded')), false)
        FROM \(try PostgresIdentifier(settings.salesSchema, "orders").sql) WHERE product_id::text = ANY ($1::text[])
        GROUP BY 1, 2
        """, [.textArray(open)])
      for row in orders {
        let (bundleId, product) = (try row.shownText(0) ?? "", Identifier(try row.text(1)))
        if try row.bool(2) || !sold.contains(product) { known[app(bundleId), default: []].insert(product) }
      }
    }
    return Scope(apps: settings.apps, known: known, reported: reported)
  }

  private func notes(_ seen: UnitsComparison.ObservedUnits, _ settlement: SettlementComparison.Result) -> [String] {
    var notes: [String] = []
    if !seen.lags.isEmpty {
      let lags = seen.lags.sorted { $0.key < $1.key }.map { lag, units in
        "\(shown(lag)) day\(abs(lag) == 1 ? "" : "s"): \(shown(units))"
      }
      notes.append("Units in both counts, by the days from our day to Apple's: " + lags.joined(separator: ", "))
    }
    if seen.totals.awaited > .zero {
      notes.append(
        "\(shown(seen.totals.awaited)) of the unexplained units may be of orders whose payment Apple has not confirmed; they "
          + "are no finding")
    }
    if seen.rowsWithoutUnits > 0 {
      let rows =
        seen.rowsWithoutUnits == 1
        ? "1 row without units (a partial refund) is"
        : "\(shown(seen.rowsWithoutUnits)) rows without units (partial refunds) are"
      notes.append("\(rows) listed apart")
    }
    for (type, rows) in seen.unknownTypes.sorted(by: { $0.key < $1.key }) {
      let counted = rows == 1 ? "1 row" : "\(shown(rows)) rows"
      notes.append("\(counted) of the unknown product type \(type) counted as in-app purchases")
    }
    for period in Set(settlement.periods.filter { !$0.hasSales }.map(\.name)).sorted() {
      notes.append("Sales of fiscal period \(period) are unknown, because some of its days have no sales report")
    }
    if let blanks = Self.blanks(in: settlement.periods) { notes.append(blanks) }
    if !settings.journalAccounts.isEmpty, let unposted = Self.unposted(settlement.periods) { notes.append(unposted) }
    if settlement.movedUnits != .zero {
      let units =
        settlement.movedUnits == .one ? "1 settled unit is" : "\(shown(settlement.movedUnits)) settled units are"
      notes.append("\(units) dated a day before or after the sales report")
    }
    return notes
  }

  /// The blank figures of the settlement by column, with their reasons; nil: none.
  static func blanks(in periods: [TieOutTable.Period]) -> String? {
    let counts: [(columns: String, blank: Int, reason: String)] = [
      (
        "Proceeds earned, Outstanding at period end, Written off by Apple and Difference",
        periods.count { !$0.hasSales }, "daily sales reports are missing"
      ),
      (
        "Gross", periods.count { !$0.hasSales || !$0.line.isGrossKnown },
        "or customers paid in another currency than Apple pays"
      ),
      (
        "Commission and Tax", periods.count { !$0.hasSales || !$0.line.isTaxKnown },
        "or Apple's reports do not state the tax in the prices"
      ),
    ]
    let blank = counts.filter { $0.blank > 0 }
    if blank.isEmpty { return nil }
    let lines = periods.count == 1 ? "In the line" : "Of the \(shown(periods.count)) lines"
    return "\(lines) of the settlement these figures are blank, because they are unknown: "
      + blank.map { "\($0.columns) in \(shown($0.blank)) (\($0.reason))" }.joined(separator: "; ")
  }

  /// The amounts that the journal cannot post, because their currency has fewer decimals; nil: none.
  static func unposted(_ periods: [TieOutTable.Period]) -> String? {
    var amounts: [String] = []
    for period in periods {
      for (name, amount) in [("payout", period.payout), ("commission", period.commission)] {
        guard let amount, period.money(amount) == nil else { continue }
        amounts.append("\(name) of \(period.name): \(amount) \(period.currency)")
      }
    }
    if amounts.isEmpty { return nil }
    return "The journal has no line for these amounts, because their currency has fewer decimals; post them by hand: "
      + amounts.joined(separator: "; ")
  }
}

private func shown(_ number: some CustomStringConvertible) -> String { Money.grouped(number.description) }

/// Product names from the optional relation `products`.
package enum ProductNames {
  package static func read(
    schema: String, on connection: borrowing BlockingConnection
  ) throws(PostgresError) -> [Identifier: String] {
    let table = try PostgresIdentifier(schema, "products")
    let isThere = try connection.execute("SELECT to_regclass($1) IS NOT NULL", [.text(table.sql)]).single().bool(0)
    guard isThere else { return [:] }
    let rows = try connection.execute(
      "SELECT product_id::text, name::text FROM \(table.sql) WHERE product_id IS NOT NULL AND name IS NOT NULL")
    var names: [Identifier: String] = [:]
    for row in rows { names[Identifier(try row.shownText(0) ?? "")] = try row.shownText(1) }
    return names
  }
}

extension Sequence<String> {
  fileprivate func uniqued() -> [String] {
    var seen: Set<String> = []
    return filter { seen.insert($0).inserted }
  }
}
