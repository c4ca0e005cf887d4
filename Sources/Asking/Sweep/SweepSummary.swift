import AppStore

/// The result of reading notifications and customers' histories.
package struct SweepSummary: Sendable {
  package var pages = 0
  package var notifications = 0
  package var histories = 0
  package var facts = 0
  /// Requests to Apple by HTTP status; 0 stands for no reply.
  package var httpStatuses: [Int: Int] = [:]
  /// Configuration faults by app, with the remedy. A fault ends the sweep of its app only.
  package var faults: [String: String] = [:]
  /// True if a sweep ended early: no answer, another process, or the deadline. nil if nothing was swept.
  package var isUnfinished: Bool?
  /// True if a history was not read to its end; nil if none was to be read.
  package var isShortOfHistories: Bool?
  /// True if a statement that does not verify, or a time that Apple no longer covers, was passed over.
  package var hasSkipped = false

  package var isShort: Bool { isUnfinished ?? false || isShortOfHistories ?? false || hasSkipped }

  mutating func note(_ trail: ServerAPITrail) {
    pages += 1
    if !trail.asked.isEmpty { httpStatuses[trail.httpStatus ?? 0, default: 0] += trail.asked.count }
  }

  /// Adds a later result of the same night, which continued this one.
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
    sum.hasSkipped = hasSkipped || later.hasSkipped
    return sum
  }
}
