import Reconciliation

/// People with an unanswered receipt that could still prove a payment. Their purchases may change owners. Memory grows
/// with users.
struct PeopleWithOpenReceipts: Sendable {
  private let rules: Rules
  private var open: Set<Identifier> = []
  private var orders: [Identifier: [UnansweredOrder]] = [:]

  init(_ rules: Rules) { self.rules = rules }

  mutating func take(_ group: OrderGroup) {
    let order: Order? = if case .valid(let order) = group.row { order } else { nil }
    for place in group.proofs.indices { take(group.proofs[place].receipt, sentFor: order) }
  }

  mutating func take(_ receipt: Receipt, sentFor order: Order?) {
    guard receipt.defect == nil, receipt.state.mayMovePayment(rules) else { return }
    // Apple will not be asked about it, so that its user would wait forever.
    if order == nil, receipt.state.isOfUnconfiguredApp { return }
    let people = Set([order?.userId, receipt.userId].compactMap { $0.map(rules.people.person) })
    for person in people { insert(person, order.map { [UnansweredOrder($0, isUnread: receipt.state.isUnread)] } ?? []) }
  }

  func forEach(_ body: (Identifier, [UnansweredOrder]) throws -> Void) rethrows {
    for person in open { try body(person, orders[person] ?? []) }
  }

  mutating func insert(_ person: Identifier, _ further: [UnansweredOrder]) {
    open.insert(person)
    if !further.isEmpty { orders[person, default: []] += further }
  }

  mutating func join(_ other: PeopleWithOpenReceipts) { other.forEach { insert($0, $1) } }

  var isEmpty: Bool { open.isEmpty }

  func contains(_ userId: Identifier) -> Bool { !open.isEmpty && open.contains(rules.people.person(userId)) }

  /// Orders with unanswered receipts of the user's person.
  func orders(of userId: Identifier) -> [UnansweredOrder] {
    orders.isEmpty ? [] : orders[rules.people.person(userId)] ?? []
  }
}
