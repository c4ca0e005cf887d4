/// Everything about an order that does nothing but name an id, except its age and who it is: of those that are alike in this,
/// the oldest may own what they name, and all others come to the same.
///
/// As many orders may name one id as a shop has; matched are two of each kind.
public struct NamerKind: Hashable, Sendable {
  private var named: Identifier
  private var known: [TransactionKey]
  private var standing: ClaimStanding?
  private var token: ClaimRank.Token?
  private var isSupported: Bool
  private var worth: ProofWorth
  private var isOpen: Bool
  private var isUserOpen: Bool
  private var isNameUnknown: Bool

  /// - Parameter supporters: of a transaction, the users who name it and of whose person a genuine receipt brought it.
  /// - Returns: nil where the order has more to say, because a proof of it brings something.
  public init?(_ claimant: Claimant, supporters: (TransactionKey) -> Set<Identifier>?, rules: Rules) {
    guard let id = claimant.order.transactionId, claimant.proven.isEmpty,
      claimant.known.allSatisfy({ $0.transactionId == id })
    else { return nil }
    named = id
    known = claimant.known.map(\.key)
    let target = claimant.named(rules: rules)
    standing = target.map { claimant.standing(named: $0, rules: rules) }
    token = target.map { ClaimRank.token(of: claimant.order, on: $0) }
    isSupported = target.flatMap { supporters($0.key)?.contains(claimant.order.userId) } ?? false
    worth = claimant.worth
    isOpen = claimant.isOpen
    isUserOpen = claimant.isUserOpen
    isNameUnknown = claimant.isNameUnknown
  }
}
