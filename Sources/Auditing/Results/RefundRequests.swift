import Reconciliation
import Reporting
import Streams

/// The open refund requests of an audit, and the refunds of each person, which the rows of the requests count.
final class RefundRequests {
  private let directory: String
  /// Rows by the bytes of the person's user ID; empty where the person is unknown.
  let requests: SpillSorter
  /// Refunded purchases by the bytes of the person's user ID.
  let refunds: SpillSorter
  private var record = RecordBytes()

  init(directory: String) {
    self.directory = directory
    requests = SpillSorter(directory: directory, budget: 1 << 20)
    refunds = SpillSorter(directory: directory, budget: 1 << 20)
  }

  func add(_ row: RefundRequestRow, person: Identifier?) throws {
    record.clear()
    row.write(to: &record)
    try requests.add(key: person?.bytes ?? [], content: record.content)
  }

  func add(refundOf transaction: TransactionRecord, at date: Instant, person: Identifier) throws {
    record.clear()
    record.put(transaction.smallestId)
    record.put(date.microseconds)
    try refunds.add(key: person.bytes, content: record.content)
  }

  /// Takes over the requests and refunds of another part.
  func join(_ other: RefundRequests) throws {
    try requests.absorb(other.requests)
    try refunds.absorb(other.refunds)
  }

  private struct Refund {
    var person: [UInt8]
    var purchase: Identifier
    var date: Instant

    init(_ record: SpillSorter.Record) throws {
      var reader = RecordReader(record.content)
      person = [UInt8](record.key)
      purchase = try reader.id()
      date = Instant(microseconds: try reader.int())
    }
  }

  /// Passes every row with its count of earlier refunds, in the byte order of transaction IDs.
  func passRows(_ body: (RefundRequestRow) throws -> Void) throws {
    let sorted = SpillSorter(directory: directory, budget: 1 << 20)
    var further = try SpillCursor(refunds, decode: Refund.init)
    var person: [UInt8] = []
    // A purchase may have several transactions, each with the refund.
    var refunded: [Identifier: Instant] = [:]
    while let request = try requests.next() {
      if !request.key.elementsEqual(person) {
        (person, refunded) = ([UInt8](request.key), [:])
        while let head = further.head, head.person.lexicographicallyPrecedes(person) { try further.advance() }
        while let head = further.head, head.person == person {
          refunded[head.purchase] = min(refunded[head.purchase] ?? head.date, head.date)
          try further.advance()
        }
      }
      var reader = RecordReader(request.content)
      var row = try RefundRequestRow(from: &reader)
      if !person.isEmpty { row.refundsBefore = refunded.values.count { $0 < row.request.date } }
      record.clear()
      row.write(to: &record)
      try sorted.add(row.transactionId, record)
    }
    while let next = try sorted.next() {
      var reader = RecordReader(next.content)
      try body(try RefundRequestRow(from: &reader))
    }
  }
}

extension RefundRequestRow {
  fileprivate func write(to record: inout RecordBytes) {
    record.put(transactionId)
    record.put(orderId)
    record.put(userId)
    record.put(productId)
    record.put(paid)
    record.put(request.date.microseconds)
    record.put(request.reason)
    record.put(goods?.status.rawValue)
    record.put(goods?.delivered)
    record.put(goods?.ordered)
    record.put(refundsBefore.map(Int64.init))
    record.put(bundleId)
  }

  fileprivate init(from record: inout RecordReader) throws(RecordReader.Mismatch) {
    self.init(
      transactionId: try record.id(), orderId: try record.optionalId(), userId: try record.optionalId(),
      productId: try record.id(), paid: try record.optionalMoney(),
      request: RefundRequest(date: Instant(microseconds: try record.int()), reason: try record.optionalText()))
    let status = try record.optionalText().flatMap(DeliveryStatus.init)
    let (delivered, ordered) = (try record.optionalInt(), try record.optionalInt())
    if let status, let delivered, let ordered {
      goods = DeliveredGoods(status: status, delivered: delivered, ordered: ordered)
    }
    refundsBefore = try record.optionalInt().map(Int.init)
    bundleId = try record.optionalText()
  }
}
