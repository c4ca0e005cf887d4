package enum DownloadState: String, Hashable, CaseIterable, Sendable {
  case reported
  case zero
  /// Apple answers that nothing was sold, but there are sales. It answers the same when a version is retired.
  case doubtfulZero = "doubtful_zero"
  case pending
  case gone
  /// Apple demands another version twice.
  case drift
  case unreadable
  /// A finance report without sales, not settled yet, or of a wrong region. Apple's answers do not differ.
  case unknown

  /// True if the file replaces earlier ones. A reported day stays reported if Apple later has no answer.
  package var replacesEarlier: Bool { isFinal || self == .unreadable }

  /// Apple has a report of the day, or says that there were no sales.
  package var isFinal: Bool { self == .reported || self == .zero }

  package var isOpen: Bool { !isFinal && self != .gone }

  /// True if asking again cannot help until a person changes a file or setting.
  package var staysWithoutPeople: Bool { self == .drift || self == .unreadable }

  /// The state for Apple's answer that a day has no sales, first given `daysSinceFirst` days ago. If the day had rows
  /// before, only another report replaces them.
  package static func noSales(hasRows: Bool, hasOwnUnits: Bool, daysSinceFirst: Int?) -> DownloadState {
    if hasRows { return .doubtfulZero }
    if !hasOwnUnits { return .zero }
    return daysSinceFirst.map { $0 >= 3 } ?? false ? .zero : .doubtfulZero
  }
}

package enum AskingPlan {
  /// The oldest day of the window, counted from today, and the most days that a night requests.
  package static let longestWindow = 45
  /// Days after the period during which a missing finance report is requested again.
  static let longestWait = 70

  /// Days of daily reports to request, newest first. Spare requests go to older days until the compared periods are
  /// covered. The `trailing` newest days are requested again, because Apple changes them.
  package static func days(today: ReportDay, trailing: Int, states: [ReportDay: DownloadState]) -> [ReportDay] {
    let inWindow = (1...longestWindow).map { today.advanced(by: -$0) }.filter { day in
      guard let state = states[day], state.isFinal else { return states[day] != .gone }
      return today.number - day.number <= trailing
    }
    let oldest = periods(today: today, states: [:]).map(\.first).min() ?? today
    let before = stride(from: today.number - longestWindow - 1, through: oldest.number, by: -1).lazy
      .map { ReportDay(number: $0) }.filter { day in
        // A second answer can confirm a doubtful zero. Apple keeps the others for a year.
        states[day].map { $0.isOpen && $0 != .unreadable } ?? true
      }
    return inWindow + before.prefix(longestWindow - inWindow.count)
  }

  /// Ended fiscal periods without a finance report that may still come.
  package static func periods(today: ReportDay, states: [FiscalPeriod: DownloadState]) -> [FiscalPeriod] {
    FiscalCalendar.periods.filter { period in
      guard period.last < today, today.number - period.last.number <= 120 else { return false }
      guard let state = states[period] else { return true }
      return state.isOpen && today.number - period.last.number <= longestWait
    }
  }
}
