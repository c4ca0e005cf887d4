/// The properties that decide between orders of one person that state one ID, except creation date and order ID.
/// A person may have any number of such orders. Only two of each kind are matched; the others lose alike.
public struct EquivalentClaimants: Hashable, Sendable {
  private var person: Identifier
  private var stated: Identifier
  private var known: [TransactionKey]
  private var standing: ClaimEligibility?
  private var token: AccountToken.Relation?
  private var isInWindow: Bool?
  private var worth: ProofValidity
  private var isOpen: Bool
  private var isStatedIDUnknown: Bool
  private var hasGoods: Bool

  /// nil: the order has proofs of its own, or its account token may link it to two records of the stated ID.
  public init?(_ claimant: Claimant, rules: Rules) {
    guard let id = claimant.order.transactionId, claimant.proven.isEmpty,
      claimant.known.allSatisfy({ $0.transactionId == id }),
      claimant.order.appAccountToken == nil || claimant.known.count <= 1
    else { return nil }
    person = rules.people.person(claimant.order.userId)
    stated = id
    known = claimant.known.map(\.key)
    let target = claimant.named(rules: rules)
    standing = target.map { claimant.standing(named: $0, rules: rules) }
    let record = target ?? claimant.known.first
    token = record.map { AccountToken.relation(of: claimant.order, to: $0) }
    isInWindow = record.map { claimant.isInWindow($0, rules: rules) }
    worth = claimant.worth
    isOpen = claimant.isOpen
    isStatedIDUnknown = claimant.isStatedIDUnknown
    hasGoods = claimant.hasGoods
  }
}

extension Claimant {
  public func precedes(_ other: Claimant, rules: Rules) -> Bool {
    let target = named(rules: rules)
    func rank(_ claimant: Claimant) -> (Span, Instant, Identifier) {
      let createdAt = claimant.order.createdAt
      return (((target?.saleDate ?? createdAt) - createdAt).magnitude, createdAt, claimant.order.orderId)
    }
    return rank(self) < rank(other)
  }
}
