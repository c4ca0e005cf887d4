import AuditStore
import Postgres
import Reconciliation
import SalesStore
import Streams

/// An order and all orders that can affect its claims: the facts of the full audit for a few orders.
struct RelatedOrders {
  /// By order; for repeated IDs the row that counts.
  private(set) var groups: [Identifier: OrderGroup] = [:]
  private(set) var repeatedRows: [Identifier: Int] = [:]
  private(set) var records: [Identifier: [TransactionRecord]] = [:]
  /// Fingerprints of purchases that several of the transactions are of.
  private(set) var sharedPurchases: Set<UInt64> = []
  /// By transaction id.
  private(set) var references: [Identifier: [TransactionReference]] = [:]
  private(set) var open: PeopleWithOpenReceipts
  /// Other orders of these users, and orders that their receipts were sent for.
  private(set) var referencedOrders: Set<Identifier> = []
  private var linkableOrders: [UnprovenLink: [LinkableOrder]] = [:]
  private(set) var ordersWithGoods: Set<Identifier> = []
  private(set) var receiptIds: Set<Identifier> = []
  /// False if the limit ended the walk early.
  private(set) var isWhole = true

  /// Follows references from orders and receipts to transactions and back, until no new orders appear. Claims outside
  /// cannot affect the matching inside. `limit` bounds the number of orders, and of receipts.
  init(
    around orderIds: Set<Identifier>, receipts receiptIds: Set<Identifier> = [], atMost limit: Int = .max,
    shop: borrowing BlockingConnection, own: borrowing BlockingConnection, _ sales: SalesRows, rules: Rules
  ) throws {
    open = PeopleWithOpenReceipts(rules)
    var newOrders = orderIds
    var knownReceipts: Set<Identifier> = []
    var knownIds: Set<Identifier> = []
    var newIds: Set<Identifier> = []
    var further: [Proof] = []
    if !receiptIds.isEmpty {
      further = try Proof.proofs(
        "r.receipt_id::text COLLATE \"C\" IN (SELECT id FROM ids)", receiptIds, shop: shop, own: own, sales,
        rules: rules)
      for proof in further where proof.receipt.defect == nil {
        if let orderId = proof.receipt.orderId { newOrders.insert(orderId) }
        for key in proof.contained where knownIds.insert(key.transactionId).inserted {
          newIds.insert(key.transactionId)
          references[key.transactionId] = []
        }
      }
      knownReceipts = receiptIds
    }
    while !newOrders.isEmpty || !newIds.isEmpty {
      let groups = try OrderGroup.groups(of: newOrders, shop: shop, own: own, sales, rules: rules, &repeatedRows)
      for id in try Self.linked(to: groups, own: own) where knownIds.insert(id).inserted {
        newIds.insert(id)
        references[id] = []
      }
      for group in groups {
        takeLinks(of: group)
        self.groups[group.row.orderId] = group
        // Of a repeated receipt ID, the row that counts may belong to another order.
        for proof in group.proofs where proof.receipt.defect == nil { knownReceipts.insert(proof.receipt.receiptId) }
        for reference in group.references {
          if knownIds.insert(reference.transactionId).inserted { newIds.insert(reference.transactionId) }
          references[reference.transactionId, default: []].append(reference)
        }
      }
      newOrders = []
      if newIds.isEmpty { break }
      for id in try Self.ofSamePurchases(newIds, own: own) where knownIds.insert(id).inserted {
        newIds.insert(id)
        references[id] = []
      }
      var transactions = try own.copyOut(
        try TransactionTable.byId(hiding: sales.isHidden, where: "t.transaction_id IN (SELECT id FROM ids)"),
        ids: newIds)
      while try transactions.advance() {
        let record = try TransactionTable.record(transactions, hiding: sales.hides)
        records[record.transactionId, default: []].append(record)
      }
      _ = consume transactions
      var (candidates, newReceipts) = try Self.mentioning(newIds, shop: shop, own: own, sales)
      candidates.formUnion(
        try Self.orders(linkedTo: newIds.flatMap { records[$0] ?? [] }, shop: shop, sales, rules))
      newIds = []
      newReceipts.subtract(knownReceipts)
      candidates.subtract(self.groups.keys)
      guard self.groups.count + candidates.count <= limit, knownReceipts.count + newReceipts.count <= limit else {
        isWhole = false
        return
      }
      if !newReceipts.isEmpty {
        let proofs = try Proof.proofs(
          "r.receipt_id::text COLLATE \"C\" IN (SELECT id FROM ids)", newReceipts, shop: shop, own: own, sales,
          rules: rules)
        candidates.formUnion(proofs.compactMap(\.receipt.orderId))
        further += proofs
        knownReceipts.formUnion(newReceipts)
      }
      newOrders = candidates.filter { self.groups[$0] == nil }
    }
    foldPurchases(hiding: sales.hides)
    // Only now it is known which orders are there.
    for proof in further where proof.receipt.defect == nil && proof.receipt.orderId.flatMap({ groups[$0] }) == nil {
      for reference in proof.references(of: nil) { references[reference.transactionId]?.append(reference) }
    }
    note(groups.values.flatMap(\.proofs) + further)
    if groups.count > 1 {
      var deliveries = try shop.copyOut(
        try sales.deliveries(where: "d.order_id::text COLLATE \"C\" IN (SELECT id FROM ids)"), ids: groups.keys)
      while try deliveries.advance() {
        let delivery = try sales.delivery(deliveries, asOf: rules.asOf)
        if let orderId = delivery.orderId, delivery.defect == nil, delivery.stands, (delivery.quantity ?? 0) > 0 {
          ordersWithGoods.insert(orderId)
        }
      }
    }
    try takeOpenReceipts(atMost: limit, shop: shop, own: own, sales, rules: rules)
  }

