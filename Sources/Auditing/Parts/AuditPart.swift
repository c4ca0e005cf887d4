import AuditStore
import Foundation
import Postgres
import Reconciliation
import Run
import SalesStore
import Settings
import Streams

/// One stage of an audit over one part, with frames as input and output. Another program groups the frames by key.
package struct AuditPart {
  /// The stages, in their order. Stages marked "once" run over the frames of all parts.
  package enum Stage: String, CaseIterable, Sendable {
    /// Input: receipts, checks and links by receipt ID.
    case receipts
    /// Input: orders, look-ups, links and proofs by order ID.
    case orders
    /// Input: transactions and references by transaction ID.
    case transactions
    /// Once. Input: link questions, and the orders that the links could be of. Contested transactions go to `contests`.
    case tokens
    /// Input: deliveries by order ID. Output: deliveries to be grouped by delivery ID.
    case deliveries
    case repeated
    /// Once. Input: contested transactions; the contestedOrders' groups, order transactions and deliveries by order ID;
    /// repeated deliveries.
    case contests
    /// Input: groups, order transactions and matching results by order ID; open people.
    case purchases
    /// Input: owned periods by original transaction ID. Output: order transactions.
    case subscriptions
    /// Once. Input: purchases.
    case boughtTwice = "bought-twice"
    /// Input as for `purchases`, with deliveries; findings `bought_twice`; repeated deliveries.
    case judge
  }

  private let context: AuditContext
  private let pass: AuditPass
  private let directory: String
  private var rows: [AuditRelation: SpillFile] = [:]
  private var records: [AuditFrame: SpillSorter] = [:]
  private let groups: SpillFile
  private var open: PeopleWithOpenReceipts
  private var boughtTwice: [Identifier: Finding] = [:]
  private var firstOrders: [Identifier: Identifier?] = [:]

  init(_ context: AuditContext, _ input: FrameStream, directory: String, stop: StopSignal, progress: WorkProgress)
    throws
  {
    self.context = context
    self.directory = directory
    let groups = try SpillFile(directory: directory)
    self.groups = groups
    open = PeopleWithOpenReceipts(context.rules)
    // Groups with the same ID arrive in byte order. The row that counts goes first and takes the order transactions.
    var further: (key: [UInt8], groups: [[UInt8]]) = ([], [])
    func flushPendingGroups() throws {
      for group in further.groups.sorted(by: OrderRow.precedes) { try groups.add(group) }
      further.groups = []
    }
    while let frame = try input.next() {
      if let relation = AuditRelation(rawValue: frame.tag) {
        let file = try rows[relation] ?? SpillFile(directory: directory)
        rows[relation] = file
        try file.add(frame.content)
        continue
      }
      guard let kind = AuditFrame(rawValue: frame.tag), !kind.isPiece else {
        throw Frame.Failure(description: "standard input holds a frame of tag \(frame.tag), which no stage takes")
      }
      let id = frame.key.dropFirst().withUnsafeBytes { Identifier(utf8: $0) }
      var reader = RecordReader(frame.content)
      switch kind {
      case .group:
        if frame.key != further.key {
          try flushPendingGroups()
          further.key = frame.key
        }
        if try OrderGroup.isRepeated(frame.content) {
          further.groups.append(frame.content)
        } else {
          try groups.add(frame.content)
        }
      case .openPerson:
        open.insert(
          id,
          try reader.list { (record) throws(RecordReader.Mismatch) in
            guard case .valid(let order) = try OrderRow(from: &record) else { throw RecordReader.Mismatch() }
            return UnansweredOrder(order, isUnread: try record.flag())
          })
      case .boughtTwice: boughtTwice[id] = try Finding(from: &reader)
      case .repeatedDelivery: firstOrders[id] = .some(try reader.optionalId())
      default:
        let sorter = records[kind] ?? SpillSorter(directory: directory, budget: 8 << 20)
        records[kind] = sorter
        try sorter.add(key: kind == .proof ? frame.key : Array(frame.key.dropFirst()), content: frame.content)
      }
    }
    try flushPendingGroups()
    pass = AuditPass(
      plan: context.plan, sales: try context.sales, rows: FramedRows(rows),
      collector: try AuditCollector(waitingIn: directory, days: context.days, storesClaims: true),
      temporaryDirectory: directory, stop: stop, progress: progress, sharedPurchases: context.sharedPurchases)
    pass.collector.openCriticals = context.openCriticals
  }

  /// Runs a stage from standard input to standard output.
  package static func run(_ stage: Stage, context: String, stop: StopSignal, progress: WorkProgress) throws {
    let input = try FrameStream(descriptor: STDIN_FILENO, isWritten: false, name: "standard input")
    let output = try FrameStream(descriptor: STDOUT_FILENO, isWritten: true, name: "standard output")
    try AuditPart(
      AuditContext(path: context), input, directory: NSTemporaryDirectory(), stop: stop, progress: progress
    ).run(stage, to: output)
  }

  private func sorter(_ frame: AuditFrame) -> SpillSorter { records[frame] ?? SpillSorter(directory: directory) }

  private func orders() throws -> GroupReading { try GroupReading(groups, sorter(.orderTransaction)) }

  func run(_ stage: Stage, to output: FrameStream) throws {
    var writer = AuditFrameWriter(output)
    switch stage {
    case .receipts: try pass.readReceipts(into: writer.outlet(.proof))
    case .orders: try readOrders(&writer)
    case .transactions: try readTransactions(&writer)
    case .tokens:
      let contests = try ConflictGroups(directory: directory)
      try pass.answer(
        LinkQuestions(directory: directory, questions: sorter(.linkQuestion)), among: sorter(.linkableOrder),
        into: writer.outlet(.orderTransaction), contests)
      try write(contests, &writer)
    case .contests:
      let contests = try ConflictGroups(directory: directory)
      let contested = sorter(.contested)
      while let record = try contested.next() {
        var reader = RecordReader(record.content)
        try contests.add(try ContestedTransaction(from: &reader))
      }
      let decided = Exchange(from: 1, to: .none, directory: directory)
      try pass.decide(contests, into: decided.outlet(0))
      let transactionsByOrder = sorter(.orderTransaction)
      for part in try decided.gathered() {
        while let record = try part.next() {
          try output.write(
            tag: AuditFrame.orderTransaction.rawValue, key: [0] + record.key, content: [UInt8](record.content))
          try transactionsByOrder.add(key: record.key, content: record.content)
        }
      }
      let batches = contests.batches(ofAtLeast: Settings().contestBatchSize)
      let contestedOrders = try pass.contestedOrders(
        of: batches, among: GroupReading(groups, transactionsByOrder), repeated: RepeatedDeliveries(firstOrders))
      try pass.match(contests, batches, contestedOrders, into: writer.outlet(.matched))
    case .purchases:
      let purchases = try pass.comparedPurchases(
        orders(), sorter(.matched), open: open, into: writer.outlet(.ownedPeriod))
      for paid in purchases.taken { try writer.write(.purchase, paid.orderId) { paid.write(to: &$0) } }
    case .subscriptions:
      try pass.compareOwners(ofPeriods: sorter(.ownedPeriod), into: writer.outlet(.orderTransaction))
    case .boughtTwice:
      var repeated = RepeatedPurchases(rules: context.rules)
      let purchases = sorter(.purchase)
      while let record = try purchases.next() {
        var reader = RecordReader(record.content)
        repeated.take(try Finding(from: &reader))
      }
      for finding in repeated.findings() { try writer.write(.boughtTwice, finding.orderId) { finding.write(to: &$0) } }
    case .deliveries:
      let (sales, asOf) = (pass.sales, context.rules.asOf)
      var deliveries = try OrderedStream(pass.rows.read(.deliveries)) { try sales.delivery($0, asOf: asOf) }
      while let delivery = try deliveries.next() {
        if delivery.deliveryId.isEmpty { continue }
        try writer.write(.delivery, delivery.deliveryId) { delivery.write(to: &$0) }
      }
    case .repeated: try findRepeated(&writer)
    case .judge:
      try pass.judge(
        orders(), sorter(.matched), repeated: RepeatedDeliveries(firstOrders), boughtTwice, open: open)
    }
    try pass.collector.write(to: &writer)
    try output.flush()
  }

  private func readOrders(_ writer: inout AuditFrameWriter) throws {
    let reading = try pass.readOrders(proofs: sorter(.proof), into: writer.outlet(.reference))
    try reading.groups.restart()
    while let content = try reading.groups.next() {
      var reader = RecordReader(content)
      _ = try reader.flag()
      try writer.write(.group, try reader.id(), [UInt8](content))
      reader = RecordReader(content)
      try LinkableOrder.forEach(inGroup: &reader) { link, order in
        try writer.write(.linkableOrder, Identifier(String(decoding: link.key, as: UTF8.self))) { order.write(to: &$0) }
      }
    }
    try reading.open.forEach { person, orders in
      try writer.write(.openPerson, person) { record in
        record.put(orders) { order, record in
          OrderRow.valid(order.order).write(to: &record)
          record.put(order.isUnread)
        }
      }
    }
    try reading.totals.write(to: &writer)
  }

  private func readTransactions(_ writer: inout AuditFrameWriter) throws {
    let reading = try pass.readTransactions(
      sorter(.reference), openTokens: .all, into: writer.outlet(.orderTransaction))
    try write(reading.contests, &writer)
    try writer.write(.linkQuestion, all: reading.linkQuestions.questions)
    try writer.write(.linkableOrder, all: reading.linkQuestions.periodClaimants)
  }

  private func write(_ contests: ConflictGroups, _ writer: inout AuditFrameWriter) throws {
    func write(_ contested: ContestedTransaction) throws {
      let contested = contested.listingClaimants(contests.timelines)
      try writer.write(.contested, contested.record.transactionId) { contested.write(to: &$0) }
      for order in contested.claimants + contested.accountOrders { try writer.write(.contestedOrder, order, []) }
    }
    try contests.forEach(write)
    try contests.forEachSharing(write)
  }

  private func findRepeated(_ writer: inout AuditFrameWriter) throws {
    var deliveries = try SpillCursor(sorter(.delivery)) { record in
      var reader = RecordReader(record.content)
      return try Delivery(from: &reader)
    }
    while let delivery = try deliveries.next() {
      var rows = [RepeatedDeliveries.row(delivery)]
      while let further = deliveries.head, further.deliveryId == delivery.deliveryId {
        rows.append(RepeatedDeliveries.row(further))
        try deliveries.advance()
      }
      for (id, order) in RepeatedDeliveries.firstOrders(among: rows) {
        try writer.write(.repeatedDelivery, id) { $0.put(order) }
      }
    }
  }
}

/// Rows that came as frames. Used by one thread at a time; not `Sendable`.
final class FramedRows: AuditRows {
  private let rows: [AuditRelation: SpillFile]

  init(_ rows: [AuditRelation: SpillFile]) { self.rows = rows }

  func readDeliveries(of orderIds: some Collection<Identifier>) throws -> CopyReader { try read(.deliveries) }

  func read(_ relation: AuditRelation) throws -> CopyReader {
    guard let file = rows[relation] else { return CopyReader { () throws(PostgresError) in nil } }
    try file.restart()
    return CopyReader { () throws(PostgresError) in
      do { return try file.next().map { [UInt8]($0) } } catch { throw PostgresError(.unexpectedData, "\(error)") }
    }
  }
}
