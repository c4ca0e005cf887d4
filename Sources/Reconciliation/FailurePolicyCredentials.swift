/// Tells a credential that Apple does not accept from one question that it does not like.
///
/// A receipt of another developer's app, or an id that a client made up, is refused in the very words of a wrong secret or a
/// wrong request; whoever sends one could switch the audit of an app off. So a credential counts as refused only when
/// several different ids were refused alike, each of them twice, and nothing was accepted with it in the run.
public struct CredentialTrial<Kind: Hashable & Sendable>: Sendable {
  /// So many different ids must be refused alike.
  public static var idsNeeded: Int { 3 }

  /// What follows from a refusal.
  public enum Step: Hashable, Sendable {
    /// The same once more, with a token made anew.
    case askAgain
    /// It is this question's trouble.
    case park
    /// It is the app's.
    case endApp
  }

  private var isAccepted = false
  private var refused: [Kind: Set<String>] = [:]

  public init() {}

  /// Apple has answered a question that was put with the credential.
  public mutating func accept() { isAccepted = true }

  /// - Parameters:
  ///   - kind: how it was refused.
  ///   - id: what was asked about.
  ///   - isSecondTime: whether it was refused before, and asked again with a fresh token.
  public mutating func refuse(_ kind: Kind, id: String, isSecondTime: Bool) -> Step {
    guard isSecondTime else { return .askAgain }
    if isAccepted { return .park }
    refused[kind, default: []].insert(id)
    return refused[kind, default: []].count >= Self.idsNeeded ? .endApp : .park
  }
}
