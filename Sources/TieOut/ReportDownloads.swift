import AppStore
import Logging
import Postgres
import Reconciliation
import Settings

/// Downloads due reports from Apple, one at a time, and stores each answer at once.
struct ReportDownloads {
  /// After this many unanswered requests in a row, the rest is left to the next night.
  private static let waitLimit = 3

  let settings: Settings
  let account: ConnectAccount
  let client: ConnectClient
  let session: PostgresSession
  /// The day of the run.
  let today: ReportDay
  /// The as-of of reports that the run stores.
  let asOf: Instant
  let logger: Logger
  let isStopped: @Sendable () -> Bool

  private final class Progress {
    var problems: [String] = []
    var silent = 0
    var requests = 0
    var isOver = false
    var refused: Set<String> = []
  }

  /// Returns sentences about reports that could not be downloaded. `year` adds the monthly reports of a calendar year.
  func run(year: Int?) async throws -> [String] {
    let progress = Progress()
    let asOf = asOf
    let (days, finance, months) = try await session.withConnection { connection in
      (
        try ConnectReportTable.known(.sales, frequency: SalesFrequency.daily.rawValue, asOf: asOf, on: connection),
        try [ReportKind.detail, .financial].map {
          ($0, try ConnectReportTable.known($0, frequency: "", asOf: asOf, on: connection))
        },
        try ConnectReportTable.known(.sales, frequency: SalesFrequency.monthly.rawValue, asOf: asOf, on: connection)
      )
    }
    for vendor in account.vendors {
      let states = Self.states(of: vendor, days) { ReportDay($0) }
      let trailing = min(settings.tieOut.trailingDays, AskingPlan.longestWindow)
      for day in AskingPlan.days(today: today, trailing: trailing, states: states) {
        try await ask(.sales, vendor, .daily, day...day, progress)
      }
      for (kind, known) in finance {
        let states = Self.states(of: vendor, known) { FiscalCalendar.period(named: $0) }
        for period in AskingPlan.periods(today: today, states: states) {
          try await ask(finance: kind, vendor, period, progress)
        }
      }
      if let year {
        let states = Self.states(of: vendor, months) { $0 }
        for days in Self.months(of: year, before: today) {
          let state = states[SalesFrequency.monthly.name(of: days)]
          if state.map(\.isOpen) ?? true { try await ask(.sales, vendor, .monthly, days, progress) }
        }
      }
    }
    logger.info("asked for reports", metadata: ["requests": "\(progress.requests)"])
    return progress.problems
  }

  static func months(of year: Int, before today: ReportDay) -> [ClosedRange<ReportDay>] {
    (1...12).compactMap { ReportDay.month($0, of: year) }.filter { $0.upperBound < today }
  }

  private static func states<Name: Hashable>(
    of vendor: String, _ known: ConnectReportTable.KnownReports, _ name: (String) -> Name?
  ) -> [Name: DownloadState] {
    var states: [Name: DownloadState] = [:]
    for (text, byVendor) in known {
      if let key = name(text), let known = byVendor[vendor] { states[key] = known.state }
    }
    return states
  }

  private func ask(
    _ kind: ReportKind, _ vendor: String, _ frequency: SalesFrequency, _ days: ClosedRange<ReportDay>,
    _ progress: Progress
  ) async throws {
    let report = ConnectReport(
      vendor: vendor, kind: kind, frequency: frequency.rawValue, name: frequency.name(of: days), source: .api)
    let query = ConnectQuery(
      vendor: vendor, kind: .sales(frequency: frequency.rawValue, version: account.salesVersion),
      reportDate: report.name)
    try await ask(query, report, progress, days: days)
  }

  private func ask(
    finance kind: ReportKind, _ vendor: String, _ period: FiscalPeriod, _ progress: Progress
  ) async throws {
    let report = ConnectReport(vendor: vendor, kind: kind, name: period.description, source: .api)
    // One file with all regions, which exists once all currencies are settled.
    let region = kind == .detail ? "Z1" : "ZZ"
    let query = ConnectQuery(
      vendor: vendor, kind: .finance(type: kind.rawValue, region: region), reportDate: period.description)
    try await ask(query, report, progress, days: nil)
  }

  private func ask(
    _ query: ConnectQuery, _ report: ConnectReport, _ progress: Progress, days: ClosedRange<ReportDay>?
  ) async throws {
    let family = report.kind == .sales ? "sales" : "finance"
    if progress.isOver || progress.refused.contains(family) || isStopped() { return }
    let answer = try await client.download(query)
    progress.requests += answer.requests
    for warning in answer.warnings { logger.warning("\(warning)") }
    var report = report
    report.httpStatus = answer.httpStatus
    let name = "\(report.kind.rawValue) \(report.name) of vendor \(report.vendor)"
    if case .unanswered = answer.outcome {} else { progress.silent = 0 }
    switch answer.outcome {
    case .file(let file):
      report.version = file.version
      report.fileName = file.name
      let asked = report
      let asOf = asOf
      let stored = try await session.withConnection {
        try ConnectReportTable.store(file.bytes, as: asked, asOf: asOf, on: $0)
      }
      if let problem = stored.problem { logger.warning("\(name) cannot be read: \(problem)") }
      for note in stored.notes { logger.notice("\(note)", metadata: ["report": "\(name)"]) }
    case .noSales: try await storeNoSales(report, days: days)
    case .notYet: try await store(report, .pending)
    case .gone: try await store(report, .gone)
    case .otherVersion(let version):
      report.detail = version.map { "Apple demands version \($0)" } ?? "Apple demands another version"
      try await store(report, .drift)
      progress.problems.append("\(name): \(report.detail ?? ""); see appStoreConnect.salesVersion")
    case .refused(let refusal):
      progress.problems.append("\(refusal)")
      switch refusal {
      case .token, .agreements, .notAcceptable: progress.isOver = true
      case .role: progress.refused.insert(family)
      case .parameters: break
      }
    case .unanswered(let silence):
      progress.problems.append("\(name): Apple did not answer (\(silence.detail))")
      progress.silent += 1
      if silence.reason == .rateLimited || progress.silent >= Self.waitLimit { progress.isOver = true }
    }
  }

  private func store(_ report: ConnectReport, _ state: DownloadState) async throws {
    let asOf = asOf
    try await session.withConnection { try ConnectReportTable.store(report, state: state, asOf: asOf, on: $0) }
  }

  private func storeNoSales(_ report: ConnectReport, days: ClosedRange<ReportDay>?) async throws {
    // For a fiscal period the answer may mean that nothing is settled yet.
    guard let days else { return try await store(report, .unknown) }
    let (asOf, span) = (asOf, ReportDays(days, in: settings.tieOut.timeZone))
    try await session.withConnection { connection in
      let hasOwnUnits = try OurTransactions.hasUnits(in: span, on: connection)
      try ConnectReportTable.storeNoSales(report, hasOwnUnits: hasOwnUnits, asOf: asOf, on: connection)
    }
  }
}
