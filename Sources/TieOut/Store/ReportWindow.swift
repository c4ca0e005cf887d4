/// The days of a tie-out, and how far Apple has reported them.
struct ReportWindow {
  /// Includes days before the first compared one, because Apple may count their sales later.
  let days: ClosedRange<ReportDay>
  /// Days that findings may be about: facts about old days change too.
  let compared: ClosedRange<ReportDay>
  let printed: ClosedRange<ReportDay>
  private let known: ConnectReportTable.KnownReports
  /// Awaited vendors, except where another vendor's reports cover the day.
  private let vendors: [String]
  private let configured: Set<String>
  private let spans: [String: ClosedRange<ReportDay>]

  /// - Parameter known: daily reports, by day and vendor.
  init(
    today: ReportDay, first: ReportDay, margin: Int, known: ConnectReportTable.KnownReports,
    vendors: [String]
  ) {
    let yesterday = today.advanced(by: -1)
    printed = today.advanced(by: -AskingPlan.longestWindow)...yesterday
    compared = min(first, printed.lowerBound)...yesterday
    days = compared.lowerBound.advanced(by: -margin)...yesterday
    self.known = known
    let seen = printed.flatMap { day in
      (known[day.description] ?? [:]).filter { $0.value.isAwaited(of: $0.key, among: vendors) }.map(\.key)
    }
    // If the folder has no file of these days, all vendors of known files are awaited.
    let awaited = Set(vendors).union(seen)
    self.vendors = (awaited.isEmpty ? Set(known.values.flatMap(\.keys)) : awaited).sorted()
    configured = Set(vendors)
    spans = known.spans(where: { $1.isAwaited(of: $0, among: vendors) }) { ReportDay($0) }
  }

  /// The awaited vendors of a day. A company that changed its vendor number has files of one up to a day, then of the
  /// other.
  private func vendors(of day: ReportDay) -> [String] {
    let awaited = Set(vendors).union(spans.keys).filter { isAwaited($0, day) }
    return awaited.isEmpty ? vendors : awaited.sorted()
  }

  private func isAwaited(_ vendor: String, _ day: ReportDay) -> Bool {
    if configured.contains(vendor) { return true }
    guard let span = spans[vendor] else { return vendors.contains(vendor) }
    if span.contains(day) { return true }
    guard vendors.contains(vendor) else { return false }
    return !spans.values.contains { other in
      day > span.upperBound
        ? other.lowerBound > span.upperBound && other.lowerBound <= day
        : other.upperBound < span.lowerBound && other.upperBound >= day
    }
  }

  func isFinal(_ day: ReportDay) -> Bool {
    let reports = known[day.description] ?? [:]
    let vendors = vendors(of: day)
    return !vendors.isEmpty && vendors.allSatisfy { reports[$0]?.state.isFinal == true }
  }

  func coverage(_ day: ReportDay, isYoung: Bool) -> DayCoverage.Coverage {
    guard (known[day.description] ?? [:]).values.contains(where: \.state.isFinal) else { return .missing }
    if isYoung { return .young }
    return isFinal(day) ? .final : .partial
  }

  /// Why days are missing, grouped by state. Includes older days from `first` on that stay missing without a person.
  /// `isLate`: the report of a printed day should exist by now.
  func reasons(since first: ReportDay, isLate: (ReportDay) -> Bool) -> [String] {
    var days: [String: [ReportDay]] = [:]
    for day in min(first, compared.lowerBound)...printed.upperBound where !printed.contains(day) || isLate(day) {
      let reports = known[day.description] ?? [:]
      for vendor in vendors(of: day) where reports[vendor]?.state.isFinal != true {
        if day < printed.lowerBound, reports[vendor]?.state.staysWithoutPeople != true { continue }
        days["\(reports[vendor]?.state.rawValue ?? "never asked"), vendor \(vendor)", default: []].append(day)
      }
      if vendors.isEmpty, printed.contains(day) { days["never asked", default: []].append(day) }
    }
    return days.sorted { $0.key < $1.key }.map { state, days in
      let few = days.prefix(3).map(\.description).joined(separator: ", ")
      return
        "no daily report of \(days.count) \(days.count == 1 ? "day" : "days") (\(state)): \(few)\(days.count > 3 ? ", …" : "")"
    }
  }
}
