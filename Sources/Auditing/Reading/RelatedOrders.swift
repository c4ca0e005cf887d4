import AuditStore
import Postgres
import Reconciliation
import SalesStore
import Streams

/// Some orders and all orders that can affect their claims: the facts of the full audit for a few orders.
struct RelatedOrders {
  /// By order; for repeated IDs the row that counts.
  private(set) var groups: [Identifier: OrderGroup] = [:]
  private(set) var repeatedRows: [Identifier: Int] = [:]
  /// Transactions by ID, each with what is known of its purchase.
  private(set) var records: [Identifier: [TransactionRecord]] = [:]
  /// The transactions before folding, by purchase.
  private(set) var purchases: [PurchaseKey: [TransactionRecord]] = [:]
  /// Returns whether a date is later than the as-of.
  let isHidden: (Instant) -> Bool
  /// Fingerprints of purchases that several of the transactions are of.
  private(set) var sharedPurchases: Set<UInt64> = []
  /// By the ID of each transaction that was followed.
  private(set) var references: [Identifier: [TransactionReference]] = [:]
  private(set) var open: PeopleWithOpenReceipts
  /// Other orders of these users, and orders that their receipts were sent for.
  private(set) var referencedOrders: Set<Identifier> = []
  private(set) var linkableOrders: [UnprovenLink: [LinkableOrder]] = [:]
  private(set) var ordersWithGoods: Set<Identifier> = []
  private(set) var receiptIds: Set<Identifier> = []
  /// False if the limit ended the walk early.
  private(set) var isWhole = true

  /// Follows references from orders and receipts to transactions and back, until no new orders appear. Claims outside
  /// cannot affect the matching inside. `limit` bounds the number of orders, and of receipts.
  init(
    around orderIds: Set<Identifier>, receipts receiptIds: Set<Identifier> = [], atMost limit: Int = .max,
    _ reader: OrderReader
  ) throws {
    open = PeopleWithOpenReceipts(reader.rules)
    isHidden = reader.sales.hides
    var further = try reader.proofs(by: "receipt_id", receiptIds)
    let sound = further.filter { $0.receipt.defect == nil }
    var newOrders = orderIds.union(sound.compactMap(\.receipt.orderId))
    var newIds = addUnknown(sound.flatMap(\.contained).map(\.transactionId))
    var knownReceipts = receiptIds
    repeat {
      var links: Set<UnprovenLink> = []
      for (group, repeatedRows) in try reader.groups(of: newOrders) {
        self.repeatedRows[group.row.orderId] = repeatedRows
        newIds.formUnion(addUnknown(group.references.map(\.transactionId)))
        links.formUnion(take(group))
        // Of a repeated receipt ID, the row that counts may belong to another order.
        knownReceipts.formUnion(group.soundProofs.map(\.receipt.receiptId))
      }
      newIds.formUnion(addUnknown(try reader.transactionIds(linkedBy: links)))
      if newIds.isEmpty { break }
      newIds.formUnion(addUnknown(try reader.transactionIds(ofSamePurchasesAs: newIds)))
      let transactions = try reader.transactions(newIds)
      for record in transactions { records[record.transactionId, default: []].append(record) }
      var (candidates, newReceipts) = try reader.mentions(of: newIds)
      newIds = []
      candidates.formUnion(try reader.orderIds(linkedTo: transactions))
      candidates.subtract(groups.keys)
      newReceipts.subtract(knownReceipts)
      guard groups.count + candidates.count <= limit, knownReceipts.count + newReceipts.count <= limit else {
        isWhole = false
        return
      }
      let proofs = try reader.proofs(by: "receipt_id", newReceipts)
      further += proofs
      knownReceipts.formUnion(newReceipts)
      newOrders = candidates.union(proofs.compactMap(\.receipt.orderId)).filter { groups[$0] == nil }
    } while !newOrders.isEmpty
    foldPurchases()
    // Only now it is known which orders are there.
    for proof in further where proof.receipt.defect == nil && proof.receipt.orderId.flatMap({ groups[$0] }) == nil {
      for reference in proof.references(of: nil) { references[reference.transactionId]?.append(reference) }
    }
    note(groups.values.flatMap(\.proofs) + further)
    if groups.count > 1 { ordersWithGoods = try reader.ordersWithGoods(among: Set(groups.keys)) }
    try takeOpenReceipts(atMost: limit, reader)
  }

  /// The facts of orders that are related to no others.
  init(groups: [OrderGroup], records: [TransactionRecord], rules: Rules) {
    open = PeopleWithOpenReceipts(rules)
    isHidden = { _ in false }
    for group in groups {
      open.take(group)
      take(group)
    }
    for record in records { self.records[record.transactionId, default: []].append(record) }
    foldPurchases()
  }

  /// Adds the transaction IDs that are unknown, and returns them.
  private mutating func addUnknown(_ ids: some Sequence<Identifier>) -> Set<Identifier> {
    let unknown = Set(ids.filter { references[$0] == nil })
    for id in unknown { references[id] = [] }
    return unknown
  }

  /// Adds an order, and returns the links that could connect it to transactions without a reference.
  @discardableResult
  private mutating func take(_ group: OrderGroup) -> [UnprovenLink] {
    groups[group.row.orderId] = group
    for reference in group.references { references[reference.transactionId, default: []].append(reference) }
    var links: [UnprovenLink] = []
    LinkableOrder.forEach(of: group) { link, order in
      linkableOrders[link, default: []].append(order)
      links.append(link)
    }
    return links
  }

  /// Gives each transaction what is known of its purchase.
  private mutating func foldPurchases() {
    purchases = Dictionary(grouping: records.values.joined()) { $0.purchaseKey }
    sharedPurchases = Set(purchases.lazy.filter { $1.count > 1 }.map(\.key.fingerprint))
    let folded = purchases.values.flatMap { TransactionRecord.foldingPurchases($0, hiding: isHidden) }
    sharedPurchases.formUnion(folded.lazy.filter(\.isRefundedRenewal).compactMap(\.subscriptionKey?.fingerprint))
    records = Dictionary(grouping: folded) { $0.transactionId }
  }

  /// Notes which receipts were read, and which orders they were sent for.
  private mutating func note(_ proofs: [Proof]) {
    receiptIds.formUnion(proofs.lazy.map(\.receipt.receiptId).filter { !$0.isEmpty })
    referencedOrders.formUnion(proofs.lazy.compactMap(\.receipt.orderId))
  }

  /// Reads all other receipts of these orders' users, with or without an order.
  private mutating func takeOpenReceipts(atMost limit: Int, _ reader: OrderReader) throws {
    let people = reader.rules.people
    let users = groups.values.reduce(into: Set<Identifier>()) { $0.formUnion(people.ids(of: $1.row.userId)) }
    let placed = try reader.orderIds(ofUsers: users)
    guard placed.count <= limit else {
      isWhole = false
      return
    }
    referencedOrders.formUnion(placed)
    var rows = try reader.orders(placed)
    for (column, ids) in [("user_id", users), ("order_id", Set(rows.keys))] {
      let proofs = try reader.proofs(by: column, ids)
      // Orders of other users that these users sent receipts for.
      let others = Set(proofs.compactMap(\.receipt.orderId)).subtracting(rows.keys)
      rows.merge(try reader.orders(others)) { known, _ in known }
      for proof in proofs {
        open.take(proof.receipt, sentFor: proof.receipt.orderId.flatMap { rows[$0] })
      }
      note(proofs)
    }
  }
}
