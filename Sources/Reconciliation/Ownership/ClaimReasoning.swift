/// The steps from the linked orders of a purchase to its owner. Matching decides, not this type.
public struct ClaimReasoning: Sendable {
  public struct Claim: Sendable {
    public var order: Order
    public var kind: LinkKind
    public var token: AccountToken.Relation { rank.token }
    public var isProven: Bool { kind == .proof }
    public var isNamed: Bool
    public var isFalse: Bool
    fileprivate var person: Identifier
    fileprivate var rank: LinkRank
  }

  public struct Step: Sendable {
    public var question: String
    public var left: [Identifier]
    public var because: String
  }

  public private(set) var claims: [Claim] = []
  public private(set) var steps: [Step] = []

  public init(of transaction: TransactionRecord, among claimants: [Claimant], owner: Identifier?, rules: Rules) {
    for claimant in claimants {
      let isProven = claimants.contains {
        $0.order.orderId != claimant.order.orderId && transaction.keys.contains(where: $0.list.contains)
      }
      let stated = claimant.isStatedIDLink(isProvenByOthers: isProven) ? claimant.stated(rules: rules) : nil
      let links = claimant.links(stated: stated, rules: rules)
      guard let link = links.first(where: { $0.transaction.purchaseKey == transaction.purchaseKey }) else { continue }
      claims.append(
        Claim(
          order: claimant.order, kind: link.kind,
          isNamed: stated.map { $0.purchaseKey == transaction.purchaseKey } ?? false,
          isFalse: claimant.proofValidity != .notAllRejected, person: rules.people.person(claimant.order.userId),
          rank: link.rank))
    }
    claims.sort { $0.rank.precedes($1.rank, isSamePerson: false) }
    explain(owner)
  }

  private mutating func explain(_ owner: Identifier?) {
    var left = claims
    func ids(_ claims: [Claim]) -> [Identifier] { claims.map(\.order.orderId) }
    func orders(_ claims: [Claim]) -> String {
      let shown = claims.prefix(5).map { "order \($0.order.orderId) of user \($0.order.userId)" }
      return shown.joined(separator: ", ") + (claims.count > 5 ? " and \(claims.count - 5) more" : "")
    }
    if claims.isEmpty {
      steps.append(Step(question: "Which orders are linked to it?", left: [], because: "No order that it could pay."))
      return
    }
    steps.append(
      Step(
        question: "Which orders are linked to it?", left: ids(left),
        because: left.count == 1 ? "Only \(orders(left))." : "\(left.count) orders: \(orders(left))."))
    func narrow(_ question: String, _ best: [Claim], _ right: String) {
      guard left.count > 1 else { return }
      let isDecisive = !best.isEmpty && best.count < left.count
      let because =
        isDecisive
        ? "\(orders(best)) \(right)." : best.isEmpty ? "None of them." : "All of them alike."
      if isDecisive { left = best }
      steps.append(Step(question: question, left: ids(left), because: because.capitalizedFirst))
    }
    narrow("Whose account token does it carry?", left.filter { $0.token == .same }, "has the same token")
    narrow("Which order was created near the purchase date?", left.filter(\.rank.isInWindow), "was created near it")
    narrow("Which order has no other account token?", left.filter { $0.token != .other }, "has no other token")
    narrow("Which order has a verified proof of it?", left.filter(\.isProven), "has one")
    if Set(left.map(\.person)).count == 1 {
      narrow("Which order of this person has goods?", left.filter(\.rank.hasGoods), "has goods")
    }
    let distance = left.map(\.rank.distance).min()
    narrow("Which order is the nearest in time?", left.filter { $0.rank.distance == distance }, "is the nearest")
    let earliest = left.map(\.order.createdAt).min()
    narrow("Which order is the earliest?", left.filter { $0.order.createdAt == earliest }, "came first")
    narrow("Which ID is the smallest?", [left[0]], "has it")
    let first = left[0].order.orderId
    let question = "Which order owns it?"
    guard let owner else {
      steps.append(
        Step(question: question, left: [], because: "None: \(orders(left)) is paid by another purchase."))
      return
    }
    if owner == first {
      steps.append(Step(question: question, left: [owner], because: "Order \(owner)."))
    } else {
      steps.append(
        Step(
          question: question, left: [owner],
          because: """
            Order \(owner). An order that prefers another purchase leaves this one to the next order. Orders that app \
            receipts alone link are paired in the order of time.
            """))
    }
  }
}

extension String {
  fileprivate var capitalizedFirst: String { prefix(1).uppercased() + dropFirst() }
}
