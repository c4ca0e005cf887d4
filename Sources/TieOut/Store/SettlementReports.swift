import Postgres
import Reconciliation

/// The finance reports required before a fiscal period is compared. Without one, its unsettled sales are unknown.
struct SettlementReports {
  /// Days after the period's end from which a missing finance report is late.
  static let due = 14

  let today: ReportDay
  let known: ConnectReportTable.KnownReports
  let vendors: [String]
  let sales: Sales

  /// Proceeds in a vendor's daily sales reports.
  struct Sales {
    let reports: ConnectReportTable.KnownReports
    let days: [String: Set<ReportDay>]

    func hasNoReports(of vendor: String, on days: ClosedRange<ReportDay>) -> Bool {
      let soldDays = self.days[vendor] ?? []
      return days.allSatisfy { reports[$0.description]?[vendor]?.state.isFinal == true && !soldDays.contains($0) }
    }

    static func read(
      since first: ReportDay, asOf: Instant, on connection: borrowing BlockingConnection
    ) throws -> Sales {
      let rows = try connection.execute(
        """
        SELECT DISTINCT r.vendor, s.day FROM \(try ConnectSalesRows.ofDailyReports(asOf))
          AND \(try ConnectSalesRows.isProceeds) AND s.day >= $1
        """, [.int(Int64(first.number))])
      var days: [String: Set<ReportDay>] = [:]
      for row in rows { days[try row.text(0), default: []].insert(ReportDay(number: Int(try row.int32(1)))) }
      return Sales(
        reports: try ConnectReportTable.known(.sales, frequency: "DAILY", asOf: asOf, on: connection), days: days)
    }
  }

  /// The state of a vendor's report; nil: never requested. Apple gives one answer for "nothing was paid" and "not
  /// settled yet". It counts as zero if nothing was sold in the period, and earlier sales are settled or too old.
  func state(_ vendor: String, _ period: FiscalPeriod) -> DownloadState? {
    let state = known[period.description]?[vendor]?.state
    let age = today.number - period.last.number
    guard state == .unknown, age >= Self.due, sales.hasNoReports(of: vendor, on: period.first...period.last) else {
      return state
    }
    let before = period.first.advanced(by: -ProceedsSettlement.longestPeriod)...period.first.advanced(by: -1)
    return age > AskingPlan.longestWait || sales.hasNoReports(of: vendor, on: before) ? .zero : .unknown
  }

  /// True if the reports of all required vendors exist: configured, awaited, or with sales in the period.
  func areComplete(_ period: FiscalPeriod) -> Bool {
    let reports = known[period.description] ?? [:]
    let awaited = Set(vendors).union(sellers(in: period))
      .union(reports.filter { $0.value.isAwaited(of: $0.key, among: vendors) }.keys)
    return !awaited.isEmpty && awaited.allSatisfy { state($0, period)?.isFinal == true }
  }

  /// Sentences about late reports, from the first period with any report on. Without any, none may be provided.
  func reasons(_ periods: [FiscalPeriod]) -> [String] {
    let begun = periods.drop { period in !(known[period.description] ?? [:]).values.contains(where: \.state.isFinal) }
    return begun.filter { today.number - $0.last.number >= Self.due }.flatMap { period in
      sellers(in: period).filter { state($0, period)?.isFinal != true }.sorted().map {
        absence(.detail, of: period, vendor: $0)
      }
    }
  }

  /// Sentences about late reports of configured vendors, while Apple is still asked.
  func late(_ kind: ReportKind) -> [String] {
    FiscalCalendar.periods.filter {
      (Self.due...AskingPlan.longestWait).contains(today.number - $0.last.number)
    }.flatMap { period in
      vendors.filter { state($0, period)?.isOpen ?? true }.map { absence(kind, of: period, vendor: $0) }
    }
  }

  private func absence(_ kind: ReportKind, of period: FiscalPeriod, vendor: String) -> String {
    let state = state(vendor, period)?.rawValue ?? "never asked"
    return "no \(kind.rawValue) of fiscal period \(period), vendor \(vendor) (\(state))"
  }

  private func sellers(in period: FiscalPeriod) -> [String] {
    sales.days.filter { $0.value.contains(where: period.contains) }.map(\.key)
  }
}
