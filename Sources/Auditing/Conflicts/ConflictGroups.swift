import Reconciliation
import Streams

/// Groups orders that must be matched together. Only IDs of competing orders stay in memory. Used by one thread at a
/// time; not `Sendable`.
final class ConflictGroups {
  private var places: [Identifier: Int32] = [:]
  /// By place, another order of the same contest. A root is its own parent (disjoint sets, Tarjan 1975).
  private var parents: [Int32] = []
  /// By purchase that has several IDs, an order that could own it by one of them.
  private var purchases: [PurchaseKey: Int32] = [:]
  private let transactions: SpillFile
  private let directory: String
  private var sharing: SpillSorter
  /// Claimants of the previous transaction. Purchases listed in one user's receipts have much the same claimants.
  private var last: [Identifier] = []
  private var record = RecordBytes()
  private var purchaseKey = RecordBytes()
  private(set) var isEmpty = true
  /// Orders of one account token and product, in the order of time.
  private(set) var timelines: [[Identifier]] = []
  /// By timeline and place, a later place that is in one group with all places up to it, or the place itself.
  private var joined: [[Int]] = []

  init(directory: String) throws {
    transactions = try SpillFile(directory: directory)
    self.directory = directory
    sharing = SpillSorter(directory: directory)
  }

  func add(_ contested: ContestedTransaction) throws {
    if !contested.sharesPurchase { return try contest(contested) }
    record.clear()
    SharedPurchase.write(contested, to: &record)
    try addShared(contested.record.purchaseKey)
  }

  /// Adds a transaction of a purchase with several transactions.
  /// - Parameter transaction: an encoded `OrderTransaction` that this order alone refers to, and that has its token.
  func add(
    _ transaction: UnsafeRawBufferPointer, of purchase: PurchaseKey, for order: BorrowedTransactionReference.OrderSide
  ) throws {
    record.clear()
    SharedPurchase.write(transaction, of: order, to: &record)
    try addShared(purchase)
  }

  private func addShared(_ purchase: PurchaseKey) throws {
    purchaseKey.clear()
    purchase.write(to: &purchaseKey)
    try sharing.add(key: purchaseKey.content, content: record.content)
  }

  /// Separates purchases that one order alone could own from contested ones. Most shared purchases are of the first kind.
  ///
  /// - Parameters:
  ///   - isHidden: whether a date is later than the as-of.
  ///   - plain: gets the encoded `OrderTransaction` of each transaction of a purchase that only one order refers to.
  ///   - uncontested: gets each transaction of another purchase that at most one order could own, with that order.
  func decide(
    hiding isHidden: (Instant) -> Bool, plain: (_ only: BorrowedText, borrowing RecordBytes) throws -> Void,
    uncontested: (ContestedTransaction, _ only: Identifier?) throws -> Void
  ) throws {
    let shared = sharing
    sharing = SpillSorter(directory: directory)
    var purchase = SharedPurchase()
    while let next = try shared.next() {
      if !purchase.isOf(next.key) {
        try decide(&purchase, hiding: isHidden, plain: plain, uncontested: uncontested)
        purchase.start(next.key)
      }
      purchase.add(next.content)
    }
    try decide(&purchase, hiding: isHidden, plain: plain, uncontested: uncontested)
  }

  private func decide(
    _ purchase: inout SharedPurchase, hiding isHidden: (Instant) -> Bool,
    plain: (_ only: BorrowedText, borrowing RecordBytes) throws -> Void,
    uncontested: (ContestedTransaction, _ only: Identifier?) throws -> Void
  ) throws {
    #if DEBUG
      let decoded = try purchase.transactions().asPurchases(hiding: isHidden).joined()
        .map { OrderTransaction.transaction($0.record, isClaimable: true, newestProof: $0.newestProof) }
      var rest = decoded.map { RecordBytes.bytes($0.write(to:)) }[...]
    #endif
    let isPlain = try purchase.passPlain { only, transaction in
      #if DEBUG
        assert(rest.popFirst() == transaction.bytes, "it is no plain purchase")
      #endif
      try plain(only, transaction)
    }
    #if DEBUG
      assert(!isPlain || rest.isEmpty, "a plain purchase lacks a transaction")
    #endif
    if isPlain { return }
    for transactions in try purchase.transactions().asPurchases(hiding: isHidden) {
      let claimants = transactions.reduce(into: Set<Identifier>()) { $0.formUnion($1.claimants) }
      for transaction in transactions {
        if claimants.count > 1 { try contest(transaction) } else { try uncontested(transaction, claimants.first) }
      }
    }
  }

  private func contest(_ contested: ContestedTransaction) throws {
    if let first = contested.firstClaimant(timelines) { mergeGroups(contested, first) }
    isEmpty = false
    last = contested.claimants
    record.clear()
    contested.write(to: &record)
    try transactions.add(record.content)
  }

