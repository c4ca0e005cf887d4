/// Who claims one transaction, by which right, and how its owner follows from that: the order of precedence, step by step.
///
/// Decides nothing: matching has decided, over all orders at once. Its own ranks of claims are told here.
public struct ClaimReasoning: Sendable {
  /// Whose account token a transaction carries, as far as is known.
  public enum Token: Sendable { case own, unknown, other }

  /// An order that claims the transaction, and by which right.
  public struct Claim: Sendable {
    public var order: Order
    public var token: Token
    /// Whether a genuine proof of the same person brings it.
    public var isProven: Bool
    public var isNamed: Bool
    /// Whether nothing but false proofs speaks for the order.
    public var isFalse: Bool
    fileprivate var rank: ClaimRank
  }

  public struct Step: Sendable {
    public var question: String
    /// Who is left after it.
    public var left: [Identifier]
    public var because: String
  }

  /// The best claim first.
  public private(set) var claims: [Claim] = []
  public private(set) var steps: [Step] = []

  /// - Parameters:
  ///   - claimants: every order that has to do with the transaction, with what is known for each.
  ///   - owner: what matching came to.
  public init(of transaction: TransactionRecord, among claimants: [Claimant], owner: Identifier?, rules: Rules) {
    let provers = Set(
      claimants.filter { $0.proven.contains { $0.key == transaction.key } }
        .map { rules.people.person($0.order.userId) })
    for claimant in claimants {
      let named = claimant.named(rules: rules)
      let names = named?.key == transaction.key && claimant.standing(named: transaction, rules: rules) == .eligible
      let brings = claimant.proven.contains { $0.key == transaction.key }
      guard names || brings && claimant.claimsUnnamed(transaction, rules: rules) else { continue }
      let isProven = brings || provers.contains(rules.people.person(claimant.order.userId))
      let rank = ClaimRank(claimant, on: transaction, isProven: isProven, isNamed: names)
      let token: Token =
        switch rank.token {
        case .same: .own
        case .unknown: .unknown
        case .other: .other
        }
      claims.append(
        Claim(
          order: claimant.order, token: token, isProven: isProven, isNamed: names, isFalse: rank.isFalse, rank: rank))
    }
    claims.sort { $0.rank < $1.rank }
    tell(owner)
  }

  private mutating func tell(_ owner: Identifier?) {
    var left = claims
    func ids(_ claims: [Claim]) -> [Identifier] { claims.map(\.order.orderId) }
    func orders(_ claims: [Claim]) -> String {
      let shown = claims.prefix(5).map { "order \($0.order.orderId) of user \($0.order.userId)" }
      return shown.joined(separator: ", ") + (claims.count > 5 ? " and \(claims.count - 5) more" : "")
    }
    if claims.isEmpty {
      steps.append(Step(question: "Who claims it?", left: [], because: "No order that it could pay."))
      return
    }
    steps.append(
      Step(
        question: "Who claims it?", left: ids(left),
        because: left.count == 1 ? "Only \(orders(left))." : "\(left.count) orders: \(orders(left))."))
    func narrow(_ question: String, _ best: [Claim], _ right: String) {
      guard left.count > 1 else { return }
      let isDecisive = !best.isEmpty && best.count < left.count
      let because =
        isDecisive
        ? "\(orders(best)) \(right)." : best.isEmpty ? "Nobody of them." : "All of them alike."
      if isDecisive { left = best }
      steps.append(Step(question: question, left: ids(left), because: because.capitalizedFirst))
    }
    narrow("For whom does more speak than false proofs?", left.filter { !$0.isFalse }, "has better than false proofs")
    narrow("Whose account token does it carry?", left.filter { $0.token == .own }, "gave it to the App Store")
    narrow("Who does not carry another's account token?", left.filter { $0.token != .other }, "has no other token")
    narrow("Who has a genuine proof that brings it?", left.filter(\.isProven), "has one")
    narrow("Who names it?", left.filter(\.isNamed), "names it")
    let earliest = left.map(\.order.createdAt).min()
    narrow("Which order is the earliest?", left.filter { $0.order.createdAt == earliest }, "came first")
    narrow("Whose id is the smallest?", [left[0]], "has it")
    let first = left[0].order.orderId
    let question = "Who owns it?"
    guard let owner else {
      steps.append(
        Step(question: question, left: [], because: "Nobody: \(orders(left)) is paid by another, or is not believed."))
      return
    }
    if owner == first {
      steps.append(Step(question: question, left: [owner], because: "Order \(owner)."))
    } else {
      steps.append(
        Step(
          question: question, left: [owner],
          because: """
            Order \(owner). Claims without a name are settled together, one payment for each order: the way that pays the \
            most orders, then the one nearest in time, gives it to this one.
            """))
    }
  }
}

extension String {
  fileprivate var capitalizedFirst: String { prefix(1).uppercased() + dropFirst() }
}