  /// Gives each transaction what is known of its purchase.
  private mutating func foldPurchases(hiding isHidden: (Instant) -> Bool = { _ in false }) {
    let known = records.values.flatMap(\.self)
    let purchases = Dictionary(grouping: known) { $0.purchaseKey }
    sharedPurchases = Set(purchases.lazy.filter { $1.count > 1 }.map(\.key.fingerprint))
    let folded = TransactionRecord.foldingPurchases(known, hiding: isHidden)
    sharedPurchases.formUnion(folded.lazy.filter(\.isRefundedRenewal).compactMap(\.subscriptionKey?.fingerprint))
    records = Dictionary(grouping: folded) { $0.transactionId }
  }

  /// Notes which receipts were read, and which orders they were sent for.
  private mutating func note(_ proofs: [Proof]) {
    receiptIds.formUnion(proofs.lazy.map(\.receipt.receiptId).filter { !$0.isEmpty })
    referencedOrders.formUnion(proofs.lazy.compactMap(\.receipt.orderId))
  }

  /// Notes the links that could connect orders to transactions without a reference.
  private mutating func takeLinks(of group: OrderGroup) {
    if group.isRepeated { return }
    LinkableOrder.forEach(
      of: group.row,
      hasPurchases: !group.proofs.allSatisfy(\.contained.isEmpty)
    ) { link, order in
      linkableOrders[link, default: []].append(order)
    }
  }

  /// IDs of transactions that a token or a subscription could link orders to.
  private static func linked(
    to groups: [OrderGroup], own: borrowing BlockingConnection
  ) throws -> Set<Identifier> {
    var (tokens, originals): (Set<Identifier>, Set<Identifier>) = ([], [])
    for group in groups where !group.isRepeated {
      LinkableOrder.forEach(
        of: group.row,
        hasPurchases: !group.proofs.allSatisfy(\.contained.isEmpty)
      ) { link, _ in
        switch link {
        case .token(let token): tokens.insert(Identifier(token))
        case .subscription(let original): originals.insert(original)
        }
      }
    }
    var ids: Set<Identifier> = []
    func take(_ condition: String, _ keys: Set<Identifier>) throws {
      if keys.isEmpty { return }
      var rows = try own.copyOut(
        "SELECT t.transaction_id FROM night_audit.transactions t WHERE \(condition) IN (SELECT id FROM ids)", ids: keys)
      while try rows.advance() { ids.insert(try rows.id(0)) }
    }
    try take("t.app_account_token IS NOT NULL AND replace(lower(t.app_account_token), '-', '') COLLATE \"C\"", tokens)
    try take("t.expires_at IS NOT NULL AND t.original_transaction_id", originals)
    try take(
      "t.expires_at IS NOT NULL AND coalesce(t.price_milliunits, 0) = 0 AND t.web_order_line_item_id", originals)
    return ids
  }

