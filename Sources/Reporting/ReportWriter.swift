import Reconciliation
import Spreadsheet

/// Writes one report into its staging directory: rows as they arrive, then the summary. The caller sorts rows. Memory
/// grows with users and price points, not with orders. After an error the directory must not be published.
package struct ReportWriter: ~Copyable {
  private let options: ReportOptions
  private var dimensions: ReportDimensions
  private let csv: CSVFiles?
  private var actions: ActionsFile?
  private var page: ReportPage?
  private var book: ReportBook?
  private var written = WrittenRows()
  /// The open refund requests, for the sheet in the order of their deadlines.
  private var refundRequests: [RefundRequestRow] = []

  package init(_ options: ReportOptions) throws(ReportError) { try self.init(options, rowsPerSheet: nil) }

  init(_ options: ReportOptions, rowsPerSheet: Int?) throws(ReportError) {
    let files = options.hasFiles ? try CSVFiles(options) : nil
    let actions = try ActionsFile(options)
    book =
      options.formats.contains(.xlsx)
      ? try inWorkbook { () throws(SpreadsheetError) in try ReportBook(options, rowsPerSheet: rowsPerSheet) } : nil
    self.options = options
    dimensions = options.dimensions
    csv = files
    self.actions = consume actions
    page = options.hasPage ? ReportPage(options) : nil
  }

  private static let sums = "SHA256SUMS"

  /// True for the name of a file that a report can have.
  package static func writes(_ name: String) -> Bool {
    let tables = ReportTable.allCases.compactMap(\.fileName)
    let documents = [
      sums, SummaryDocument.fileName, ActionsFile.fileName, ReportPage.fileName, DataPackage.fileName,
    ]
    return (documents + tables + tables.map(ReportTable.excelFileName)).contains(name)
      || name.hasPrefix("night-audit-") && name.hasSuffix(".xlsx")
  }

  /// True if findings are also needed in order of urgency.
  package var hasSheets: Bool { book != nil || options.hasPage }

  /// True if explanations of findings are needed.
  package var hasPage: Bool { options.hasPage }

  package var hasBook: Bool { book != nil }

  /// Adds an order of the period, in byte order of IDs.
  package mutating func write(order line: OrderLine) throws(ReportError) {
    var line = line
    line.place(in: &dimensions)
    try csv?.orders.add(line)
    written.orders += 1
    try book?.write(line)
  }

  /// Adds a settled order, in its place among the others.
  package mutating func write(settled sale: SettledSale) throws(ReportError) {
    guard book == nil, let orders = csv?.orders, orders.takesBytes else { return try write(order: OrderLine(sale)) }
    written.orders += 1
    let (app, day) = (dimensions.app(sale.order.bundleId), dimensions.businessDay(of: sale.order.createdAt))
    try orders.add(
      {
        var line = OrderLine(sale)
        (line.app, line.businessDay) = (app, day)
        return line
      }, put: { $0.put(sale, app: app, day: day) })
  }

  /// Makes rows of orders and receipts elsewhere; nil if rows go to more than one file.
  package var rowText: RowText? {
    guard book == nil, let csv, csv.orders.takesBytes else { return nil }
    return RowText(dimensions: dimensions)
  }

  package mutating func write(madeOrder row: UnsafeRawBufferPointer) throws(ReportError) {
    try csv?.orders.add(made: row)
    written.orders += 1
  }

  package mutating func write(madeReceipt row: UnsafeRawBufferPointer) throws(ReportError) {
    try csv?.receipts.add(made: row)
  }

  /// Adds a finding to the files, in order of ``ReportedFinding/findingId``.
  package mutating func write(finding: ReportedFinding) throws(ReportError) {
    let line = FindingLine(finding, asOf: options.asOf, in: &dimensions, pseudonyms: options.pseudonyms)
    try csv?.add(line)
    try actions?.add(line)
  }

  /// Adds a finding to workbook and page, in order of ``ReportedFinding/urgency(asOf:)``. Comes after the orders,
  /// because its row links to theirs.
  package mutating func writeToSheet(finding: ReportedFinding) throws(ReportError) {
    let line = FindingLine(finding, asOf: options.asOf, in: &dimensions, pseudonyms: options.pseudonyms)
    try book?.write(line)
    page?.add(line)
  }

  /// Adds a change, in order of ``ChangeRow/sortingKey``.
  package mutating func write(change: ChangeRow) throws(ReportError) {
    var change = change
    change.place(in: &dimensions)
    if change.change == .adjusted, !change.isRefund, let day = change.day {
      written.adjustedOrders[day, default: 0] += 1
    }
    try add(change)
  }

  /// Adds a receipt, in byte order of IDs.
  package mutating func write(receipt: Receipt) throws(ReportError) {
    try csv?.receipts.add(receipt)
    try book?.write(receipt)
  }

  /// Adds a receipt; calls `whole` only if the bytes of its row cannot be copied.
  package mutating func write(receipt: BorrowedReceipt, _ whole: () throws -> Receipt) throws {
    guard book == nil, let receipts = csv?.receipts, receipts.takesBytes else { return try write(receipt: whole()) }
    try receipts.add(whole, put: { $0.put(receipt) })
  }

  /// Adds a refund of the period, in byte order of transaction IDs.
  package mutating func write(refund: RefundRow) throws(ReportError) {
    var refund = refund
    refund.place(in: dimensions)
    if let amount = refund.negativeAmount { written.refunded.add(amount) }
    try add(refund)
  }

  /// Adds an open refund request, in byte order of transaction IDs.
  package mutating func write(refundRequest row: RefundRequestRow) throws(ReportError) {
    var row = row
    row.place(in: dimensions)
    try csv?.add(row)
    refundRequests.append(row)
  }

  /// Adds a line of the journal, in order of digests.
  package mutating func write(journal line: JournalLine) throws(ReportError) {
    written.add(line)
    try add(line)
  }

  /// Adds a row of `stripe-import.csv`, in order of ``StripeImportLine/sortingKey``.
  package mutating func write(stripeImport line: StripeImportLine) throws(ReportError) { try csv?.add(line) }

  /// Adds sandbox purchases, in order of user, product and currency.
  package mutating func write(sandbox row: SandboxRow) throws(ReportError) { try add(row) }

  /// Adds a row of the tie-out to the file, in byte order of keys. Needs ``ReportOptions/hasTieOut``.
  package mutating func write(tieOut line: TieOutLine) throws(ReportError) { try csv?.add(line) }

  /// Adds a row of the tie-out to the workbook, units before amounts, without countries.
  package mutating func writeToSheet(tieOut line: TieOutLine) throws(ReportError) { try book?.write(line) }

  /// Adds a fiscal period, in order of periods and currencies.
  package mutating func write(settlement line: SettlementLine) throws(ReportError) { try add(line) }

  /// Adds the sums of a user, in order of user and currency, if `finish` gets totals without users.
  package mutating func write(user key: Totals.UserKey, _ sums: Totals.Line) throws(ReportError) {
    written.add(user: options.pseudonyms?.pseudonym(of: key.userId) ?? key.userId.text, key.currency, sums)
    try add(UserLine(key: key, sums: sums))
  }

  private mutating func add<Row: TableRow>(_ row: Row) throws(ReportError) {
    try csv?.add(row)
    try book?.write(row)
  }

  /// Writes sums, summary and checksums, syncs everything, and returns the files sorted by name.
  /// - Throws: ``ReportError/unbalanced(_:)`` before any file is finished if a control total does not balance.
  package consuming func finish(totals: Totals, summary: SummaryFacts) throws(ReportError) -> [ReportFile] {
    var summary = summary
    try writeSums(totals)
    var control = summary.control(totals)
    control.insert(contentsOf: written.control(totals), at: min(1, control.count))
    let unbalanced = control.filter { !$0.isBalanced }
    guard unbalanced.isEmpty else { throw ReportError.unbalanced(unbalanced) }
    for day in summary.dayLines { try book?.write(day) }
    (summary.refundRates, summary.refunded) = (written.refundRates, written.refunded)
    for day in Set(summary.dayLines.filter { $0.reported == nil }.map(\.day)) {
      summary.unreportedAdjustments += written.adjustedOrders[day] ?? 0
    }
    for request in refundRequests.sorted(by: {
      ($0.request.deadline, $0.transactionId) < ($1.request.deadline, $1.transactionId)
    }) {
      summary.refundRequests.add(request.request, asOf: options.asOf)
      try book?.write(request)
    }
    let options = options
    func write(_ content: [UInt8], as name: String) throws(ReportError) -> ReportFile {
      var file = try OutputFile(directory: options.directory, name: name)
      try file.write(content)
      return try file.finish()
    }
    let document = try write(
      SummaryDocument(totals: totals, summary: summary, control: control, asOf: options.asOf).encoded(),
      as: SummaryDocument.fileName)
    var files = [document]
    // The times of page and sheets are local; those of other files are in UTC.
    var clock = LocalClock(timeZone: options.timeZone)
    summary.showLocalTimes(&clock)
    if let actions = actions.take() { files.append(try actions.finish()) }
    if let page {
      let content = try page.encoded(totals: totals, summary: summary, control: control)
      files.append(try write(content, as: ReportPage.fileName))
    }
    if let csv {
      files += try csv.finish()
      let package = try DataPackage(options, summary: summary, files: files).encoded()
      files.append(try write(package, as: DataPackage.fileName))
    }
    if let book = book.take() {
      try book.finish(totals: totals, summary: summary, summaryDigest: document.sha256)
      files.append(try OutputFile.describe(directory: options.directory, name: ReportBook.fileName(options)))
    }
    files.sort { Identifier($0.name) < Identifier($1.name) }
    // The format of sha256sum(1): hash, two spaces, name.
    let sums = files.map { "\($0.sha256)  \($0.name)\n" }.joined()
    _ = try write(Array(sums.utf8), as: ReportWriter.sums)
    try OutputFile.synchronize(directory: options.directory)
    return files
  }

  private mutating func writeSums(_ totals: Totals) throws(ReportError) {
    for key in totals.users.keys.sorted(by: { ($0.userId, $0.currency) < ($1.userId, $1.currency) }) {
      try write(user: key, totals.users[key])
    }
    // An order without a bundle ID belongs to the only app.
    func byApp<Key: Hashable & Sendable>(_ lines: TotalLines<Key>, _ bundleId: WritableKeyPath<Key, Identifier?>)
      -> [(app: String?, key: Key, sums: Totals.Line)]
    {
      var found: [Key: (app: String?, sums: Totals.Line)] = [:]
      for (key, sums) in lines {
        let app = dimensions.app(key[keyPath: bundleId]?.text)
        var key = key
        key[keyPath: bundleId] = app.map { Identifier($0) }
        found[key, default: (app, Totals.Line())].sums.add(sums)
      }
      return found.map { ($0.value.app, $0.key, $0.value.sums) }
    }
    let products = byApp(totals.products, \.bundleId).sorted {
      ($0.app ?? "", $0.key.productId, $0.key.country?.letters ?? 0, $0.key.currency)
        < ($1.app ?? "", $1.key.productId, $1.key.country?.letters ?? 0, $1.key.currency)
    }
    for (app, key, sums) in products {
      try add(ProductLine(key: key, app: app, sums: sums))
      written.add(
        product: [key.productId.text, key.country?.code].compactMap(\.self).joined(separator: " · "), key.currency, sums
      )
    }
    let pricePoints = byApp(totals.pricePoints, \.bundleId).sorted {
      ($0.key.currency, $0.key.minorUnits, $0.key.productId, $0.app ?? "")
        < ($1.key.currency, $1.key.minorUnits, $1.key.productId, $1.app ?? "")
    }
    for (app, key, sums) in pricePoints {
      try add(PricePointLine(key: key, app: app, sums: sums))
      written.amounts[key.currency, default: 0] += Int128(key.minorUnits) * Int128(sums.orders)
    }
  }
}
