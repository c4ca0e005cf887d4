import AuditStore
import Reconciliation
import Streams

/// A transaction with several possible owners, or of a purchase with several transactions.
struct ContestedTransaction {
  var record: TransactionRecord
  var claimants: [Identifier]
  var userId: Identifier?
  var newestProof: CheckSubject?
  /// True if only app receipts without an answer contain it.
  var awaitsDetails = false
  /// True if the purchase has another transaction. Possible owners of either then compete; this one may have none.
  var sharesSale = false
}

/// Groups orders that must be matched together. Only IDs of competing orders stay in memory. Used by one thread at a
/// time; not `Sendable`.
final class Contests {
  private var places: [Identifier: Int32] = [:]
  /// By place, another order of the same contest. A root is its own parent (disjoint sets, Tarjan 1975).
  private var parents: [Int32] = []
  /// By purchase with several transactions, a possible owner of one of them.
  private var sales: [TransactionKey: Int32] = [:]
  private let transactions: SpillFile
  private let directory: String
  private var sharing: SpillSorter
  /// Claimants of the previous transaction. Purchases listed in one user's receipts have much the same claimants.
  private var last: [Identifier] = []
  private var record = RecordBytes()
  private(set) var isEmpty = true

  init(directory: String) throws {
    transactions = try SpillFile(directory: directory)
    self.directory = directory
    sharing = SpillSorter(directory: directory)
  }

  func add(_ contested: ContestedTransaction) throws {
    if !contested.sharesSale { return try contest(contested) }
    var key = RecordBytes()
    contested.record.saleKey.write(to: &key)
    record.clear()
    contested.write(to: &record)
    try sharing.add(key: key.bytes, content: record.content)
  }

  /// Separates purchases with at most one possible owner, such as most restores, from contested ones.
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

  private func bringTogether(_ contested: ContestedTransaction, _ first: Identifier) {
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
    guard contested.sharesSale else { return }
    let sale = contested.record.saleKey
    if let other = sales[sale] {
      parents[Int(self.root(of: other))] = root
    } else {
      sales[sale] = root
    }
  }

  /// Joins the contests of another part. Both must be unsettled.
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

  /// Assigns each contesting order to a batch of at least `size` orders. All transactions must have been added.
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

    var orderIds: some Collection<Identifier> { places.keys }

    func batch(of orderId: Identifier) -> UInt32? { places[orderId].map { batches[Int($0)] } }

    /// nil for a transaction whose purchase no order could own.
    func batch(of contested: ContestedTransaction) -> UInt32? {
      if let first = contested.claimants.first { return batch(of: first) }
      return sales[contested.record.saleKey].map { batches[Int($0)] }
    }
  }

  /// Passes every transaction of a purchase with several transactions. Must precede `settle(_:)`.
  func forEachSharing(_ body: (ContestedTransaction) throws -> Void) throws {
    while let next = try sharing.next() {
      var reader = RecordReader(next.content)
      try body(try ContestedTransaction(from: &reader))
    }
  }

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
