import Reconciliation

/// The completeness of a report: all checks answered, all days of the period over.
struct ReportState {
  let isComplete: Bool
  /// Days of the period that were not over at the as-of.
  let missingDays: Int
  let until: String

  var isFinal: Bool { isComplete && missingDays == 0 }

  var label: String { isFinal ? "complete" : heading }

  var heading: String {
    if !isComplete { return "INCOMPLETE" }
    return missingDays == 0 ? "COMPLETE" : "PERIOD NOT ENDED"
  }

  var line: String { "\(heading): \(text)" }

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
  var state: ReportState { ReportState(isComplete: isComplete, missingDays: missingDays, until: period.until) }

  /// The state as one line for a terminal: `Complete.`, or the reasons.
  package var stateLine: String {
    switch (isComplete, missingDays) {
    case (true, 0): "Complete."
    case (true, _): state.line
    case (false, 0): "INCOMPLETE:"
    case (false, _): "INCOMPLETE: \(state.text)"
    }
  }

  package var stateLabel: String { state.label }
}

extension SummaryDocument {
  var state: ReportState { ReportState(isComplete: complete, missingDays: period.missingDays, until: period.until) }
}
