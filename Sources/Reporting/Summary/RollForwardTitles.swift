import Reconciliation

/// The titles of the movement of findings, from night to night or over a longer period.
struct RollForwardTitles {
  let title: String
  let compared: String
  let opening: String
  let closing: String

  init(_ facts: SummaryFacts, _ options: ReportOptions) {
    if facts.period.isRange {
      title = "\(RollForwardTitles.isMonth(facts) ? "Month-end" : "End of the period"): exposure roll-forward"
      (opening, closing) = ("Opening", "= Closing")
    } else {
      title = "Exposure roll-forward since \(facts.changes.baseNightText)"
      (opening, closing) = ("Open then", "= Open now")
    }
    guard let since = facts.changes.since else {
      compared =
        "There is no report before \(facts.period.isRange ? facts.period.since : "this one"): every open finding is new."
      return
    }
    let passing = facts.findings.passing
    let between = sentence(
      passing.findings, one: " 1 finding was opened and closed in between and is in no column: \(passing.words)."
    ) { " \($0) findings were opened and closed in between and are in no column: \(passing.words)." }
    let doubt = facts.changes.isSinceCompleteNight ? "" : ", which was not complete; no night before it was"
    var clock = LocalClock(timeZone: options.timeZone)
    compared = "Compared with the night made for \(clock.text(since)) (\(options.zoneName))\(doubt).\(between ?? "")"
  }

  private static func isMonth(_ facts: SummaryFacts) -> Bool {
    guard let first = CivilDate(facts.period.since), let last = CivilDate(facts.period.until), first.day == 1,
      (first.year, first.month) == (last.year, last.month)
    else { return false }
    return CivilDate(daysSince1970: last.daysSince1970 + 1).day == 1
  }
}
