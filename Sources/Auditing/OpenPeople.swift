import Reconciliation

/// Everybody of whom a receipt is not answered that could still bring a payment, whatever order it was sent for.
///
/// What they own may be another's once the answer comes. Memory grows with users.
struct OpenPeople: Sendable {
  private let people: People
  private var open: Set<Identifier> = []
  /// Those of them of whom it is not even known what the receipt holds.
  private var unread: Set<Identifier> = []

  /// Nobody yet.
  ///
  /// - Parameter people: which ids are one person's.
  init(_ people: People) { self.people = people }

  /// Takes the receipts that were sent for an order.
  mutating func take(_ group: OrderGroup) {
    for place in group.proofs.indices where group.proofs[place].receipt.isOpen {
      let userId: Identifier? = if case .valid(let order) = group.row { order.userId } else { nil }
      take(group.proofs[place].receipt, orderedBy: userId)
    }
  }

  /// Takes a receipt.
  ///
  /// - Parameter userId: whose order it was sent for; nil where there is none, or one that breaks the contract.
  mutating func take(_ receipt: Receipt, orderedBy userId: Identifier?) {
    guard receipt.isOpen else { return }
    for user in [userId, receipt.userId].compactMap(\.self) {
      insert(people.person(user), isUnread: receipt.state.isUnread)
    }
  }

  /// Hands on each person, by one of their ids, and whether it is not even known what their receipt holds.
  func forEach(_ body: (Identifier, Bool) throws -> Void) rethrows {
    for person in open { try body(person, unread.contains(person)) }
  }

  /// Takes a person as `forEach` gives it.
  mutating func insert(_ person: Identifier, isUnread: Bool) {
    open.insert(person)
    if isUnread { unread.insert(person) }
  }

  /// Takes everybody that another part has found.
  mutating func join(_ other: OpenPeople) {
    open.formUnion(other.open)
    unread.formUnion(other.unread)
  }

  /// Whether there is nobody.
  var isEmpty: Bool { open.isEmpty }

  func contains(_ userId: Identifier) -> Bool { !open.isEmpty && open.contains(people.person(userId)) }

  func containsUnread(_ userId: Identifier) -> Bool { !unread.isEmpty && unread.contains(people.person(userId)) }
}

extension Receipt {
  /// Whether an answer about it is missing that could still bring a payment.
  fileprivate var isOpen: Bool { defect == nil && state.mayBringPayment }
}
