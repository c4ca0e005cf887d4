import AuditStore
import Reconciliation
import Streams

/// A transaction that several orders could own, or that shares its purchase with other transactions.
struct ContestedTransaction {
  var record: TransactionRecord
  /// By id.
  var claimants: [Identifier]
  /// Whose it seems to be where nobody gets it.
  var userId: Identifier?
  var newestProof: CheckSubject?
  /// Whether only lists about which Apple has not answered brought it.
  var awaitsDetails = false
  /// Whether another transaction is of the same sale: then who could own the one competes with who could own the other, and
  /// nobody at all need have to do with this one.
  var sharesSale = false
}

/// Gathers claims that compete, and tells which orders have to be matched together: claims of one batch depend on no order
/// of another. Only ids of orders that compete stay in memory.
///
/// Used by one thread at a time; not `Sendable`.
final class Contests {
  private var places: [Identifier: Int32] = [:]
  /// By place, another order of the same contest; itself at the end of the way (disjoint sets, Tarjan 1975).
  private var parents: [Int32] = []
  /// By sale that has several ids, an order that could own it by one of them.
  private var sales: [TransactionKey: Int32] = [:]
  private let transactions: SpillFile
  private let directory: String
  /// Transactions that share their purchase with others, by purchase, until `settle(_:)`.
  private var sharing: SpillSorter
  /// Of the transaction that came last. What one user's receipts list is contested by much the same orders.
  private var last: [Identifier] = []
  private var record = RecordBytes()
  private(set) var isEmpty = true

  init(directory: String) throws {
    transactions = try SpillFile(directory: directory)
    self.directory = directory
    sharing = SpillSorter(directory: directory)
  }

  /// Takes a transaction that several orders could own, or that shares its purchase with other transactions.
  func add(_ contested: ContestedTransaction) throws {
    if !contested.sharesSale { return try contest(contested) }
    var key = RecordBytes()
    contested.record.saleKey.write(to: &key)
    record.clear()
    contested.write(to: &record)
    try sharing.add(key: key.bytes, content: record.content)
  }

  /// Separates purchases that one order alone could own from contested ones. Most restores are of the first kind.
  ///
  /// - Parameter uncontested: gets each transaction of a purchase that at most one order could own, with that order.
  func settle(_ uncontested: (ContestedTransaction, _ only: Identifier?) throws -> Void) throws {
    let shared = sharing
    sharing = SpillSorter(directory: directory)
    var (purchase, transactions) = ([UInt8](), [ContestedTransaction]())
    func settlePurchase() throws {
      let claimants = transactions.reduce(into: Set<Identifier>()) { $0.formUnion($1.claimants) }
      for var transaction in transactions {
        transaction.sharesSale = transactions.count > 1
        if claimants.count > 1 { try contest(transaction) } else { try uncontested(transaction, claimants.first) }
      }
      transactions.removeAll(keepingCapacity: true)
    }
    while let next = try shared.next() {
      if !next.key.elementsEqual(purchase) {
        try settlePurchase()
        purchase = [UInt8](next.key)
      }
      var reader = RecordReader(next.content)
      transactions.append(try ContestedTransaction(from: &reader))
    }
    try settlePurchase()
  }

  private func contest(_ contested: ContestedTransaction) throws {
    if let first = contested.claimants.first { bringTogether(contested, first) }
    isEmpty = false
    last = contested.claimants
    record.clear()
    contested.write(to: &record)
    try transactions.add(record.content)
  }

  /// Brings together who could own a transaction.
  private func bringTogether(_ contested: ContestedTransaction, _ first: Identifier) {
    let root = root(of: place(of: first))
    var known = last[...]
    var sharesLast = false
    for other in contested.claimants {
      while let head = known.first, head < other { known.removeFirst() }
      if known.first == other {
        // They are in one contest already, and the first of them joins it with this.
        if sharesLast { continue }
        sharesLast = true
      }
      parents[Int(self.root(of: place(of: other)))] = root
    }
    guard contested.sharesSale else { return }
    let sale = contested.record.saleKey
    if let other = sales[sale] {
      parents[Int(self.root(of: other))] = root
    } else {
      sales[sale] = root
    }
  }

