/// The assignment of purchases to orders. A purchase has at most one owner.
/// It depends on orders and evidence alone, not on their sequence. A stable matching (Gale and Shapley 1962): each
/// order proposes to the purchase that it prefers, and each purchase keeps the order that ranks best.
public struct Matching {
  public internal(set) var claims: [Identifier: OrderClaims] = [:]
  public internal(set) var claimed: Set<TransactionKey> = []

  let rules: Rules
  let claimants: [Claimant]
  let isAbsent: [Bool]
  /// The index of the owner in `claimants`, by purchase.
  var owners: [PurchaseKey: Int] = [:]
  /// Purchases whose owner may change with a missing answer.
  var provisional: Set<PurchaseKey> = []
  /// Indices of orders that would own a live purchase without the unanswered orders.
  var waiting: Set<Int> = []
  /// By index in `claimants`, the preferred link first.
  var links: [[Link]]
  /// Purchases that can be charged to orders inside the window.
  private var chargeable: [PurchaseKey: Chargeable] = [:]
  /// By index in `claimants`, the matched purchase.
  var matched: [Link?]
  var crowd: InterchangeableOrders?

  /// Matches orders that share no purchase with an order outside.
  ///
  /// - Parameter awaitedRefunds: purchases whose refund a missing answer may state.
  public init(of input: consuming [Claimant], awaitedRefunds: Set<PurchaseKey> = [], rules: Rules) {
    let claimants = input.sorted { ($0.order.createdAt, $0.order.orderId) < ($1.order.createdAt, $1.order.orderId) }
    self.init(deciding: claimants, rules, without: Array(repeating: false, count: claimants.count))
    recordLostClaims(awaitedRefunds)
    for index in claimants.indices { finish(index) }
  }

  init(deciding claimants: [Claimant], _ rules: Rules, without isAbsent: [Bool]) {
    self.rules = rules
    self.claimants = claimants
    self.isAbsent = isAbsent
    links = Array(repeating: [], count: claimants.count)
    matched = Array(repeating: nil, count: claimants.count)
    for claimant in claimants { claims[claimant.order.orderId] = OrderClaims() }
    if let crowd = InterchangeableOrders(claimants, isAbsent, lostClaimLimit: Matching.lostClaimLimit, rules: rules) {
      take(crowd)
      return
    }
    findLinks()
    decide(.production)
    for index in claimants.indices { if let link = matched[index] { own(link) } }
    assignLeftOver()
    decide(.sandbox)
    for index in claimants.indices {
      if let link = matched[index], link.transaction.environment == .sandbox { own(link) }
    }
  }

  /// True if some order states the transaction, is linked to it, or owns its purchase: it is no orphan.
  public func isClaimed(_ record: TransactionRecord) -> Bool {
    owners[record.purchaseKey] != nil || record.keys.contains(where: claimed.contains)
  }

  private mutating func findLinks() {
    let isAnyRejected = claimants.contains { $0.proofValidity != .notAllRejected }
    let proven = isAnyRejected ? Set(claimants.lazy.flatMap(\.proven).map(\.purchaseKey)) : []
    for (index, claimant) in claimants.enumerated() where !isAbsent[index] {
      let orderId = claimant.order.orderId
      var stated: TransactionRecord?
      if let target = claimant.named(rules: rules) {
        let eligibility = claimant.eligibility(ofStated: target, rules: rules)
        let isLinked = claims[orderId]?.take(named: target, eligibility, validity: claimant.proofValidity) ?? false
        if isLinked, claimant.isStatedIDLink(isProvenByOthers: proven.contains(target.purchaseKey)) { stated = target }
      } else if let open = claimant.pendingStatedTransaction(rules) {
        claims[orderId]?.named = open
      }
      claimed.formUnion(claimant.stated(as: claims[orderId]?.named))
      links[index] = claimant.links(index, stated: stated, rules: rules)
      for link in links[index] {
        let sale = link.transaction.purchaseKey
        claimed.insert(link.transaction.key)
        guard link.rank.isInWindow, link.isFurtherCharge else { continue }
        let person = rules.people.person(claimant.order.userId)
        var orders = chargeable[sale] ?? Chargeable(person: person)
        orders.hasToken = orders.hasToken || link.rank.token == .same
        if orders.person != person { orders.person = nil }
        chargeable[sale] = orders
      }
    }
  }

  /// The orders inside the window that a purchase can be charged to.
  private struct Chargeable {
    /// True if one of them has the purchase's account token.
    var hasToken = false
    /// nil: they are of several people.
    var person: Identifier?
  }

  /// True unless the order was created outside the window and an order of another person inside it, which ranks above,
  /// can be charged.
  func isAdmitted(_ link: Link) -> Bool {
    if link.rank.isInWindow { return true }
    guard let orders = chargeable[link.transaction.purchaseKey] else { return true }
    return !orders.hasToken && link.rank.token == .same
      || orders.person == rules.people.person(claimants[link.index].order.userId)
  }

