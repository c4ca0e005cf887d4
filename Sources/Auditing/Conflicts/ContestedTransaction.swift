import AuditStore
import Reconciliation
import Streams

/// A transaction with several possible owners, or of a purchase with several transactions.
struct ContestedTransaction {
  var record: TransactionRecord
  var claimants: [Identifier]
  /// Further possible owners, which its account token links to it: too many to list them for each transaction.
  var linked: [TimelineRange] = []
  var userId: Identifier?
  var newestProof: CheckSubject?
  /// True if only app receipts without an answer contain it.
  var awaitsDetails = false
  /// True if another transaction belongs to the same purchase. Possible owners of either compete, and this one may have none.
  var sharesPurchase = false
  /// As ``Candidates/isWithToken``.
  var isWithToken = false
  /// Orders that its account token links, and whose receipts contain the IDs that they state.
  var accountOrders: [Identifier] = []
}

/// A range of the orders of one account token and product in the order of time.
struct TimelineRange {
  /// An index in ``ConflictGroups/timelines``.
  var timeline: Int
  var places: Range<Int>
}

extension [ContestedTransaction] {
  /// All transactions with one key, by purchase, each with what is known of its purchase.
  func asPurchases(hiding isHidden: (Instant) -> Bool) -> [[ContestedTransaction]] {
    if isEmpty { return [] }
    let records = TransactionRecord.foldingPurchases(map(\.record), hiding: isHidden)
    let purchases = Dictionary(grouping: indices) { records[$0].purchaseKey }
    return purchases.sorted { $0.key < $1.key }.map { _, places in
      let isWithToken = places.contains { self[$0].isWithToken }
      return places.map { place in
        var transaction = self[place]
        transaction.takeAccountOrders(unless: isWithToken)
        transaction.record = records[place]
        transaction.sharesPurchase = places.count > 1
        // Evidence about one of the IDs is evidence about the purchase.
        transaction.awaitsDetails = places.allSatisfy { self[$0].awaitsDetails }
        transaction.userId = transaction.userId ?? places.lazy.compactMap { self[$0].userId }.min()
        return transaction
      }
    }
  }
}

extension ContestedTransaction {
  init(_ record: TransactionRecord, _ candidates: Candidates, sharesPurchase: Bool) {
    self.init(
      record: record, claimants: candidates.claimants, userId: candidates.userId,
      newestProof: candidates.newestProof, awaitsDetails: candidates.awaitsDetails, sharesPurchase: sharesPurchase,
      isWithToken: candidates.isWithToken)
  }

  /// Adds the other orders of the account, unless an order of the account refers to one of the purchase's IDs.
  mutating func takeAccountOrders(unless isWithToken: Bool) {
    if !isWithToken, !accountOrders.isEmpty { claimants = Set(claimants).union(accountOrders).sorted() }
    accountOrders = []
  }

  /// The fact for the one order that could own the purchase.
  /// nil: no order could own this ID, and only app receipts without an answer contain the purchase.
  var factForOnlyOrder: OrderTransaction? {
    if !claimants.isEmpty { return .transaction(record, isClaimable: true, newestProof: newestProof) }
    return awaitsDetails ? nil : .sibling(record, userId: userId, newestProof: newestProof)
  }

  func firstClaimant(_ timelines: [[Identifier]]) -> Identifier? {
    claimants.first ?? linked.first.map { timelines[$0.timeline][$0.places.lowerBound] }
  }

  /// Lists the orders on timelines as claimants, for a reader without the timelines.
  func listingClaimants(_ timelines: [[Identifier]]) -> ContestedTransaction {
    if linked.isEmpty { return self }
    var copy = self
    copy.linked = []
    copy.claimants = Set(claimants + linked.flatMap { timelines[$0.timeline][$0.places] }).sorted()
    return copy
  }

  func write(to bytes: inout RecordBytes) {
    record.write(to: &bytes)
    bytes.put(claimants) { $1.put($0) }
    bytes.put(linked) { range, bytes in
      for number in [range.timeline, range.places.lowerBound, range.places.upperBound] { bytes.put(Int64(number)) }
    }
    bytes.put(userId)
    bytes.put(newestProof != nil)
    newestProof?.write(to: &bytes)
    bytes.put(awaitsDetails)
    bytes.put(sharesPurchase)
    bytes.put(isWithToken)
    bytes.put(accountOrders) { $1.put($0) }
  }

  init(from reader: inout RecordReader) throws(RecordReader.Mismatch) {
    self.init(
      record: try TransactionRecord(from: &reader),
      claimants: try reader.list { (reader) throws(RecordReader.Mismatch) in try reader.id() },
      linked: try reader.list { (reader) throws(RecordReader.Mismatch) in
        let (timeline, start, end) = (Int(try reader.int()), Int(try reader.int()), Int(try reader.int()))
        guard start < end else { throw RecordReader.Mismatch() }
        return TimelineRange(timeline: timeline, places: start..<end)
      },
      userId: try reader.optionalId(), newestProof: try reader.flag() ? try CheckSubject(from: &reader) : nil,
      awaitsDetails: try reader.flag(), sharesPurchase: try reader.flag(), isWithToken: try reader.flag(),
      accountOrders: try reader.list { (reader) throws(RecordReader.Mismatch) in try reader.id() })
  }
}
