import AppStore

/// What sweeping Apple's side, and reading customers' histories, has come to.
package struct SweepSummary: Sendable {
  /// Pages of notifications and of customers' histories that were asked for.
  package var pages = 0
  package var notifications = 0
  package var histories = 0
  /// Facts that were not known before.
  package var facts = 0
  /// Requests to Apple by HTTP status; 0 stands for no reply.
  package var httpStatuses: [Int: Int] = [:]
  /// Faults of ours by app, with the remedy. They end the app's sweep and nothing else.
  package var faults: [String: String] = [:]
  /// Whether a sweep did not come to its end: Apple did not answer, another process swept, or the time was up; nil where
  /// nothing was swept.
  package var isUnfinished: Bool?
  /// Whether customers' histories were not read to their ends; nil where none was to be read.
  package var isShortOfHistories: Bool?
  /// Whether something that is not believed, or that Apple does not tell of any more, was passed over.
  package var hasPassedOver = false

  package init() {}

  /// Whether not everything is known of Apple's side.
  package var isShort: Bool { isUnfinished ?? false || isShortOfHistories ?? false || hasPassedOver }

  /// Counts a page that was asked for.
  mutating func note(_ trail: ServerAPITrail) {
    pages += 1
    if !trail.asked.isEmpty { httpStatuses[trail.httpStatus ?? 0, default: 0] += trail.asked.count }
  }

  /// The same with what was asked for later in the same night, which went on with what was left.
  package func adding(_ later: SweepSummary) -> SweepSummary {
    var sum = self
    sum.pages += later.pages
    sum.notifications += later.notifications
    sum.histories += later.histories
    sum.facts += later.facts
    sum.httpStatuses.merge(later.httpStatuses, uniquingKeysWith: +)
    sum.faults.merge(later.faults) { $1 }
    sum.isUnfinished = later.isUnfinished ?? isUnfinished
    sum.isShortOfHistories = later.isShortOfHistories ?? isShortOfHistories
    sum.hasPassedOver = hasPassedOver || later.hasPassedOver
    return sum
  }
}
