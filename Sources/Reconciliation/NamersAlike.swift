/// Everything about an order that names an id which others name too, and contests nothing else, but for its age, who it is and
/// what it brings that nobody else could own. Of those that are alike in this the oldest may own what they name, and all others
/// have lost it alike.
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

  /// - Parameters:
  ///   - isOwn: whether nobody but this order could own a transaction that its proofs bring.
  ///   - supporters: of a transaction, the users who name it and of whose person a genuine receipt brought it.
  /// - Returns: nil where the order has more to say.
  public init?(
    _ claimant: Claimant, isOwn: (TransactionKey) -> Bool, supporters: (TransactionKey) -> Set<Identifier>?,
    rules: Rules
  ) {
    guard let id = claimant.order.transactionId, claimant.known.allSatisfy({ $0.transactionId == id }),
      claimant.bringsNothingButItsOwn(isOwn)
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

  /// What an order of this kind owns besides, whoever has what it names: live payments that it alone brings.
  public func further(of claimant: Claimant, rules: Rules) -> [TransactionRecord] {
    switch standing {
    case nil, .eligible: break
    case .refused, .contradictory: return []
    }
    guard !claimant.contradictsOwnPayload else { return [] }
    return claimant.proven.filter { $0.isLive && claimant.claimsUnnamed($0, rules: rules) }
  }
}

extension Claimant {
  /// The same without what its proofs bring.
  public var withoutProven: Claimant {
    Claimant(
      order: order, proven: .none, known: known, signedIds: signedIds, worth: worth, isOpen: isOpen,
      isUserOpen: isUserOpen, isNameUnknown: isNameUnknown)
  }

  /// Whether what it brings has nothing to do with what it names, or with anybody else.
  fileprivate func bringsNothingButItsOwn(_ isOwn: (TransactionKey) -> Bool) -> Bool {
    if proven.isEmpty { return true }
    let isPlain = !list.hasPeriods && !list.hasRestores && proven.allSatisfy { $0.environment == .production }
    guard isPlain, proven.allSatisfy({ isOwn($0.key) }) else { return false }
    let sales = Set(known.map(\.saleKey)).union(known.map(\.key))
    return proven.allSatisfy { !sales.contains($0.saleKey) }
      && contradictsOwnPayload == withoutProven.contradictsOwnPayload
  }
}

extension OrderClaims {
  /// What an order comes to that has lost like this one what they name, and owns further payments.
  public func with(further: [TransactionRecord]) -> OrderClaims {
    if further.isEmpty { return self }
    var claims = self
    claims.owned += further
    // Who has a payment of their own has lost nothing.
    claims.lost = []
    return claims
  }
}
