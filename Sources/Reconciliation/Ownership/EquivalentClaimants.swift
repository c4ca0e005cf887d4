/// The properties that decide between orders that state one ID, except creation date and order ID.
/// A shop may have any number of such orders. Only two of each kind are matched; the others lose alike.
public struct EquivalentClaimants: Hashable, Sendable {
  /// Set for a person with and without goods, because goods decide among the orders of one person alone.
  private var person: Identifier?
  private var stated: Identifier
  private var known: [TransactionKey]
  private var eligibility: ClaimEligibility?
  private var token: AccountToken.Relation?
  private var isInWindow: Bool?
  private var proofValidity: ProofValidity
  private var isOpen: Bool
  private var isStatedIDUnknown: Bool
  private var hasGoods: Bool

  /// nil: the order has proofs of its own, or its account token may link it to two records of the stated ID.
  ///
  /// - Parameter mixedPeople: people who have goods of some orders, and not of others.
  public init?(_ claimant: Claimant, mixedPeople: Set<Identifier>, rules: Rules) {
    guard let id = claimant.order.transactionId, claimant.proven.isEmpty,
      claimant.known.allSatisfy({ $0.transactionId == id }),
      claimant.order.appAccountToken == nil || claimant.known.count <= 1
    else { return nil }
    let user = rules.people.person(claimant.order.userId)
    person = mixedPeople.contains(user) ? user : nil
    stated = id
    known = claimant.known.map(\.key)
    let target = claimant.named(rules: rules)
    eligibility = target.map { claimant.eligibility(ofStated: $0, rules: rules) }
    let record = target ?? claimant.known.first
    token = record.map { AccountToken.relation(of: claimant.order, to: $0) }
    isInWindow = record.map { claimant.isInWindow($0, rules: rules) }
    proofValidity = claimant.proofValidity
    isOpen = claimant.isOpen
    isStatedIDUnknown = claimant.isStatedIDUnknown
    hasGoods = claimant.hasGoods
  }
}

extension Claimant {
  public func precedes(_ other: Claimant, rules: Rules) -> Bool {
    let target = named(rules: rules)
    func rank(_ claimant: Claimant) -> (Span, Instant, Identifier) {
      (claimant.order.distance(to: target), claimant.order.createdAt, claimant.order.orderId)
    }
    return rank(self) < rank(other)
  }
}