  /// Orders that a token or a subscription could link to some transactions.
  private static func orders(
    linkedTo records: [TransactionRecord], shop: borrowing BlockingConnection, _ sales: SalesRows, _ rules: Rules
  ) throws -> Set<Identifier> {
    var (tokens, originals): (Set<String>, Set<Identifier>) = ([], [])
    for record in records {
      if case .stated(.some(let token)) = record.appAccountToken { tokens.insert(AccountToken.spelling(token)) }
      if record.expiresDate != nil, let original = record.originalTransactionId { originals.insert(original) }
      if let bundle = record.bundleTransactionId { originals.insert(bundle) }
    }
    let ids = try originals.isEmpty ? [] : stating(originals, shop: shop, sales)
    if tokens.isEmpty { return ids }
    let orders = try OrderRow.holding(tokens, shop: shop, sales, rules: rules)
    return ids.union(
      orders.filter { order in
        records.contains { LinkableOrder(order, hasPurchases: false).isLinked(to: $0, rules: rules) }
      }
      .map(\.orderId))
  }

  /// Transactions of the same purchases as some are, themselves included, and the periods of their subscriptions.
  private static func ofSamePurchases(
    _ transactionIds: Set<Identifier>, own: borrowing BlockingConnection
  ) throws -> Set<Identifier> {
    var ids = transactionIds
    let isRestore = TransactionTable.restoresAnotherID("r")
    var restored = try own.copyOut(
      """
      SELECT r.original_transaction_id FROM night_audit.transactions r
      WHERE r.transaction_id IN (SELECT id FROM ids) AND \(isRestore)
      """, ids: transactionIds)
    while try restored.advance() { ids.insert(try restored.id(0)) }
    var restores = try own.copyOut(
      """
      SELECT r.transaction_id FROM night_audit.transactions r
      WHERE r.original_transaction_id IN (SELECT id FROM ids) AND \(isRestore)
      """, ids: ids)
    while try restores.advance() { ids.insert(try restores.id(0)) }
    _ = consume restores
    var periods = try own.copyOut(
      """
      SELECT s.transaction_id FROM night_audit.transactions r
      JOIN night_audit.transactions s ON s.original_transaction_id = r.original_transaction_id
        AND s.environment = r.environment AND s.expires_at IS NOT NULL
      WHERE r.transaction_id IN (SELECT id FROM ids) AND r.expires_at IS NOT NULL
      """, ids: transactionIds)
    while try periods.advance() { ids.insert(try periods.id(0)) }
    return ids
  }

  /// Reads all other receipts of these orders' users, with or without an order.
  private mutating func takeOpenReceipts(
    atMost limit: Int, shop: borrowing BlockingConnection, own: borrowing BlockingConnection, _ sales: SalesRows,
    rules: Rules
  ) throws {
    let users = groups.values.reduce(into: Set<Identifier>()) { $0.formUnion(rules.people.ids(of: $1.row.userId)) }
    let placed = try OrderRow.ids(
      where: "o.user_id::text COLLATE \"C\" IN (SELECT id FROM ids)", users, shop: shop, sales)
    guard placed.count <= limit else {
      isWhole = false
      return
    }
    referencedOrders.formUnion(placed)
    let orders = try OrderRow.counting(placed, shop: shop, sales, rules: rules)
    var rows = Dictionary(uniqueKeysWithValues: orders.map { ($0.orderId, $0) })
    for (column, ids) in [("user_id", users), ("order_id", Set(rows.keys))] {
      let proofs = try Proof.proofs(
        "r.\(column)::text COLLATE \"C\" IN (SELECT id FROM ids)", ids, shop: shop, own: own, sales, rules: rules)
      // Orders of other users that these users sent receipts for.
      let others = Set(proofs.compactMap(\.receipt.orderId)).subtracting(rows.keys)
      for order in try OrderRow.counting(others, shop: shop, sales, rules: rules) { rows[order.orderId] = order }
      for proof in proofs {
        open.take(proof.receipt, sentFor: proof.receipt.orderId.flatMap { rows[$0] })
      }
      note(proofs)
    }
  }

  /// The orders that state one of these transactions or have a proof of one.
  static func orders(
    behind transactionIds: Set<Identifier>, shop: borrowing BlockingConnection, own: borrowing BlockingConnection,
    _ sales: SalesRows
  ) throws -> Set<Identifier> {
    var (orders, receiptIds) = try mentioning(transactionIds, shop: shop, own: own, sales)
    var senders = try shop.copyOut(
      """
      SELECT r.order_id::text FROM \(sales.schema).receipts r
      WHERE r.receipt_id::text COLLATE "C" IN (SELECT id FROM ids) AND r.order_id IS NOT NULL
      """, ids: receiptIds)
    while try senders.advance() { orders.insert(try senders.id(0)) }
    return orders
  }

