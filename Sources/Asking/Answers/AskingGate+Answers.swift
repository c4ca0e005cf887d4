import AppStore

extension AskingGate {
  /// Records the effect of an answer, and returns the lane that pauses from now on.
  func note(
    _ answer: ChannelAnswer, _ permit: Permit, isRefusedHere: Bool = false,
    failure: CircuitBreaker.CallResult = .failure, bundleId: String = ""
  ) -> Lane? {
    let health = answer.health(isRefusedHere: isRefusedHere, failure: failure)
    for credential in answer.accepted(bundleId: bundleId) { accept(credential, of: permit.lane.app) }
    // A question that went on to the other side was answered by the first one.
    guard let last = answer.asked.last, last != permit.lane.side else { return record(health, permit) }
    _ = record(.success, permit)
    guard case .granted(let other) = admit(Lane(app: permit.lane.app, side: last)) else { return nil }
    return record(health, other)
  }
}