  // MARK: - The stable matching

  func precedes(_ link: Link, _ other: Link) -> Bool {
    let users = (claimants[link.index].order.userId, claimants[other.index].order.userId)
    return link.rank.precedes(other.rank, isSamePerson: rules.people.isSame(users.0, users.1))
  }

  private mutating func decide(_ environment: AppleEnvironment) {
    match(in: environment)
    pairByTime(in: environment)
    match(in: environment, except: Set(matched.lazy.compactMap { $0?.transaction.purchaseKey }))
  }

  private var ordersWithoutPurchase: [Int] {
    claimants.indices.filter { index in
      matched[index] == nil && !links[index].isEmpty && claims[claimants[index].order.orderId]?.owned.isEmpty ?? false
    }
  }

  /// Gives each order the purchase that it prefers among the purchases that no better order claims.
  ///
  /// In each round every order without a purchase asks for its next one, so that a purchase compares any number of
  /// orders at once. Orders keep the purchases in `taken`.
  ///
  /// Goods decide among the orders of one person alone, so that an order without a chance of its own may move the purchase
  /// to another person. Choices may then go round in circles, and no matching is stable. An order that has lost a purchase
  /// twice therefore leaves it to the others. The result depends on the facts alone, and each purchase has one owner at
  /// most. It is nearly always stable where a stable matching exists.
  private mutating func match(in environment: AppleEnvironment, except taken: Set<PurchaseKey> = []) {
    func isOpen(_ link: Link) -> Bool {
      let sale = link.transaction.purchaseKey
      return link.transaction.environment == environment && owners[sale] == nil && !taken.contains(sale)
        && isAdmitted(link)
    }
    var next = [Int](repeating: 0, count: claimants.count)
    var matchByPurchase: [PurchaseKey: Link] = [:]
    // Every order that asked, because a later order of a person may change which of its orders is the best.
    var proposals: [PurchaseKey: [Link]] = [:]
    var losses: [Loss: Int] = [:]
    var asking = ordersWithoutPurchase
    while !asking.isEmpty {
      var open: [PurchaseKey] = []
      for index in asking {
        while next[index] < links[index].count, !isOpen(links[index][next[index]]) { next[index] += 1 }
        guard next[index] < links[index].count else { continue }
        let link = links[index][next[index]]
        next[index] += 1
        let sale = link.transaction.purchaseKey
        if open.last != sale { open.append(sale) }
        proposals[sale, default: []].append(link)
      }
      var displaced: [Int] = []
      while let sale = open.popLast() {
        let willing = (proposals[sale] ?? []).filter { link in
          losses[Loss(index: link.index, purchase: sale), default: 0] < 2
            && matched[link.index].map { $0.transaction.purchaseKey == sale || link.isPreferred(to: $0) } ?? true
        }
        guard !willing.isEmpty else { continue }
        let winner = best(of: willing)
        guard winner.index != matchByPurchase[sale]?.index else { continue }
        if let displacedMatch = matchByPurchase[sale] {
          matched[displacedMatch.index] = nil
          displaced.append(displacedMatch.index)
          losses[Loss(index: displacedMatch.index, purchase: sale), default: 0] += 1
        }
        // An order that was turned down before exchanges its purchase for this one.
        if let left = matched[winner.index]?.transaction.purchaseKey {
          matchByPurchase[left] = nil
          open.append(left)
        }
        (matchByPurchase[sale], matched[winner.index]) = (winner, winner)
      }
      asking = Set(asking + displaced).sorted().filter { matched[$0] == nil && next[$0] < links[$0].count }
    }
  }

  /// An order that lost a purchase to a better one.
  private struct Loss: Hashable {
    var index: Int
    var purchase: PurchaseKey
  }

  /// The best order of each person, then the best person.
  private func best(of links: [Link]) -> Link {
    var winner = links[0]
    guard links.count > 1 else { return winner }
    var ofPerson: [Identifier: Link] = [:]
    for link in links {
      let person = rules.people.person(claimants[link.index].order.userId)
      if let known = ofPerson[person], !link.rank.precedes(known.rank, isSamePerson: true) { continue }
      ofPerson[person] = link
    }
    winner = ofPerson.values.first ?? winner
    for link in ofPerson.values where link.rank.precedes(winner.rank, isSamePerson: false) { winner = link }
    return winner
  }

  // MARK: - Further purchases

  private mutating func assignLeftOver() {
    let free = links.joined().filter { owners[$0.transaction.purchaseKey] == nil && isAdmitted($0) }
    var units = claimants.indices.map { OwnedUnits(claimants[$0].order, owning: matched[$0]?.transaction) }
    for link in Matching.leftOver(free, units: &units) { own(link) }
  }

