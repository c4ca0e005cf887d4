/// Whether a report is finished: every check was answered, and every day of the period has ended.
struct ReportState {
  let isComplete: Bool
  /// Days of the period that had not ended at the as-of.
  let missingDays: Int
  /// Last day of the period, `2026-11-30`.
  let until: String

  /// Whether nothing is missing.
  var isFinal: Bool { isComplete && missingDays == 0 }

  /// `COMPLETE`, `PERIOD NOT ENDED` or `INCOMPLETE`.
  var heading: String {
    if !isComplete { return "INCOMPLETE" }
    return missingDays == 0 ? "COMPLETE" : "PERIOD NOT ENDED"
  }

  /// The sentences behind the heading.
  var text: String {
    let answered = "Every check that was due was answered."
    let outstanding = "The items below are outstanding."
    if missingDays > 0 { return "\(missing) \(isComplete ? answered : outstanding)" }
    return isComplete ? answered : "\(outstanding) All other figures are final."
  }

  private var missing: String {
    let days = missingDays == 1 ? "1 day is missing" : "\(missingDays) days are missing"
    return "\(days), because the period ends with \(until)."
  }
}

extension SummaryFacts {
  /// Whether the report is finished, for people.
  var state: ReportState { ReportState(isComplete: isComplete, missingDays: missingDays, until: until) }

  /// The state in one line for a terminal: `Complete.`, or what is missing.
  package var stateLine: String {
    switch (isComplete, missingDays) {
    case (true, 0): "Complete."
    case (true, _): "\(state.heading): \(state.text)"
    case (false, 0): "INCOMPLETE:"
    case (false, _): "INCOMPLETE: \(state.text)"
    }
  }

  /// The state in one word for a line of cron's mail.
  package var stateWord: String { state.isFinal ? "complete" : state.heading }
}

extension SummaryDocument {
  /// Whether the report is finished, for people.
  var state: ReportState {
    ReportState(isComplete: complete, missingDays: period.missingDays, until: period.until)
  }
}
