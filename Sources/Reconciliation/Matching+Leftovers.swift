/// What is left over once names and assignment are decided, and what each order has lost.
extension Matching {
  /// A live payment that is left over belongs to the order that alone brings it, or else to the nearest one: it was paid,
  /// and somebody paid twice. Whoever names one that nobody without a name took has it after all.
  mutating func matchLeftovers(_ yielding: Set<TransactionKey>) {
    // Better supported names come before further claims, others after them.
    giveBack(
      yielding.filter { sale in
        contenders[sale].map { $0[0].rank.isProven || $0[0].rank.token == .same } ?? false
      })
    var wanted: [TransactionKey: (index: Int, token: Int, distance: Span, transaction: TransactionRecord)] = [:]
    var free: [ObjectIdentifier: [TransactionRecord]] = [:]
    for (index, claimant) in claimants.enumerated() {
      let list = ObjectIdentifier(claimant.list)
      // Who names one and could be paid by it has it by now, or yields. A name that is refused keeps nobody out.
      let listed = free[list] ?? claimant.proven.filter { $0.isLive && owners[$0.saleKey] == nil }
      free[list] = listed
      if listed.isEmpty { continue }
      let own = claims[claimant.order.orderId]
      guard own?.refused == nil, own?.contradictory == nil, !claimant.contradictsOwnPayload, !isAbsent[index]
      else { continue }
      for transaction in listed {
        let sale = transaction.saleKey
        guard claimant.claimsUnnamed(transaction, rules: rules), let date = transaction.saleDate
        else { continue }
        let token = ClaimRank.token(of: claimant.order, on: transaction).rawValue
        let distance = (date - claimant.order.createdAt).magnitude
        // Claimants come by age and id, so a tie stays with the earlier order.
        if let best = wanted[sale], (best.token, best.distance) <= (token, distance) { continue }
        wanted[sale] = (index, token, distance, transaction)
      }
    }
    var shaky: Set<TransactionKey> = []
    for (sale, claim) in wanted.sorted(by: { $0.value.transaction.key < $1.value.transaction.key }) {
      claimed.insert(claim.transaction.key)
      own(claim.transaction, by: claim.index)
      if claimants[claim.index].isUnsettled(rules: rules) { shaky.insert(sale) }
    }
    if shaky.isEmpty { return }
    // Who would have had it instead may yet have it, and it would come before what they own and Apple took back.
    for (index, claimant) in claimants.enumerated() {
      let isWaiting = (free[ObjectIdentifier(claimant.list)] ?? []).contains {
        shaky.contains($0.saleKey) && owners[$0.saleKey] != index && claimant.claimsUnnamed($0, rules: rules)
      }
      if isWaiting { waiting.insert(index) }
    }
  }

  mutating func giveBack(_ yielding: Set<TransactionKey>) {
    for sale in yielding where owners[sale] == nil {
      // Whom only false proofs speak for gets nothing that somebody with a genuine one claims.
      guard let best = contenders[sale]?.first, !best.rank.isFalse else { continue }
      own(best.transaction, by: best.index)
    }
  }

  // MARK: - Owning and losing

  mutating func own(_ transaction: TransactionRecord, by index: Int) {
    owners[transaction.saleKey] = index
    claims[claimants[index].order.orderId]?.owned.append(transaction)
  }

  mutating func tellLosses() {
    // Whoever gets nothing where all whose claims may still change are absent gets nothing when they come: who comes to an
    // assignment takes from others, and gives nobody anything.
    let isUnsettled = claimants.map { $0.isUnsettled(rules: rules) }
    let settled =
      isUnsettled.contains(true) ? Matching(deciding: claimants, supporters, rules, without: isUnsettled) : self
    if isUnsettled.contains(true) { waitForNames(settled) }
    for (sale, named) in contenders {
      for contender in named {
        let isSupported = contender.rank.isProven || !claimants[contender.index].isUserOpen
        lose(contender.transaction, sale, by: contender.index, isFinal: isSupported, settled)
      }
    }
    for loss in crowd?.losses ?? [] {
      for place in loss.sales {
        guard let sale = crowd?.sales[place].transaction else { continue }
        lose(sale, sale.saleKey, by: loss.index, isFinal: true, settled)
      }
    }
    for candidate in unnamed {
      lose(candidate.transaction, candidate.transaction.saleKey, by: candidate.index, isFinal: true, settled)
    }
  }

