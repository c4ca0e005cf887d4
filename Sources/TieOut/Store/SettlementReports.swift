import Postgres
import Reconciliation

/// Whose finance report of one kind has to be here before anything of a fiscal period is told: where a vendor's is not,
/// nobody knows which of its sales were left out.
struct SettlementReports {
  /// A finance report that is not there so many days after its period is late.
  static let due = 14

  /// The day of the as-of.
  let today: ReportDay
  /// What is known of them, by fiscal period and vendor.
  let known: [String: [String: ConnectReportTable.Known]]
  /// Those that are configured.
  let vendors: [String]
  let sales: Sales

  /// What a vendor's daily sales reports say of proceeds.
  struct Sales {
    /// What is known of those reports, by day and vendor.
    let reports: [String: [String: ConnectReportTable.Known]]
    /// The days of which they tell proceeds.
    let days: [String: Set<ReportDay>]

    /// Whether a vendor has reported each of these days, and no proceeds.
    func areNone(of vendor: String, on days: ClosedRange<ReportDay>) -> Bool {
      let soldDays = self.days[vendor] ?? []
      return days.allSatisfy {
        reports[$0.description]?[vendor]?.state.isSettled == true && !soldDays.contains($0)
      }
    }
  }

  /// What came of a vendor's report; nil: nobody has asked for it.
  ///
  /// Where nothing was paid Apple has none, and its answer is that of a period that is not settled yet. It is believed of a
  /// period in which nothing was sold, once what was sold before has been settled, too, or could have been.
  func state(_ vendor: String, _ period: FiscalPeriod) -> DownloadState? {
    let state = known[period.description]?[vendor]?.state
    let age = today.number - period.last.number
    guard state == .unknown, age >= Self.due, sales.areNone(of: vendor, on: period.first...period.last) else {
      return state
    }
    let before = period.first.advanced(by: -ProceedsSettlement.longestPeriod)...period.first.advanced(by: -1)
    return age > AskingPlan.longestWait || sales.areNone(of: vendor, on: before) ? .zero : .unknown
  }

  /// Whether the report of every vendor that is configured, that has sold in the period, or whose file is awaited, is here.
  func areWhole(_ period: FiscalPeriod) -> Bool {
    let reports = known[period.description] ?? [:]
    let awaited = Set(vendors).union(sellers(in: period))
      .union(reports.filter { $0.value.isAwaited(of: $0.key, among: vendors) }.keys)
    return !awaited.isEmpty && awaited.allSatisfy { isHere($0, period) }
  }

  /// Late reports, as sentences: of vendors that have sold in a period, where somebody's report of it or of an earlier one is
  /// here. Where nobody's is, nobody may mean to bring any.
  /// - Parameter periods: the oldest first.
  func reasons(_ periods: [FiscalPeriod]) -> [String] {
    let begun = periods.drop { period in !(known[period.description] ?? [:]).values.contains(where: \.state.isSettled) }
    return begun.filter { today.number - $0.last.number >= Self.due }.flatMap { period in
      sellers(in: period).filter { !isHere($0, period) }.sorted().map { absence(.detail, of: period, vendor: $0) }
    }
  }

  /// Reports of vendors that are asked about which should be here by now, as sentences, for as long as Apple is asked again.
  func late(_ kind: ConnectReport.Kind) -> [String] {
    FiscalCalendar.periods.filter {
      (Self.due...AskingPlan.longestWait).contains(today.number - $0.last.number)
    }.flatMap { period in
      vendors.filter { state($0, period)?.isOpen ?? true }.map { absence(kind, of: period, vendor: $0) }
    }
  }

  private func absence(_ kind: ConnectReport.Kind, of period: FiscalPeriod, vendor: String) -> String {
    let state = state(vendor, period)?.rawValue ?? "never asked"
    return "no \(kind.rawValue) of fiscal period \(period), vendor \(vendor) (\(state))"
  }

  private func isHere(_ vendor: String, _ period: FiscalPeriod) -> Bool { state(vendor, period)?.isSettled == true }

  private func sellers(in period: FiscalPeriod) -> [String] {
    sales.days.filter { $0.value.contains(where: period.contains) }.map(\.key)
  }
}

extension SettlementReports.Sales {
  /// Of the daily reports from a day on.
  static func read(since first: ReportDay, on connection: borrowing BlockingConnection) throws -> Self {
    let rows = try connection.execute(
      """
      SELECT DISTINCT r.vendor, s.day
      FROM night_audit.connect_sales s JOIN night_audit.connect_reports_current r USING (report_id)
      WHERE r.kind = 'SALES' AND r.frequency = 'DAILY' AND r.state = 'reported' AND \(try SettlementComparison.isProceeds)
        AND s.day >= $1
      """, [.int(Int64(first.number))])
    var days: [String: Set<ReportDay>] = [:]
    for row in rows { days[try row.text(0), default: []].insert(ReportDay(number: Int(try row.int32(1)))) }
    return Self(reports: try ConnectReportTable.known(.sales, frequency: "DAILY", on: connection), days: days)
  }
}
