import Foundation

/// Sales and finance reports of the App Store Connect API, made from the world. They count by Pacific day, refunds on
/// their own day, and settle some days after the sale.
struct ConnectInterface: Sendable {
  struct Query: Sendable {
    var isSales: Bool
    var parameters: [String: String]
    var authorization: String?
    var accept: String?

    init?(path: String, query: [String: String], authorization: String?, accept: String?) {
      switch path {
      case "/v1/salesReports": isSales = true
      case "/v1/financeReports": isSales = false
      default: return nil
      }
      parameters = query
      self.authorization = authorization
      self.accept = accept
    }

    func value(_ name: String) -> String { parameters["filter[\(name)]"] ?? "" }
    var subject: String { parameters.sorted { $0.key < $1.key }.map(\.value).joined(separator: " ") }
  }

  func answer(_ query: Query, world: World, time: SimulatedClock.Reading) -> Answer {
    let connect = world.connect
    guard isAuthorized(query.authorization, connect) else {
      return Answer.failure(401, "NOT_AUTHORIZED", "Provide a properly configured and signed bearer token.")
    }
    guard query.accept == "application/a-gzip" else {
      return Answer.failure(406, "NOT_ACCEPTABLE", "The requested representation cannot be served.")
    }
    guard query.value("vendorNumber") == connect.vendor else {
      return Answer.failure(400, "PARAMETER_ERROR.INVALID", "Vendor number specified is invalid.")
    }
    return query.isSales
      ? sales(query, world: world, time: time) : finance(query, world: world, time: time)
  }

  /// Checks a token of a team key: ES256, at most 20 minutes, no bundle ID. Without keys any token is accepted.
  private func isAuthorized(_ authorization: String?, _ connect: World.Connect) -> Bool {
    if connect.keys.isEmpty { return authorization?.hasPrefix("Bearer ") == true }
    return ClientToken.isTeamToken(
      authorization: authorization, keys: connect.keys, issuerId: connect.issuerId, keyId: connect.keyId,
      now: SimulatedClock.wall / 1_000)
  }

  private static let noSales = Answer.failure(404, "NOT_FOUND", "There were no sales for the date specified.")

  // MARK: - Sales

  private func sales(_ query: Query, world: World, time: SimulatedClock.Reading) -> Answer {
    guard query.value("reportType") == "SALES", query.value("reportSubType") == "SUMMARY" else {
      return Answer.failure(400, "PARAMETER_ERROR.INVALID", "The report type is not simulated.")
    }
    // Any version is served; a fault can demand one.
    let version = query.value("version")
    let name = query.value("reportDate")
    guard let days = days(name, frequency: query.value("frequency")) else {
      return Answer.failure(400, "PARAMETER_ERROR.INVALID", "The report date is invalid.")
    }
    if time.isSimulated, let end = PacificCalendar.start(of: PacificCalendar.adding(1, to: days.last)) {
      // Reports appear at 8 a.m. and stay for a year.
      if time.now < end + 8 * 3_600_000 {
        return Answer.failure(
          404, "NOT_FOUND", "The report is not available yet. Daily reports are available by 8 a.m.")
      }
      if time.now > end + 365 * 86_400_000 {
        return Answer.failure(410, "GONE", "The report you requested is no longer available.")
      }
    }
    let rows = ConnectTransactions(world: world, horizon: time.horizon).salesRows(from: days.first, to: days.last)
    if rows.isEmpty { return Self.noSales }
    let letter = query.value("frequency").prefix(1)
    return ConnectReportText(
      header: ConnectTransactions.salesColumns, rows: rows,
      fileName: "S_\(letter)_\(world.connect.vendor)_\(name.replacing("-", with: ""))_V\(version).txt.gz",
      version: version
    ).answer
  }

  private func days(_ name: String, frequency: String) -> (first: String, last: String)? {
    switch frequency {
    case "DAILY":
      return PacificCalendar.start(of: name).map { _ in (name, name) }
    case "MONTHLY":
      guard PacificCalendar.start(of: name + "-01") != nil else { return nil }
      let last = (28...31).reversed().first { PacificCalendar.start(of: "\(name)-\($0)") != nil }
      return last.map { (name + "-01", "\(name)-\($0)") }
    default: return nil
    }
  }

  // MARK: - Finance

  private func finance(_ query: Query, world: World, time: SimulatedClock.Reading) -> Answer {
    let isDetail = query.value("reportType") == "FINANCE_DETAIL"
    let name = query.value("reportDate")
    // Apple answers a wrong region like a period without sales.
    guard query.value("regionCode") == (isDetail ? "Z1" : "ZZ"), let period = PacificCalendar.period(name) else {
      return Self.noSales
    }
    if time.isSimulated {
      guard let end = PacificCalendar.start(of: period.last), time.now > end + 7 * 86_400_000 else {
        return Self.noSales
      }
    }
    let counted = ConnectTransactions(world: world, horizon: time.horizon)
    let report = isDetail ? counted.detail(period, name: name) : counted.financial(period, name: name)
    return report.rows.isEmpty ? Self.noSales : report.answer
  }
}
