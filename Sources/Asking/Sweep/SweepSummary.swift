/// What sweeping Apple's side has come to.
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
  /// Whether something was due that Apple did not answer for, or the time was up.
  package var isShort = false

  package init() {}
}
