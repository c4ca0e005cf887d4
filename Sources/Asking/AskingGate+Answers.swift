import AppStore

extension AskingGate {
  /// Takes in what an answer says about the lanes that were asked.
  ///
  /// - Parameters:
  ///   - isRefusedHere: whether the local check refuses what was asked about.
  ///   - isOldTrouble: as ``Trials/isOldTrouble(whileSilent:)``.
  /// - Returns: the lane that holds its requests back from now on, if any.
  func note(
    _ answer: ChannelAnswer, _ permit: Permit, isRefusedHere: Bool = false, isOldTrouble: Bool = false,
    bundleId: String = ""
  ) -> Lane? {
    let health = answer.health(isRefusedHere: isRefusedHere, isOldTrouble: isOldTrouble)
    for credential in answer.accepted(bundleId: bundleId) { accept(credential, of: permit.lane.app) }
    // A question that went on to the other side was answered by the first one.
    guard let last = answer.asked.last, last != permit.lane.side else { return record(health, permit) }
    _ = record(.success, permit)
    guard health == .failure,
      case .granted(let other) = admit(Lane(app: permit.lane.app, side: last))
    else { return nil }
    return record(.failure, other)
  }
}
