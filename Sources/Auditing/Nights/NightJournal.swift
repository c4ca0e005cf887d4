import AuditStore
import Foundation
import Postgres
import Reconciliation
import Reporting
import Run
import Settings
import Streams

/// The journal of a report: the entries that nights have posted for its days, and the entries that this night adds.
final class NightJournal {
  private let plan: AuditPlan
  private let settings: Settings
  private var dimensions: ReportDimensions
  /// The entries that this night adds, in the order in which they are found.
  private let added: SpillSorter
  /// The entries of earlier nights.
  private let posted: SpillSorter
  private let directory: String
  private var record = RecordBytes()
  private var count: UInt64 = 0
  /// Indicates that the run is the night of the newest day, so that its entries are posted.
  let isPosting: Bool
  /// The first business day of the journal. Until then the ledger has its own entries. nil: the run posts nothing.
  private(set) var firstDay: String?

  init(_ plan: AuditPlan, _ settings: Settings, isPosting: Bool, directory: String) {
    (self.plan, self.settings, self.isPosting, self.directory) = (plan, settings, isPosting, directory)
    dimensions = ReportDimensions(apps: settings.appNames, timeZone: settings.timeZone)
    added = SpillSorter(directory: directory, budget: 1 << 20)
    posted = SpillSorter(directory: directory, budget: 1 << 20)
  }

  /// Finds the entries of tonight and of earlier nights. `settlement` are Apple's amounts by fiscal period.
  func prepare(
    _ nights: OrderNights, _ settlement: [(JournalEvent, JournalPosting)], on connection: borrowing BlockingConnection
  ) throws {
    if isPosting {
      let day = plan.period.until
      let first = try JournalTable.firstDay(before: plan.asOf, on: connection)
      let orders = first == nil ? [] : try nights.differingOrders()
      let firstDay = first ?? plan.period.since
      self.firstDay = firstDay
      try addSales(of: nights, differing: orders, on: day, firstDay: firstDay, connection)
      try add(settlement, on: day, firstDay: firstDay, connection)
    }
    var entries = try connection.copyOut(
      try JournalTable.posted(for: plan.period.since...plan.period.until, until: plan.asOf))
    while try entries.advance() {
      if let entry = try JournalTable.entry(entries) { try put(entry, in: posted) }
    }
  }

  private func addSales(
    of nights: OrderNights, differing: Set<Identifier>, on day: String, firstDay: String,
    _ connection: borrowing BlockingConnection
  ) throws {
    // An order is posted at the earliest for the day before it was made. The margin allows for another time zone. An
    // order that was posted earlier, and was given a later date since, differs.
    let since = dimensions.businessDay(of: plan.rules.lookbackStart - .days(3))
    var newest = try OrderedStream(
      connection.copyOut(
        try JournalTable.newest(of: [.refund, .sale], postedSince: since, until: plan.asOf), ids: differing)
    ) { try JournalTable.entry($0) }
    try nights.forEachSale { orderId, now in
      var known: [JournalEvent.Kind: JournalEntry] = [:]
      while try Self.isNext(orderId, &newest), let entry = try newest.next() {
        if let entry { known[entry.event.kind] = entry }
      }
      let wanted: (sale: JournalPosting?, refund: JournalPosting?)
      switch now.disposition {
      // Neither a question without an answer nor an unreadable row changes what is posted.
      case .unconfirmed, .badRow: return
      case .settled, .paidNotDelivered, .deliveredNotPaid, .partlyDelivered, .refunded, .refundedStillDelivered,
        .inFlight, .void, .sandbox:
        wanted = postings(now)
      }
      for (kind, posting) in [(JournalEvent.Kind.sale, wanted.sale), (.refund, wanted.refund)] {
        try add(
          Journal.entries(
            JournalEvent(kind, orderId), newest: known[kind], wanted: posting, on: day, firstDay: firstDay))
      }
    }
    try newest.skipRemaining()
  }

  private static func isNext(_ id: Identifier, _ stream: inout OrderedStream<JournalEntry?>) throws -> Bool {
    try id.bytes.withUnsafeBytes { try stream.isNext(BorrowedText($0)) }
  }

  private func postings(_ now: OrderNights.DecidedOrder) -> (sale: JournalPosting?, refund: JournalPosting?) {
    guard let sale = now.sale, let amount = now.amount else { return (nil, nil) }
    let service = sale.service.map {
      dimensions.businessDay(of: $0.lowerBound)...dimensions.businessDay(of: $0.upperBound)
    }
    var posting = JournalPosting(
      amount: amount, day: dimensions.businessDay(of: now.createdAt), app: dimensions.app(now.bundleId),
      transactionId: sale.transactionId, service: service)
    let sold = posting
    guard let refund = sale.refund else { return (sold, nil) }
    (posting.amount, posting.day) = (refund.amount, dimensions.businessDay(of: refund.date))
    return (sold, posting)
  }