  /// The links by which orders own left-over purchases, by key: each one belongs to the nearest order that is short of
  /// units, or else to the nearest order, if it is live.
  ///
  /// - Parameters:
  ///   - links: the links to purchases without an owner.
  ///   - units: the units of the orders, by index.
  static func leftOver(_ links: some Sequence<Link>, units: inout [OwnedUnits]) -> [Link] {
    var leftOver: [PurchaseKey: [Link]] = [:]
    for link in links where link.isFurther { leftOver[link.transaction.purchaseKey, default: []].append(link) }
    var given: [Link] = []
    for links in leftOver.values.sorted(by: { Matching.isGiven($0[0].transaction, before: $1[0].transaction) }) {
      let able = links.filter { units[$0.index].canTake($0.transaction) }
      let isShort = able.filter { units[$0.index].isShort }
      guard let nearest = (isShort.isEmpty ? able : isShort).min(by: { $0.rank.isNearer(than: $1.rank) }) else {
        continue
      }
      units[nearest.index].add(nearest.transaction)
      given.append(nearest)
    }
    return given.sorted { $0.transaction.key < $1.transaction.key }
  }

  private static func isGiven(_ one: TransactionRecord, before other: TransactionRecord) -> Bool {
    one.isReversed == other.isReversed ? one.isSold(before: other) : other.isReversed
  }

  mutating func own(_ link: Link) { own(link.transaction, by: link.index) }

  mutating func own(_ transaction: TransactionRecord, by index: Int) {
    guard owners[transaction.purchaseKey] == nil else { return }
    owners[transaction.purchaseKey] = index
    claimed.insert(transaction.key)
    claims[claimants[index].order.orderId]?.owned.append(transaction)
  }

  // MARK: - Lost claims

  /// The limit of lost claims per order: a user with many orders loses most purchases in the receipts.
  static let lostClaimLimit = 8

  private mutating func recordLostClaims(_ awaitedRefunds: Set<PurchaseKey>) {
    // An order that gains nothing while all unanswered orders are absent gains nothing with them.
    let mayChange = claimants.map { $0.mayChange(rules: rules) }
    let decided =
      mayChange.contains(true) ? Matching(deciding: claimants, rules, without: mayChange) : self
    if mayChange.contains(true) {
      for (index, claimant) in claimants.enumerated() where !mayChange[index] {
        let gained = decided.claims[claimant.order.orderId]?.owned ?? []
        if gained.contains(where: { $0.isLive && owners[$0.purchaseKey] != index }) { waiting.insert(index) }
      }
    }
    let alternatives = [decided] + [refunding(lost(among: awaitedRefunds))].compactMap(\.self)
    for loss in crowd?.losses ?? [] {
      for place in loss.sales {
        if let sale = crowd?.sales[place].transaction { lose(sale, by: loss.index, alternatives, mayChange) }
      }
    }
    for own in links {
      for link in own.sorted(by: { $0.transaction.key < $1.transaction.key }) {
        if claimants[link.index].isOpen, couldOutrank(link) { provisional.insert(link.transaction.purchaseKey) }
        lose(link.transaction, by: link.index, alternatives, mayChange)
      }
    }
  }

  /// Those of the purchases that orders without a payment have lost to others.
  private func lost(among purchases: Set<PurchaseKey>) -> Set<PurchaseKey> {
    if purchases.isEmpty { return [] }
    var lost: Set<PurchaseKey> = []
    for loss in crowd?.losses ?? [] {
      for place in loss.sales { if let sale = crowd?.sales[place].transaction { lost.insert(sale.purchaseKey) } }
    }
    for (index, own) in links.enumerated()
    where claims[claimants[index].order.orderId]?.owned.first?.environment != .production {
      lost.formUnion(own.lazy.map(\.transaction.purchaseKey))
    }
    return lost.intersection(purchases)
  }

  /// The matching if Apple had refunded the purchases; nil: there are none.
  ///
  /// An order leaves a refunded purchase to others if it prefers a live one, or has another one besides.
  private func refunding(_ purchases: Set<PurchaseKey>) -> Matching? {
    if purchases.isEmpty { return nil }
    // Orders with the same transactions go on sharing one list.
    var changed: [ObjectIdentifier: VerifiedTransactions] = [:]
    func changing(_ list: VerifiedTransactions) -> VerifiedTransactions {
      if let known = changed[ObjectIdentifier(list)] { return known }
      var result = list
      if list.records.contains(where: { purchases.contains($0.purchaseKey) }) {
        result = VerifiedTransactions(
          list.records.map { record in
            guard purchases.contains(record.purchaseKey) else { return record }
            var refunded = record
            refunded.revocation = Revocation(date: rules.asOf)
            return refunded
          })
      }
      changed[ObjectIdentifier(list)] = result
      return result
    }
    let refunded = claimants.map { claimant in
      Claimant(
        order: claimant.order, proven: changing(claimant.list), known: changing(claimant.knownList),
        signedIds: claimant.signedIds, proofIds: claimant.proofIds, proofValidity: claimant.proofValidity,
        isOpen: claimant.isOpen, isStatedIDUnknown: claimant.isStatedIDUnknown, hasGoods: claimant.hasGoods)
    }
    return Matching(deciding: refunded, rules, without: isAbsent)
  }

