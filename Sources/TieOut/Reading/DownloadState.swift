/// What a download of a report has come to.
package enum DownloadState: String, Hashable, CaseIterable, Sendable {
  /// Rows came.
  case reported
  /// Nothing was sold: a header without rows, or Apple's word for it when it can be believed.
  case zero
  /// Apple says that nothing was sold, but we know of sales, or it has reported some: it says the same when a version is
  /// retired.
  case doubtfulZero = "doubtful_zero"
  /// It is not there yet.
  case pending
  /// Apple does not keep it any more.
  case gone
  /// Apple demands another version than the one that was asked for, twice.
  case drift
  case unreadable
  /// A finance report without sales, not settled yet, or of a wrong region: Apple does not tell them apart.
  case unknown

  /// Whether the file counts instead of earlier ones of the same day. A day that was reported stays reported when Apple
  /// later has no answer.
  package var replacesEarlier: Bool {
    switch self {
    case .reported, .zero, .unreadable: true
    case .doubtfulZero, .pending, .gone, .drift, .unknown: false
    }
  }

  /// Whether sums may be made of it.
  package var isSettled: Bool {
    switch self {
    case .reported, .zero: true
    case .doubtfulZero, .pending, .gone, .drift, .unreadable, .unknown: false
    }
  }

  /// Whether there is any use in asking again.
  package var isOpen: Bool {
    switch self {
    case .reported, .zero, .gone: false
    case .doubtfulZero, .pending, .drift, .unreadable, .unknown: true
    }
  }

  /// Whether asking again brings nothing else, until somebody changes a file or a setting.
  package var staysWithoutPeople: Bool {
    switch self {
    case .drift, .unreadable: true
    case .reported, .zero, .doubtfulZero, .pending, .gone, .unknown: false
    }
  }

  /// What Apple's “no sales” about a day means.
  /// - Parameters:
  ///   - hasRows: whether a report of that day had rows: only another report takes them back.
  ///   - hasOwnUnits: whether we know of anything that Apple should count on that day.
  ///   - daysSinceFirst: how many days ago Apple first said so of this day; nil: never before.
  package static func noSales(hasRows: Bool, hasOwnUnits: Bool, daysSinceFirst: Int?) -> DownloadState {
    if hasRows { return .doubtfulZero }
    if !hasOwnUnits { return .zero }
    return daysSinceFirst.map { $0 >= 3 } ?? false ? .zero : .doubtfulZero
  }
}

/// Which reports a night asks for.
package enum AskingPlan {
  /// The oldest day of the window, counted from today; no night asks about more days.
  package static let longestWindow = 45
  /// Until so many days after its period Apple is asked again for a finance report that it does not have.
  static let longestWait = 70

  /// Days of daily reports, the newest first: a night that ends early has what people look at. What the window leaves of a
  /// night's share goes to older days, until the fiscal periods that finance reports are asked for are whole.
  /// - Parameters:
  ///   - today: the Pacific day of the as-of, which has no report yet.
  ///   - trailing: so many days before it are asked about again, because Apple changes the newest ones.
  ///   - states: what is known of the days.
  package static func days(
    today: ReportDay, trailing: Int, states: [ReportDay: DownloadState]
  ) -> [ReportDay] {
    let inWindow = (1...longestWindow).map { today.advanced(by: -$0) }.filter { day in
      guard let state = states[day] else { return true }
      switch state {
      case .gone: return false
      case .reported, .zero: return today.number - day.number <= trailing
      case .doubtfulZero, .pending, .drift, .unreadable, .unknown: return true
      }
    }
    let oldest = periods(today: today, states: [:]).map(\.first).min() ?? today
    let before = stride(from: today.number - longestWindow - 1, through: oldest.number, by: -1).lazy
      .map { ReportDay(number: $0) }.filter { day in
        switch states[day] {
        // Of a zero that is doubtful a second answer makes a true one. Apple keeps the others for a year.
        case .none, .some(.doubtfulZero), .some(.pending), .some(.drift), .some(.unknown): true
        case .some(.reported), .some(.zero), .some(.gone), .some(.unreadable): false
        }
      }
    return inWindow + before.prefix(longestWindow - inWindow.count)
  }

  /// Fiscal periods whose finance reports are asked for: those that have ended and whose report is not here yet, for as
  /// long as it may still come.
  package static func periods(today: ReportDay, states: [FiscalPeriod: DownloadState]) -> [FiscalPeriod] {
    FiscalCalendar.periods.filter { period in
      guard period.last < today, today.number - period.last.number <= 120 else { return false }
      guard let state = states[period] else { return true }
      return state.isOpen && today.number - period.last.number <= longestWait
    }
  }
}
