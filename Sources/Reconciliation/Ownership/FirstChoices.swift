/// Purchases of orders that a proof or a stated ID sets apart from other orders of the same person and product.
///
/// Such an order owns its first choice in any stable matching if no other order ranks above it there. It leaves the
/// matching with its purchase, which may make the next order the best one.
struct FirstChoices {
  /// By member, the place of its purchase.
  private(set) var sales: [Int?]
  /// By place, the member that owns the purchase.
  private(set) var owners: [Int?]
  /// Members that list or token links alone pair with purchases in time.
  private(set) var inTime: [Int] = []
  private let members: [Member]
  /// By place, the members with a proof of the purchase.
  private var holders: [Int: [Int]] = [:]

  struct Member {
    var time: Int64
    var hasGoods: Bool
    /// The linked purchases within the window, as places in time.
    var linked: Range<Int>
    /// Live purchases by preference; nil: no proof and no ID sets the order apart.
    var choices: [(sale: Int, isProof: Bool)]?
  }

  /// - Parameters:
  ///   - members: in the order of creation date and ID.
  ///   - times: the purchases' times, sorted.
  /// - Returns: nil if an order that is set apart may own a purchase that other orders decide.
  init?(of members: [Member], times: [Int64]) {
    self.members = members
    sales = Array(repeating: nil, count: members.count)
    owners = Array(repeating: nil, count: times.count)
    let apart = members.indices.filter { members[$0].choices != nil }
    for member in apart {
      for choice in members[member].choices ?? [] where choice.isProof {
        holders[choice.sale, default: []].append(member)
      }
    }
    let isMixed = members.contains { $0.hasGoods } && members.contains { !$0.hasGoods }
    var isChanging = !apart.isEmpty
    while isChanging {
      isChanging = false
      for member in apart where sales[member] == nil {
        guard let choice = members[member].choices?.first(where: { owners[$0.sale] == nil }),
          choice.isProof
            ? isBest(member, of: holders[choice.sale] ?? [], at: times[choice.sale])
            : isBestOfAll(member, at: choice.sale, times[choice.sale], isMixed: isMixed)
        else { continue }
        (sales[member], owners[choice.sale], isChanging) = (choice.sale, member, true)
      }
    }
    let others = members.indices.filter { sales[$0] == nil }
    inTime = others.filter { members[$0].choices == nil }
    // A single order is matched by its preferences, not in time.
    if inTime.count(where: { !members[$0].linked.isEmpty }) == 1 { inTime = [] }
    let isPaired = Set(inTime)
    for member in others where !isPaired.contains(member) {
      guard members[member].linked.allSatisfy({ owners[$0] != nil }) else { return nil }
    }
  }

  /// True if no other of the members, all of one person, ranks above this one at a purchase.
  private func isBest(_ member: Int, of others: some Sequence<Int>, at time: Int64) -> Bool {
    others.allSatisfy { sales[$0] != nil || !precedes($0, member, at: time) }
  }

  /// True if none of the linked orders ranks above this one, which has no proof, at a purchase.
  private func isBestOfAll(_ member: Int, at sale: Int, _ time: Int64, isMixed: Bool) -> Bool {
    if holders[sale]?.contains(where: { sales[$0] == nil }) ?? false { return false }
    // Goods come before distance.
    let reach = isMixed && !members[member].hasGoods ? Int64.max / 4 : abs(members[member].time - time)
    let start = members.partitioningIndex { $0.time >= time - reach }
    let near = members.indices[start...].prefix { members[$0].time <= time + reach }
    return isBest(member, of: near.lazy.filter { members[$0].linked.contains(sale) }, at: time)
  }

  private func precedes(_ one: Int, _ other: Int, at time: Int64) -> Bool {
    if members[one].hasGoods != members[other].hasGoods { return members[one].hasGoods }
    return (abs(members[one].time - time), one) < (abs(members[other].time - time), other)
  }

  /// True if a member could own a decided purchase, if a proof of it was found.
  func couldOutrank(_ member: Int, at sale: Int, _ time: Int64) -> Bool {
    guard let owner = owners[sale], owner != member, members[member].linked.contains(sale) else { return false }
    return !(holders[sale]?.contains(owner) ?? false) || precedes(member, owner, at: time)
  }
}