  /// Notes which orders that name something else would have a live payment, were it not for names that may turn out to be
  /// refused. Whose own proof brings what they name keeps it.
  private mutating func waitForNames(_ settled: Matching) {
    for (index, claimant) in claimants.enumerated() where claimant.order.transactionId != nil {
      let gained = settled.claims[claimant.order.orderId]?.owned ?? []
      let mayGain = gained.contains { record in
        record.isLive
          && contenders[record.saleKey, default: []].allSatisfy { !claimants[$0.index].list.contains(record.key) }
      }
      if mayGain { waiting.insert(index) }
    }
  }

  /// How many lost claims of one order are kept: a user with many orders has lost most of what their receipts bring.
  static let mostLost = 8

  mutating func lose(
    _ transaction: TransactionRecord, _ sale: TransactionKey, by index: Int, isFinal: Bool, _ settled: Matching
  ) {
    guard let owner = owners[sale], owner != index else { return }
    let orderId = claimants[index].order.orderId
    // Who has a payment of their own has lost nothing.
    guard var lost = claims[orderId]?.lost, claims[orderId]?.owned.first?.environment != .production else { return }
    let order = claimants[owner].order
    let couldGain = settled.claims[orderId]?.owned.contains { $0.environment == transaction.environment } ?? false
    let claim = LostClaim(
      transaction: transaction, ownerOrderId: order.orderId, ownerUserId: order.userId,
      isFinal: isFinal && !claimants[index].isOpen && !couldGain)
    // A forged proof says enough by itself, unless nothing is decided yet.
    if claim.isFinal, !claimants[index].worth.tellsObstacles { return }
    // They come by id. One that is not final is kept in any case: it decides what is said of them all.
    if lost.count < Matching.mostLost {
      claims[orderId]?.lost.append(claim)
    } else if !claim.isFinal, lost.allSatisfy(\.isFinal) {
      lost[lost.count - 1] = claim
      claims[orderId]?.lost = lost
    }
  }

  mutating func finish(_ claimant: Claimant, _ index: Int) {
    guard var own = claims[claimant.order.orderId] else { return }
    own.putLiveFirst()
    own.lost.sort { $0.transaction.key < $1.transaction.key }
    // What it owns besides is compared with nothing.
    let mayChange = own.owned.first.map { provisional.contains($0.saleKey) || beatable.contains($0.saleKey) } ?? false
    let mayGain = waiting.contains(index) && !(own.owned.first?.isLive ?? false)
    own.isFinal = !claimant.isOpen && !mayChange && !mayGain
    claims[claimant.order.orderId] = own
  }
}

extension Matching {
  /// The claims of an order whose transactions nobody else names or brings: the same as matching it alone, at a fraction
  /// of the cost.
  public static func uncontested(_ claimant: Claimant, rules: Rules) -> OrderClaims {
    if claimant.list.hasRestores {
      // Which of a purchase and its restores stands for the sale is found out as among others.
      return Matching(of: [claimant], rules: rules).claims[claimant.order.orderId] ?? OrderClaims()
    }
    var own = OrderClaims()
    own.isFinal = !claimant.isOpen
    let target = claimant.named(rules: rules)
    if let target {
      let standing = claimant.standing(named: target, rules: rules)
      if own.take(named: target, standing, worth: claimant.worth) { own.owned = [target] }
    } else if claimant.order.transactionId != nil {
      own.named = claimant.openName
    } else {
      let nearest =
        claimant.nearestPlace(in: .production, rules: rules) ?? claimant.nearestPlace(in: .sandbox, rules: rules)
      if let nearest {
        // All that it brings is nearly always the one that it owns, and what is handed on as it is costs nothing.
        own.owned = claimant.proven.count == 1 ? claimant.proven : [claimant.proven[nearest]]
      }
    }
    let isAllOwned = claimant.proven.count == 1 && own.owned.first?.key == claimant.proven[0].key
    guard !isAllOwned, own.refused == nil, own.contradictory == nil, !claimant.contradictsOwnPayload else { return own }
    for further in claimant.proven where further.isLive && further.key != own.named {
      guard !own.owned.contains(where: { $0.key == further.key }) else { continue }
      if claimant.claimsUnnamed(further, rules: rules) { own.owned.append(further) }
    }
    own.putLiveFirst()
    return own
  }
}
