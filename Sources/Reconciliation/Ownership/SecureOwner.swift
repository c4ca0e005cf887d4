/// An order that owns a purchase whatever other orders claim: it prefers a purchase that no other order is linked to.
///
/// It takes no part in the matching of the purchases that it shares with other orders. At most one of them remains
/// without an owner and is a second charge on it.
public struct SecureOwner {
  /// The result of matching, unless a shared purchase is charged to the order.
  public let claims: OrderClaims
  /// All transactions that the order states or is linked to: they are no orphans.
  public let claimed: Set<TransactionKey>
  /// Shared purchases that are charged to the nearest order if they have no owner.
  public let furtherCharges: [(purchase: PurchaseKey, rank: LinkRank)]

  /// nil: other orders decide what this one owns, or a missing answer could change its claims. An order for more units
  /// than it owns decides, too, because it comes before others at a left-over purchase.
  ///
  /// - Parameter own: the purchases that no other order is linked to.
  public init?(_ claimant: Claimant, own: Set<PurchaseKey>, rules: Rules) {
    guard !own.isEmpty, !claimant.mayChange(rules: rules) else { return nil }
    let (claims, links) = Matching.alone(claimant, rules: rules) { own.contains($0.transaction.purchaseKey) }
    guard let first = links.first(where: { $0.transaction.environment == .production }), first.kind == .proof,
      own.contains(first.transaction.purchaseKey),
      // Left-over purchases are given in the order of time, shared ones among them.
      first.transaction.liveUnits >= claimant.order.quantity,
      // Its verified receipts take links from rejected proofs, and its token keeps out orders outside the window.
      claimant.proven.allSatisfy({ own.contains($0.purchaseKey) }),
      links.allSatisfy({ own.contains($0.transaction.purchaseKey) || $0.rank.token != .same })
    else { return nil }
    self.claims = claims
    claimed = Set(links.lazy.map(\.transaction.key)).union(claimant.stated(as: claims.named))
    furtherCharges = links.filter { $0.isFurtherCharge && !own.contains($0.transaction.purchaseKey) }
      .map { ($0.transaction.purchaseKey, $0.rank) }
  }
}