  private func couldOutrank(_ link: Link) -> Bool {
    guard let owner = owners[link.transaction.purchaseKey], owner != link.index,
      let own = links[owner].first(where: { $0.transaction.purchaseKey == link.transaction.purchaseKey })
    else { return false }
    var answered = link
    answered.rank.isProof = true
    return precedes(answered, own)
  }

  private mutating func lose(
    _ transaction: TransactionRecord, by index: Int, _ alternatives: [Matching], _ mayChange: [Bool]
  ) {
    guard let owner = owners[transaction.purchaseKey], owner != index else { return }
    // The proof may show more than the ID once it can be read.
    if claimants[index].proofValidity == .allUnreadableIDKnown { return }
    let orderId = claimants[index].order.orderId
    guard var lost = claims[orderId]?.lost, claims[orderId]?.owned.first?.environment != .production else { return }
    let order = claimants[owner].order
    // An order whose claims may change is absent from the decided orders, so that it gains nothing among them.
    let couldGain =
      mayChange[index] && mayChange[owner]
      || alternatives.contains { alternative in
        alternative.claims[orderId]?.owned.contains { $0.environment == transaction.environment } ?? false
      }
    let claim = LostClaim(
      transaction: transaction, ownerOrderId: order.orderId, ownerUserId: order.userId,
      isFinal: !claimants[index].isOpen && !couldGain)
    // A forged proof is a finding by itself, unless ownership is undecided.
    if claim.isFinal, !claimants[index].proofValidity.reportsObstacles { return }
    // An undecided claim is always kept because it decides about all lost claims.
    if lost.count < Matching.lostClaimLimit {
      claims[orderId]?.lost.append(claim)
    } else if !claim.isFinal, lost.allSatisfy(\.isFinal) {
      lost[lost.count - 1] = claim
      claims[orderId]?.lost = lost
    }
  }

  private mutating func finish(_ index: Int) {
    let claimant = claimants[index]
    guard var own = claims[claimant.order.orderId] else { return }
    own.moveLivePaymentsFirst()
    own.lost.sort { $0.transaction.key < $1.transaction.key }
    let mayChange = own.owned.first.map { provisional.contains($0.purchaseKey) } ?? false
    let mayGain = waiting.contains(index) && !(own.owned.first?.isLive ?? false)
    own.isFinal = !claimant.isOpen && !mayChange && !mayGain
    own.statesAnotherThanProven = claimant.statesAnotherID(than: own.owned)
    claims[claimant.order.orderId] = own
  }

  /// The claims of an order that shares no purchase: the result of matching it alone, at less cost.
  public static func uncontested(_ claimant: Claimant, rules: Rules) -> OrderClaims {
    alone(claimant, rules: rules) { _ in true }.claims
  }

  /// The claims of an order to the purchases that it may own, and all its links, the preferred one first.
  static func alone(
    _ claimant: Claimant, rules: Rules, mayOwn: (Link) -> Bool
  ) -> (claims: OrderClaims, links: [Link]) {
    var own = OrderClaims()
    own.isFinal = !claimant.isOpen
    var stated: TransactionRecord?
    if let target = claimant.named(rules: rules) {
      let eligibility = claimant.eligibility(ofStated: target, rules: rules)
      if own.take(named: target, eligibility, validity: claimant.proofValidity) { stated = target }
    } else {
      own.named = claimant.pendingStatedTransaction(rules)
    }
    let links = claimant.links(stated: stated, rules: rules)
    let owned = links.filter(mayOwn)
    if let first = owned.first(where: { $0.transaction.environment == .production })?.transaction {
      own.owned.append(first)
      var units = [OwnedUnits(claimant.order, owning: first)]
      let further = owned.filter { $0.transaction.purchaseKey != first.purchaseKey }
      own.owned += Matching.leftOver(further, units: &units).map(\.transaction)
    }
    if own.owned.isEmpty, let sandbox = owned.first(where: { $0.transaction.environment == .sandbox }) {
      own.owned = [sandbox.transaction]
    }
    own.moveLivePaymentsFirst()
    own.statesAnotherThanProven = claimant.statesAnotherID(than: own.owned)
    return (own, links)
  }
}