  private func add(
    _ settlement: [(JournalEvent, JournalPosting)], on day: String, firstDay: String,
    _ connection: borrowing BlockingConnection
  ) throws {
    if settlement.isEmpty { return }
    var known: [JournalEvent: JournalEntry] = [:]
    var rows = try connection.copyOut(
      try JournalTable.newest(of: [.commission, .payout, .tax], until: plan.asOf),
      ids: settlement.map { $0.0.subject })
    while try rows.advance() {
      if let entry = try JournalTable.entry(rows) { known[entry.event] = entry }
    }
    for (event, posting) in settlement {
      try add(Journal.entries(event, newest: known[event], wanted: posting, on: day, firstDay: firstDay))
    }
  }

  private func add(_ entries: [JournalEntry]) throws {
    for entry in entries { try put(entry, in: added) }
  }

  private func put(_ entry: JournalEntry, in sorter: SpillSorter) throws {
    record.clear()
    entry.write(to: &record)
    count += 1
    try sorter.add(key: withUnsafeBytes(of: count.bigEndian) { [UInt8]($0) }, content: record.content)
  }

  private func forEach(_ sorter: SpillSorter, _ body: (JournalEntry) throws -> Void) throws {
    try sorter.restart()
    while let next = try sorter.next() {
      var reader = RecordReader(next.content)
      try body(try JournalEntry(from: &reader))
    }
  }

  /// Writes the rows of the journal. An incomplete or held night posts nothing.
  func write(to report: inout ReportWriter, isComplete: Bool) throws {
    let lines = SpillSorter(directory: directory, budget: 1 << 20)
    let imports = SpillSorter(directory: directory, budget: 1 << 20)
    func gather(_ entry: JournalEntry) throws {
      record.clear()
      entry.write(to: &record)
      for line in JournalLine.lines(of: entry, accounts: settings.journalAccounts) {
        try lines.add(key: line.digest, content: record.content)
      }
      if let row = StripeImportLine(entry) { try imports.add(key: row.sortingKey, content: record.content) }
    }
    try forEach(posted, gather)
    if isComplete { try forEach(added, gather) }
    while let next = try lines.next() {
      var reader = RecordReader(next.content)
      let entry = try JournalEntry(from: &reader)
      let line = JournalLine.lines(of: entry, accounts: settings.journalAccounts).first {
        next.key.elementsEqual($0.digest)
      }
      if let line { try report.write(journal: line) }
    }
    try forEach(imports) { entry in if let row = StripeImportLine(entry) { try report.write(stripeImport: row) } }
  }

  /// Posts the entries of tonight.
  func save(_ run: RunRecord, on connection: borrowing BlockingConnection) throws {
    try added.restart()
    try JournalTable.append(run, on: connection) {
      guard let next = try added.next() else { return nil }
      var reader = RecordReader(next.content)
      return try JournalEntry(from: &reader)
    }
  }
}

extension JournalEntry {
  fileprivate func write(to record: inout RecordBytes) {
    record.put(event.kind.rawValue)
    record.put(event.subject)
    record.put(Optional(posting.amount))
    record.put(posting.day)
    record.put(posting.app)
    record.put(posting.transactionId)
    record.put(posting.service?.lowerBound)
    record.put(posting.service?.upperBound)
    record.put(Int64(version))
    record.put(isReversal)
    record.put(postedFor)
  }

  fileprivate init(from record: inout RecordReader) throws(RecordReader.Mismatch) {
    guard let kind = JournalEvent.Kind(rawValue: try record.text()) else { throw RecordReader.Mismatch() }
    let subject = try record.id()
    guard let amount = try record.optionalMoney() else { throw RecordReader.Mismatch() }
    var posting = JournalPosting(
      amount: amount, day: try record.text(), app: try record.optionalText(), transactionId: try record.optionalId())
    let (from, until) = (try record.optionalText(), try record.optionalText())
    if let from, let until { posting.service = from...until }
    let version = Int32(clamping: try record.int())
    let isReversal = try record.flag()
    self.init(
      event: JournalEvent(kind, subject), posting: posting, version: version, isReversal: isReversal,
      postedFor: try record.text())
  }
}
