import Reconciliation

/// Everybody of whom a receipt is not answered that could still bring a payment, whatever order it was sent for.
///
/// What they own may be another's once the answer comes. Memory grows with users.
struct OpenPeople: Sendable {
  private let rules: Rules
  private var open: Set<Identifier> = []
  /// By person, the orders that these receipts were sent for.
  private var orders: [Identifier: [OpenOrder]] = [:]

  /// Nobody yet.
  init(_ rules: Rules) { self.rules = rules }

  /// Takes the receipts that were sent for an order.
  mutating func take(_ group: OrderGroup) {
    let order: Order? = if case .valid(let order) = group.row { order } else { nil }
    for place in group.proofs.indices { take(group.proofs[place].receipt, sentFor: order) }
  }

  /// Takes a receipt.
  ///
  /// - Parameter order: nil where it was sent for none, or for a row that breaks the contract.
  mutating func take(_ receipt: Receipt, sentFor order: Order?) {
    guard receipt.defect == nil, receipt.state.mayChangeOwners(rules) else { return }
    let people = Set([order?.userId, receipt.userId].compactMap { $0.map(rules.people.person) })
    for person in people { insert(person, order.map { [OpenOrder($0, isUnread: receipt.state.isUnread)] } ?? []) }
  }

  /// Hands on each person, by one of their ids, and the orders that their receipts were sent for.
  func forEach(_ body: (Identifier, [OpenOrder]) throws -> Void) rethrows {
    for person in open { try body(person, orders[person] ?? []) }
  }

  /// Takes a person as `forEach` gives it.
  mutating func insert(_ person: Identifier, _ further: [OpenOrder]) {
    open.insert(person)
    if !further.isEmpty { orders[person, default: []] += further }
  }

  /// Takes everybody that another part has found.
  mutating func join(_ other: OpenPeople) { other.forEach { insert($0, $1) } }

  /// Whether there is nobody.
  var isEmpty: Bool { open.isEmpty }

  func contains(_ userId: Identifier) -> Bool { !open.isEmpty && open.contains(rules.people.person(userId)) }

  /// The orders of the user's person whose receipts are not answered.
  func orders(of userId: Identifier) -> [OpenOrder] { orders.isEmpty ? [] : orders[rules.people.person(userId)] ?? [] }
}
