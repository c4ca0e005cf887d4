import AuditStore
import Postgres
import Reconciliation
import Reporting
import SalesStore
import Streams

/// The kinds of frames of an audit in parts. Programs that carry frames between stages (page Spark) rely on the
/// numbers. Numbers of relations are in `AuditRelation`.
enum AuditFrame: UInt8, CaseIterable {
  // Frames between stages.
  case proof = 20
  /// A reference from an order or receipt to a transaction, by transaction ID.
  case reference
  case group
  /// An `OrderTransaction`, by order ID.
  case orderTransaction
  /// A transaction with several possible owners or several IDs of one purchase, by transaction ID.
  case contested
  case contestedOrder
  /// A transaction that no receipt of an order contains, an order without its account token, or a question for the
  /// orders of a subscription; by link.
  case linkQuestion
  /// An order, by the link that could connect it to a transaction without a receipt, or by the subscription of a period
  /// that it could own.
  case linkableOrder
  case openPerson
  case matched
  /// A payment for a non-consumable product.
  case purchase
  /// A finding about a non-consumable bought twice, by order ID.
  case boughtTwice
  case delivery
  /// The first order of a repeated delivery ID.
  case repeatedDelivery
  /// A period of a subscription, with the order that owns it, by original transaction ID.
  case ownedPeriod = 35

  // Results, which are joined at the end.
  case orderLine = 64
  case receiptLine
  case finding
  case refund
  case sandbox
  case claim
  case night
  case outstanding
  case agedCritical
  case totals
  case userLine
  case pricePoint
  case day
  case salesTotal
  case lookupImpossible
  case productLine = 80
  /// An open refund request, by the user ID of the person.
  case refundRequest
  /// A refund of a person, by the user ID.
  case personRefund
  /// A finding on a refunded renewal, by the original ID of its subscription.
  case refundedRenewal
  /// A subscription with a refunded renewal and goods that were not taken back.
  case servedSubscription

  var isPiece: Bool { rawValue >= AuditFrame.orderLine.rawValue }
}

struct AuditFrameWriter: ~Copyable {
  let stream: FrameStream
  private var record = RecordBytes()

  init(_ stream: FrameStream) { self.stream = stream }

  func write(_ frame: AuditFrame, _ id: Identifier?, _ content: [UInt8]) throws {
    try stream.write(tag: frame.rawValue, key: id.sortingBytes, content: content)
  }

  mutating func write(_ frame: AuditFrame, _ id: Identifier?, _ content: (inout RecordBytes) -> Void) throws {
    record.clear()
    content(&record)
    try write(frame, id, record.bytes)
  }

  func outlet(_ frame: AuditFrame) -> Exchange.RecordSink {
    let stream = stream
    return Exchange.RecordSink { id, _, content in
      try stream.write(tag: frame.rawValue, key: id.id.sortingBytes, content: [UInt8](content))
    }
  }

  func write(_ frame: AuditFrame, all sorter: SpillSorter) throws {
    while let record = try sorter.next() {
      try stream.write(tag: frame.rawValue, key: [0] + record.key, content: [UInt8](record.content))
    }
  }
}

extension Optional<Identifier> {
  /// Bytes that sort as the IDs do, nil last, like NULLs in the streams.
  var sortingBytes: [UInt8] { map { [0] + $0.bytes } ?? [1] }
}

extension RecordBytes {
  mutating func put(_ number: Int128) {
    put(Int64(truncatingIfNeeded: number >> 64))
    put(Int64(bitPattern: UInt64(truncatingIfNeeded: number)))
  }

  mutating func put(_ counts: ByCurrency<Int>) {
    put(counts.sorted) { line, record in
      record.put(line.currency.code)
      record.put(Int64(line.value))
    }
  }

  mutating func put(_ money: MoneyByCurrency) {
    put(money.sorted) { line, record in
      record.put(line.currency.code)
      record.put(line.minorUnits)
    }
  }

  mutating func put(_ line: Totals.Line) {
    put(Int64(line.orders))
    line.forEachSum { put($0) }
  }
}

extension RecordReader {
  mutating func int128() throws(Mismatch) -> Int128 {
    let upper = try int()
    return Int128(upper) << 64 | Int128(UInt64(bitPattern: try int()))
  }

  mutating func currency() throws(Mismatch) -> Currency {
    guard let currency = Currency(try id()) else { throw Mismatch() }
    return currency
  }

  mutating func counts() throws(Mismatch) -> ByCurrency<Int> {
    var counts = ByCurrency<Int>()
    for _ in 0..<(try int()) {
      let currency = try currency()
      counts[currency, default: 0] = Int(try int())
    }
    return counts
  }

  mutating func money() throws(Mismatch) -> MoneyByCurrency {
    var sums: [Currency: Int128] = [:]
    for _ in 0..<(try int()) {
      let currency = try currency()
      sums[currency] = try int128()
    }
    return MoneyByCurrency(sums)
  }

  mutating func totalsLine() throws(Mismatch) -> Totals.Line {
    let orders = Int(try int())
    return try Totals.Line(orders: orders) { () throws(Mismatch) in try int128() }
  }
}

extension SalesTotals {
  func write(to writer: inout AuditFrameWriter) throws {
    for line in byCurrency {
      try writer.write(.salesTotal, Identifier(line.currency)) {
        $0.put(Int64(line.orders))
        $0.put(line.millionths)
      }
    }
  }

  mutating func take(_ frame: Frame) throws {
    var reader = RecordReader(frame.content)
    add(
      orders: Int(try reader.int()), millionths: try reader.int128(),
      of: String(decoding: frame.key.dropFirst(), as: UTF8.self))
  }
}
