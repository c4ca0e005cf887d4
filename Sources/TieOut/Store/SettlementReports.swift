/// Whose FINANCE_DETAIL of a fiscal period has to be here before anything of it is told: where a vendor's is not, nobody
/// knows which of its sales were left out.
struct SettlementReports {
  /// A finance report that is not there so many days after its period is late.
  static let due = 14

  /// What is known of them, by fiscal period and vendor.
  let known: [String: [String: ConnectReportTable.Known]]
  /// Those that are configured.
  let vendors: [String]
  /// The days of which a vendor's sales reports tell proceeds.
  let soldDays: [String: Set<ReportDay>]

  /// Whether the report of every vendor that is configured, that has sold in the period, or whose file is awaited, is here.
  func areWhole(_ period: FiscalPeriod) -> Bool {
    let reports = known[period.description] ?? [:]
    let awaited = Set(vendors).union(sellers(in: period))
      .union(reports.filter { $0.value.isAwaited(of: $0.key, among: vendors) }.keys)
    return !awaited.isEmpty && awaited.allSatisfy { reports[$0]?.state.isSettled == true }
  }

  /// Late reports of vendors that have sold in a period of which another vendor's report is here, as sentences. Where
  /// nobody's is, nobody may mean to bring any.
  func reasons(_ periods: [FiscalPeriod], today: ReportDay) -> [String] {
    periods.filter { today.number - $0.last.number >= Self.due }.flatMap { (period: FiscalPeriod) -> [String] in
      let reports = known[period.description] ?? [:]
      guard reports.values.contains(where: \.state.isSettled) else { return [] }
      return sellers(in: period).filter { reports[$0]?.state.isSettled != true }.sorted().map {
        Self.absence(.detail, of: period, vendor: $0, reports[$0]?.state)
      }
    }
  }

  /// - Parameter state: what came of asking; nil: nobody has asked.
  static func absence(
    _ kind: ConnectReport.Kind, of period: FiscalPeriod, vendor: String, _ state: DownloadState?
  ) -> String {
    "no \(kind.rawValue) of fiscal period \(period), vendor \(vendor) (\(state?.rawValue ?? "never asked"))"
  }

  private func sellers(in period: FiscalPeriod) -> [String] {
    soldDays.filter { $0.value.contains(where: period.contains) }.map(\.key)
  }
}