  /// Orders that state one of these transactions or have a look-up of one. Receipts that contain one.
  private static func mentioning(
    _ transactionIds: Set<Identifier>, shop: borrowing BlockingConnection, own: borrowing BlockingConnection,
    _ sales: SalesRows
  ) throws -> (orders: Set<Identifier>, receipts: Set<Identifier>) {
    var (orders, receipts) = (try stating(transactionIds, shop: shop, sales), Set<Identifier>())
    var sourceReceipts = try own.copyOut(
      """
      SELECT l.subject_id, w.order_id FROM night_audit.receipt_transactions l
      LEFT JOIN night_audit.lookups w ON l.subject_kind = 'lookup' AND w.subject_id = l.subject_id
      WHERE l.transaction_id IN (SELECT id FROM ids)
      """, ids: transactionIds)
    while try sourceReceipts.advance() {
      if let waiting = try sourceReceipts.optionalId(1) {
        orders.insert(waiting)
      } else {
        receipts.insert(try sourceReceipts.id(0))
      }
    }
    return (orders, receipts)
  }

  /// Orders that state one of these transactions.
  private static func stating(
    _ transactionIds: Set<Identifier>, shop: borrowing BlockingConnection, _ sales: SalesRows
  ) throws -> Set<Identifier> {
    try OrderRow.ids(
      where: "\(SalesRows.namedTransaction) IN (SELECT id FROM ids)", transactionIds, shop: shop, sales)
  }

  init(groups: [OrderGroup], records: [TransactionRecord], withGoods: Set<Identifier> = [], rules: Rules) {
    open = PeopleWithOpenReceipts(rules)
    ordersWithGoods = withGoods
    for group in groups {
      open.take(group)
      takeLinks(of: group)
      self.groups[group.row.orderId] = group
      for reference in group.references { references[reference.transactionId, default: []].append(reference) }
    }
    for record in records { self.records[record.transactionId, default: []].append(record) }
    foldPurchases()
  }

  // MARK: - Matching

  struct Matching {
    var transactions = OrderTransactions()
    var matched: Matched?
    var claimants: [TransactionKey: [Identifier]] = [:]
    var owners: [TransactionKey: Identifier] = [:]
    var contested: Set<TransactionKey> = []
    /// By transaction that no order claims, states or owns, its presumed user.
    var unclaimed: [TransactionKey: Identifier?] = [:]
  }

