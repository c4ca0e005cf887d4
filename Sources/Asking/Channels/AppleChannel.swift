import AppStore
import Settings

/// An interface of Apple for one app: the questions about a check and the meaning of the answers.
package protocol AppleChannel: Sendable {
  var app: Settings.App { get }

  /// The questions for Apple, in order. Empty if Apple can add nothing to the receipt itself.
  func questions(about check: CheckInProgress) -> [Question]

  /// Asks one question, without the part that `failed` has answered. Throws if the task is cancelled before an answer,
  /// or if `isWanted` returns false when the question's turn comes. In that case no request was sent.
  /// - Parameter failed: the last failure of the question in this run.
  func ask(
    _ question: Question, after failed: ChannelAnswer?, while isWanted: @escaping @Sendable () -> Bool
  ) async throws(CancellationError) -> ChannelAnswer

  /// True while requests to a side pause because Apple has said when to come back.
  func isRateLimited(on side: AppleHost) -> Bool

  /// Makes a new credential for the next question, because the last one was refused.
  func renewCredential() async

  /// The result of a check, given one answer for each of its questions, in order.
  func result(of check: CheckInProgress, answers: [ChannelAnswer]) -> CheckResult
}