  private func mergeGroups(_ contested: ContestedTransaction, _ first: Identifier) {
    let root = root(of: place(of: first))
    var known = last[...]
    var sharesLast = false
    for other in contested.claimants {
      while let head = known.first, head < other { known.removeFirst() }
      if known.first == other {
        // Shared claimants already are in one contest, so joining the first of them is enough.
        if sharesLast { continue }
        sharesLast = true
      }
      parents[Int(self.root(of: place(of: other)))] = root
    }
    for range in contested.linked {
      var end = range.places.lowerBound
      parents[Int(self.root(of: place(of: timelines[range.timeline][end])))] = root
      end = lastJoined(range.timeline, from: end)
      while end + 1 < range.places.upperBound {
        parents[Int(self.root(of: place(of: timelines[range.timeline][end + 1])))] = root
        joined[range.timeline][end] = end + 1
        end = lastJoined(range.timeline, from: end + 1)
      }
    }
    guard contested.sharesPurchase else { return }
    let purchase = contested.record.purchaseKey
    if let other = purchases[purchase] {
      parents[Int(self.root(of: other))] = root
    } else {
      purchases[purchase] = root
    }
  }

  /// - Returns: the index of the timeline.
  func addTimeline(_ orderIds: [Identifier]) -> Int {
    timelines.append(orderIds)
    joined.append(Array(orderIds.indices))
    return timelines.count - 1
  }

  /// The last place that is known to be in one group with all places from the start on.
  private func lastJoined(_ timeline: Int, from start: Int) -> Int {
    var place = start
    while joined[timeline][place] != place {
      joined[timeline][place] = joined[timeline][joined[timeline][place]]
      place = joined[timeline][place]
    }
    return place
  }

  /// Joins the contests of another part. Both must be undecided, and without timelines.
  func join(_ other: ConflictGroups) throws {
    try sharing.absorb(other.sharing)
    try other.forEach(contest)
  }

  private func place(of orderId: Identifier) -> Int32 {
    if let known = places[orderId] { return known }
    let place = Int32(parents.count)
    places[orderId] = place
    parents.append(place)
    return place
  }

  private func root(of start: Int32) -> Int32 {
    var place = start
    while parents[Int(place)] != place {
      parents[Int(place)] = parents[Int(parents[Int(place)])]
      place = parents[Int(place)]
    }
    return place
  }

  /// Assigns each contesting order to a batch of at least `size` orders. All transactions must have been added.
  func batches(ofAtLeast size: Int) -> Batches {
    // One transaction may have any number of claimants.
    last = []
    record = RecordBytes()
    var sizes = [Int32: Int]()
    for place in parents.indices { sizes[root(of: Int32(place)), default: 0] += 1 }
    var (batchByRoot, batch, filled) = ([Int32: UInt32](), UInt32(0), 0)
    for place in parents.indices {
      let root = root(of: Int32(place))
      if batchByRoot[root] != nil { continue }
      let added = sizes[root] ?? 0
      // Many orders of one person are matched by time only if no other order is matched with them.
      let isAlone = added >= LinkableOrders.least
      if filled >= size || isAlone && filled > 0 { (batch, filled) = (batch + 1, 0) }
      batchByRoot[root] = batch
      filled = isAlone ? size : filled + added
    }
    let byPlace = parents.indices.map { batchByRoot[root(of: Int32($0))] ?? 0 }
    return Batches(
      places: places, purchases: purchases, batches: byPlace, count: parents.isEmpty ? 0 : Int(batch) + 1,
      timelines: timelines)
  }

  struct Batches {
    fileprivate var places: [Identifier: Int32]
    fileprivate var purchases: [PurchaseKey: Int32]
    fileprivate var batches: [UInt32]
    fileprivate(set) var count: Int
    fileprivate(set) var timelines: [[Identifier]]

    var orderIds: some Collection<Identifier> { places.keys }

    func batch(of orderId: Identifier) -> UInt32? { places[orderId].map { batches[Int($0)] } }

    /// nil for a transaction whose purchase no order could own.
    func batch(of contested: ContestedTransaction) -> UInt32? {
      if let first = contested.firstClaimant(timelines) { return batch(of: first) }
      return purchases[contested.record.purchaseKey].map { batches[Int($0)] }
    }
  }

  /// Passes every transaction of a purchase with several transactions. Must precede `decide(hiding:plain:uncontested:)`.
  func forEachSharing(_ body: (ContestedTransaction) throws -> Void) throws {
    while let next = try sharing.next() { try body(try SharedPurchase.transaction(next.content)) }
  }

  func forEach(_ body: (ContestedTransaction) throws -> Void) throws {
    try transactions.restart()
    while let content = try transactions.next() {
      var reader = RecordReader(content)
      try body(try ContestedTransaction(from: &reader))
    }
  }
}
