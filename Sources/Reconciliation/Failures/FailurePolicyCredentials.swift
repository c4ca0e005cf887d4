/// Decides whether refusals concern the credential or single questions.
/// Invented IDs and receipts of other apps get the same words as a wrong secret, so a client could stop the audit of an
/// app. A credential counts as refused only if several IDs were refused alike, each twice, and nothing was accepted.
public struct CredentialRefusals<Kind: Hashable & Sendable>: Sendable {
  public static var idsNeeded: Int { 3 }

  public enum Step: Hashable, Sendable {
    /// Repeats the question with a new token.
    case askAgain
    case park
    case endApp
  }

  private var isAccepted = false
  private var refused: [Kind: Set<String>] = [:]

  public init() {}

  public mutating func accept() { isAccepted = true }

  /// - Parameter isSecondAttempt: true if it was refused before, and asked again with a new token.
  public mutating func refuse(_ kind: Kind, id: String, isSecondAttempt: Bool) -> Step {
    guard isSecondAttempt else { return .askAgain }
    if isAccepted { return .park }
    refused[kind, default: []].insert(id)
    return refused[kind, default: []].count >= Self.idsNeeded ? .endApp : .park
  }
}
