import Reconciliation
import Reporting

/// The number of a relation's rows, and the number that breaks the contract.
struct RowTally {
  let name: String
  let noun: String
  private(set) var rows = 0
  /// Rows of the lookback, and rows without a date.
  private(set) var recent = 0
  /// Bad rows of the lookback. Nights read no older rows.
  private var defects = Tally()
  /// Orders with a bad row of the lookback.
  private(set) var badOrders: Set<Identifier> = []
  /// Remarks about single columns.
  var further: [Diagnosis] = []
  var prices = UnitPrices()
  /// Orders of the lookback that state a transaction ID.
  var sample = OrderSample()
  /// The first instant of the lookback.
  private let since: Instant
  private let key: String
  private var last: [UInt8] = []
  /// The instant of the newest valid row, and the bytes of its ID: nearly every row of a table in order of time is newer.
  private var newestAt: Instant?
  private var newestId: [UInt8] = []

  init(name: String, noun: String, key: String, since: Instant) {
    (self.name, self.noun, self.key, self.since) = (name, noun, key, since)
  }

  mutating func add(_ id: Identifier, defect: String?, order: Identifier?, at instant: Instant) {
    id.withUTF8 { add(BorrowedText($0), defect: defect, order: order, at: instant) }
  }

  /// - Parameter id: in the order of its bytes, so that equal ones follow each other.
  mutating func add(
    _ id: BorrowedText, defect: String? = nil, order: @autoclosure () -> Identifier?, at instant: Instant
  ) {
    if defect == nil, newestAt.map({ $0 < instant }) ?? true {
      newestAt = instant
      newestId.removeAll(keepingCapacity: true)
      newestId.append(contentsOf: id.bytes)
    }
    let isRepeated = rows > 0 && last.elementsEqual(id.bytes)
    let defect = defect ?? (isRepeated ? "\(key) is not unique" : nil)
    if !isRepeated {
      last.removeAll(keepingCapacity: true)
      last.append(contentsOf: id.bytes)
    }
    rows += 1
    guard isRecent(instant) else { return }
    recent += 1
    defects.count(defect != nil, "\(id.bytes.isEmpty ? "a row without an ID" : id.text): \(defect ?? "")")
    if defect != nil, let order = order() { badOrders.insert(order) }
  }

  /// The newest valid row.
  var newest: (id: Identifier, at: Instant)? {
    newestAt.map { at in newestId.withUnsafeBytes { (Identifier(utf8: $0), at) } }
  }

  func isRecent(_ instant: Instant) -> Bool { since <= instant }

  func diagnosis(holdsNight: Bool) -> Diagnosis {
    let subject = "\(name) (\(counted(rows, "row")))"
    if rows == 0 {
      return .warning(subject, "is empty; check that the view shows the shop's \(noun) to this role")
    }
    guard defects.odd > 0 else { return .fine(subject) }
    // Without most of its orders a shop has nothing to audit.
    let isProblem = holdsNight || noun == "orders" && defects.odd * 2 > recent
    var diagnosis = Diagnosis(
      subject: subject, held: isProblem, because: "\(defects.odd) rows break the contract", kind: .badRow,
      remedy: isProblem ? "correct the view" : "they are reported, and count for nothing", examples: defects.examples)
    diagnosis.holdsNight = holdsNight
    return diagnosis
  }
}

/// Orders at even distances among all that are offered.
struct OrderSample {
  private(set) var orders: [Order] = []
  private var offered = 0
  private var step = 1

  private static let most = 10_000

  /// - Parameter order: read only if it is taken.
  mutating func add(_ order: @autoclosure () throws -> OrderRow) rethrows {
    let isTaken = offered % step == 0
    offered += 1
    guard isTaken, case .valid(let order) = try order() else { return }
    orders.append(order)
    guard orders.count == Self.most else { return }
    orders = stride(from: 0, to: orders.count, by: 2).map { orders[$0] }
    step *= 2
  }
}