  func matched(for orderId: Identifier, rules: Rules) -> Matching {
    var result = Matching()
    var claimable: [Identifier: [TransactionRecord]] = [:]
    let people = groups.reduce(into: (withGoods: Set<Identifier>(), without: Set<Identifier>())) { people, group in
      let person = rules.people.person(group.value.row.userId)
      if ordersWithGoods.contains(group.key) { people.withGoods.insert(person) } else { people.without.insert(person) }
    }
    var contest = ClaimConflict(rules: rules, mixedPeople: people.withGoods.intersection(people.without))
    var isContestant: Set<Identifier> = []
    let purchases = Dictionary(grouping: records.values.joined()) { $0.purchaseKey }
    var found: [(transaction: ContestedTransaction, affectedOrders: [Identifier])] = []
    var claimants: [PurchaseKey: Set<Identifier>] = [:]
    let linkable = linkableOrders.mapValues { LinkableOrders($0) }
    for record in records.values.joined() {
      let sharesPurchase = (purchases[record.purchaseKey]?.count ?? 0) > 1
      let candidates = Candidates(
        for: record, references: references[record.transactionId] ?? [], rules: rules)
      var contested = ContestedTransaction(record, candidates, sharesPurchase: sharesPurchase)
      for link in candidates.awaitedLinks(record, withoutReceipt: .all) {
        linkable[link]?.link(&contested, by: link, rules: rules)
      }
      found.append((contested, candidates.affectedOrders))
    }
    let withToken = Set(found.lazy.filter { $0.transaction.isWithToken }.map { $0.transaction.record.purchaseKey })
    for place in found.indices {
      let purchase = found[place].transaction.record.purchaseKey
      found[place].transaction.takeAccountOrders(unless: withToken.contains(purchase))
      claimants[purchase, default: []].formUnion(found[place].transaction.claimants)
    }
    for (candidates, affectedOrders) in found {
      let (record, sharesPurchase) = (candidates.record, candidates.sharesPurchase)
      result.claimants[record.key] = candidates.claimants
      let ofPurchase = claimants[record.purchaseKey] ?? []
      if ofPurchase.count > 1, sharesPurchase || candidates.claimants.count > 1 {
        contest.add(candidates)
        isContestant.formUnion(candidates.claimants)
        result.contested.insert(record.key)
      } else if let only = candidates.claimants.first {
        claimable[only, default: []].append(record)
        if only == orderId {
          result.transactions.take(
            .transaction(record, isClaimable: true, newestProof: candidates.newestProof))
        }
      } else if !candidates.awaitsDetails, ofPurchase.isEmpty {
        result.unclaimed[record.key] = .some(candidates.userId)
      }
      if affectedOrders.contains(orderId) {
        result.transactions.take(.transaction(record, isClaimable: false, newestProof: candidates.newestProof))
      }
    }
    var decided: OrderClaims?
    var periods: [OwnedPeriod] = []
    func note(_ owner: Identifier, _ claims: OrderClaims) {
      for record in claims.owned { result.owners[record.key] = owner }
      guard case .valid(let order) = groups[owner]?.row else { return }
      periods += claims.owned.compactMap { OwnedPeriod($0, ownedBy: order, isFinal: claims.isFinal) }
    }
    for (orderId, records) in claimable where !isContestant.contains(orderId) {
      guard records.contains(where: { $0.productionSubscription != nil }), let group = groups[orderId],
        case .valid(let order) = group.row
      else { continue }
      let facts = OrderFacts(order, group, claimable: records, others: [])
      note(orderId, Reconciliation.Matching.uncontested(facts.claimant(rules), rules: rules))
    }
    for contestedOrder in isContestant {
      guard let group = groups[contestedOrder] else { continue }
      let hasGoods = ordersWithGoods.contains(contestedOrder)
      contest.add(
        ContestedOrder(group: group, claimable: claimable[contestedOrder] ?? [], hasGoods: hasGoods)
      ) { owner, claims in
        note(owner, claims)
        if owner == orderId { decided = claims }
      }
    }
    let outcome = contest.matched()
    outcome.forEach(note)
    for transaction in outcome.unclaimed where !transaction.awaitsDetails {
      result.unclaimed[transaction.record.key] = .some(transaction.userId)
    }
    for (subscription, periods) in Dictionary(grouping: periods, by: \.subscription) {
      guard let neighbors = SubscriptionOwners(periods, people: rules.people).neighbors[orderId] else { continue }
      result.transactions.take(.neighbors(subscription: subscription, neighbors))
    }
    if let claims = decided ?? outcome.claims(of: orderId) {
      result.matched = outcome.matched(orderId, claims)
    }
    return result
  }

  /// The claims to a transaction, and how its owner was found.
  func reasoning(
    about record: TransactionRecord, _ matching: Matching, ownedBy owner: Identifier?, _ rules: Rules
  ) -> ClaimReasoning {
    let ids = Set((references[record.transactionId] ?? []).compactMap { $0.order?.orderId })
      .union(matching.claimants[record.key] ?? [])
    let claimants = ids.compactMap { id -> Claimant? in
      guard let group = groups[id], case .valid(let order) = group.row else { return nil }
      let byToken = matching.claimants.lazy.filter { $0.value.contains(id) }.map(\.key.transactionId)
      let mentioned = Set(group.references.map(\.transactionId)).union(byToken).flatMap { records[$0] ?? [] }
      var facts = OrderFacts(
        order, group, claimable: mentioned.filter { !matching.contested.contains($0.key) },
        others: mentioned.filter { matching.contested.contains($0.key) })
      facts.hasGoods = ordersWithGoods.contains(id)
      return facts.claimant(rules)
    }
    let owner = owner ?? matching.owners[record.key] ?? soleOwner(of: record, matching, claimants, rules)
    return ClaimReasoning(of: record, among: claimants, owner: owner, rules: rules)
  }

  private func soleOwner(
    of record: TransactionRecord, _ matching: Matching, _ claimants: [Claimant], _ rules: Rules
  ) -> Identifier? {
    guard !matching.contested.contains(record.key), let only = matching.claimants[record.key], only.count == 1,
      let claimant = claimants.first(where: { $0.order.orderId == only[0] })
    else { return nil }
    return Reconciliation.Matching.uncontested(claimant, rules: rules).owned.contains { $0.key == record.key }
      ? only[0] : nil
  }
}