  /// Takes what another part has found to be contested. Neither is settled.
  func join(_ other: Contests) throws {
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

  /// Which batch each contesting order is in. Not before everything was added.
  ///
  /// - Parameter size: orders in a batch at least, but for the last one. More take more memory and nothing else.
  func batches(ofAtLeast size: Int) -> Batches {
    var sizes = [Int32: Int]()
    for place in parents.indices { sizes[root(of: Int32(place)), default: 0] += 1 }
    var (batchByRoot, batch, filled) = ([Int32: UInt32](), UInt32(0), 0)
    for place in parents.indices {
      let root = root(of: Int32(place))
      if batchByRoot[root] != nil { continue }
      if filled >= size { (batch, filled) = (batch + 1, 0) }
      batchByRoot[root] = batch
      filled += sizes[root] ?? 0
    }
    let byPlace = parents.indices.map { batchByRoot[root(of: Int32($0))] ?? 0 }
    return Batches(places: places, sales: sales, batches: byPlace, count: parents.isEmpty ? 0 : Int(batch) + 1)
  }

  struct Batches {
    fileprivate var places: [Identifier: Int32]
    fileprivate var sales: [TransactionKey: Int32]
    fileprivate var batches: [UInt32]
    private(set) var count: Int

    fileprivate init(
      places: [Identifier: Int32], sales: [TransactionKey: Int32], batches: [UInt32], count: Int
    ) {
      self.places = places
      self.sales = sales
      self.batches = batches
      self.count = count
    }

    /// All orders that contest anything, in no order.
    var orderIds: some Collection<Identifier> { places.keys }

    /// nil for an order that contests nothing.
    func batch(of orderId: Identifier) -> UInt32? { places[orderId].map { batches[Int($0)] } }

    /// nil for a transaction whose sale no order could own.
    func batch(of contested: ContestedTransaction) -> UInt32? {
      if let first = contested.claimants.first { return batch(of: first) }
      return sales[contested.record.saleKey].map { batches[Int($0)] }
    }
  }

  /// Hands on every transaction that shares its purchase. Not after `settle(_:)`.
  func forEachSharing(_ body: (ContestedTransaction) throws -> Void) throws {
    while let next = try sharing.next() {
      var reader = RecordReader(next.content)
      try body(try ContestedTransaction(from: &reader))
    }
  }

  /// Hands on every contested transaction, in no order.
  func forEach(_ body: (ContestedTransaction) throws -> Void) throws {
    try transactions.restart()
    while let content = try transactions.next() {
      var reader = RecordReader(content)
      try body(try ContestedTransaction(from: &reader))
    }
  }
}

extension ContestedTransaction {
  init(_ record: TransactionRecord, _ candidates: Candidates, sharesSale: Bool) {
    self.init(
      record: record, claimants: candidates.claimants, userId: candidates.userId,
      newestProof: candidates.newestProof, awaitsDetails: candidates.awaitsDetails, sharesSale: sharesSale)
  }

  func write(to bytes: inout RecordBytes) {
    record.write(to: &bytes)
    bytes.put(claimants) { $1.put($0) }
    bytes.put(userId)
    bytes.put(newestProof != nil)
    newestProof?.write(to: &bytes)
    bytes.put(awaitsDetails)
    bytes.put(sharesSale)
  }

  init(from reader: inout RecordReader) throws(RecordReader.Mismatch) {
    self.init(
      record: try TransactionRecord(from: &reader),
      claimants: try reader.list { (reader) throws(RecordReader.Mismatch) in try reader.id() },
      userId: try reader.optionalId(), newestProof: try reader.flag() ? try CheckSubject(from: &reader) : nil,
      awaitsDetails: try reader.flag(), sharesSale: try reader.flag())
  }
}
