/// The days of a tie-out, and which of them Apple has reported for every vendor.
struct ReportWindow {
  /// With days before the first printed one, whose sales Apple may count later.
  let days: ClosedRange<ReportDay>
  let printed: ClosedRange<ReportDay>
  private let states: [String: [String: DownloadState]]
  private let vendors: [String]

  /// - Parameters:
  ///   - today: the day of the as-of, which is not in it.
  ///   - states: of daily reports, by day and vendor.
  ///   - vendors: those that are configured; those whose reports lie here count besides.
  init(today: ReportDay, margin: Int, states: [String: [String: DownloadState]], vendors: [String]) {
    let yesterday = today.advanced(by: -1)
    let first = today.advanced(by: -AskingPlan.longestWindow)
    printed = first...yesterday
    days = first.advanced(by: -margin)...yesterday
    self.states = states
    let seen = printed.flatMap { states[$0.description]?.keys.map { $0 } ?? [] }
    // Of a folder that holds nothing of these days, whoever it has anything of.
    let known = Set(vendors).union(seen)
    self.vendors = (known.isEmpty ? Set(states.values.flatMap(\.keys)) : known).sorted()
  }

  /// Whether every vendor's report of the day is here and can be summed.
  func isSettled(_ day: ReportDay) -> Bool {
    let known = states[day.description] ?? [:]
    return !vendors.isEmpty && vendors.allSatisfy { known[$0]?.isSettled == true }
  }

  /// Why printed days are not there, grouped by what came of asking.
  /// - Parameter isLate: whether a report of the day should be here by now.
  func reasons(isLate: (ReportDay) -> Bool) -> [String] {
    var days: [String: [ReportDay]] = [:]
    for day in printed where isLate(day) {
      let known = states[day.description] ?? [:]
      let missing = vendors.filter { known[$0]?.isSettled != true }
      for vendor in missing {
        days["\(known[vendor]?.rawValue ?? "never asked"), vendor \(vendor)", default: []].append(day)
      }
      if vendors.isEmpty { days["never asked", default: []].append(day) }
    }
    return days.sorted { $0.key < $1.key }.map { state, days in
      let few = days.prefix(3).map(\.description).joined(separator: ", ")
      return "no daily report of \(days.count) days (\(state)): \(few)\(days.count > 3 ? ", …" : "")"
    }
  }
}
