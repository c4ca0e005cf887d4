import Reconciliation
import Spreadsheet

/// Writes one report into its staging directory: rows as they come, then what is known only at the end.
///
/// Rows come in the order in which files and sheets have them; nothing is sorted here but what is added up. Memory grows
/// with users and price points, never with orders. Any failure leaves a directory that must not be published.
package struct ReportWriter: ~Copyable {
  private let options: ReportOptions
  private var dimensions: ReportDimensions
  private let csv: CSVFiles?
  private var actions: ActionsFile?
  private var page: ReportPage?
  private var book: ReportBook?
  /// What the rows of the files add up to.
  private var written = WrittenRows()

  /// Creates the files that the formats ask for.
  package init(_ options: ReportOptions) throws(ReportError) {
    try self.init(options, rowsPerSheet: nil)
  }

  /// - Parameter rowsPerSheet: nil for as many as Excel takes.
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

  /// Whether findings are wanted worst first, too: by a workbook or the page.
  package var hasSheets: Bool { book != nil || options.hasPage }

  /// Whether what was considered about a finding is shown: on the page.
  package var hasPage: Bool { options.hasPage }

  /// Whether there is a workbook.
  package var hasBook: Bool { book != nil }

  /// Adds an order of the period; they come in ascending byte order of their ids.
  package mutating func write(order line: OrderLine) throws(ReportError) {
    var line = line
    line.place(in: &dimensions)
    try csv?.orders.add(line)
    written.orders += 1
    try book?.write(line)
  }

  /// Adds an order that settles as it should, in its place among the others.
  package mutating func write(settled sale: SettledSale) throws(ReportError) {
    guard book == nil, let orders = csv?.orders, orders.takesBytes else { return try write(order: OrderLine(sale)) }
    written.orders += 1
    var dimensions = dimensions
    defer { self.dimensions = dimensions }
    try orders.add(
      {
        var line = OrderLine(sale)
        line.place(in: &dimensions)
        return line
      }, put: { $0.put(sale, in: &dimensions) })
  }

  /// For rows of orders and receipts that are made elsewhere; nil where they are shown in more than one way.
  package var rowText: RowText? {
    guard book == nil, let csv, csv.orders.takesBytes else { return nil }
    return RowText(dimensions: dimensions)
  }

  /// Adds an order as `rowText` has made its row.
  package mutating func write(madeOrder row: UnsafeRawBufferPointer) throws(ReportError) {
    try csv?.orders.add(made: row)
    written.orders += 1
  }

  /// The same of a receipt.
  package mutating func write(madeReceipt row: UnsafeRawBufferPointer) throws(ReportError) {
    try csv?.receipts.add(made: row)
  }

  /// Adds a finding to the file; they come in ascending order of ``ReportedFinding/findingId``.
  package mutating func write(finding: ReportedFinding) throws(ReportError) {
    let line = FindingLine(finding, asOf: options.asOf, in: &dimensions, pseudonyms: options.pseudonyms)
    try csv?.findings.add(line)
    try actions?.add(line)
  }

  /// Adds a finding to the workbook; they come in the order of ``ReportedFinding/urgency(asOf:)``, and after the orders, to
  /// whose rows they lead.
  package mutating func writeToSheet(finding: ReportedFinding) throws(ReportError) {
    let line = FindingLine(finding, asOf: options.asOf, in: &dimensions, pseudonyms: options.pseudonyms)
    try book?.write(line)
    page?.add(line)
  }

  /// Adds a change; they come in ascending order of ``ChangeRow/sortingKey``.
  package mutating func write(change: ChangeRow) throws(ReportError) {
    var change = change
    change.place(in: &dimensions)
    try csv?.changes.add(change)
    try book?.write(change)
  }

  /// Adds a receipt; they come in ascending byte order of their ids.
  package mutating func write(receipt: Receipt) throws(ReportError) {
    let line = ReceiptLine(receipt)
    try csv?.receipts.add(line)
    try book?.write(line)
  }

  /// As the receipt that `whole` makes of it.
  package mutating func write(receipt: PlainReceipt, _ whole: () throws -> Receipt) throws {
    guard book == nil, let receipts = csv?.receipts, receipts.takesBytes else { return try write(receipt: whole()) }
    try receipts.add({ ReceiptLine(try whole()) }, put: { $0.put(receipt) })
  }

  /// Adds a refund of the period; they come in ascending byte order of their transactions' ids.
  package mutating func write(refund: RefundRow) throws(ReportError) {
    var refund = refund
    refund.place(in: dimensions)
    try csv?.refunds.add(refund)
    try book?.write(refund)
  }

  /// Adds sandbox purchases; they come in ascending order of user, product and currency.
  package mutating func write(sandbox row: SandboxRow) throws(ReportError) {
    try csv?.sandbox.add(row)
    try book?.write(row)
  }

  /// Adds a row of the tie-out to the file; they come in the byte order of their keys. Without ``ReportOptions/hasTieOut`` it
  /// is left out.
  package mutating func write(tieOut line: TieOutLine) throws(ReportError) { try csv?.tieOut?.add(line) }

  /// Adds a row of the tie-out to the workbook; units come before money, and countries are in the file alone.
  package mutating func writeToSheet(tieOut line: TieOutLine) throws(ReportError) { try book?.write(line) }

  /// Adds a fiscal period; they come in the order of periods and currencies.
  package mutating func write(settlement line: SettlementLine) throws(ReportError) {
    try csv?.settlement?.add(line)
    try book?.write(line)
  }

  /// Adds a user's line; they come in ascending order of user and currency, where `finish` is given totals without users.
  package mutating func write(user key: Totals.UserKey, _ sums: Totals.Line) throws(ReportError) {
    let line = UserLine(key, sums)
    try csv?.users.add(line)
    written.users[key.currency, default: 0] += sums.ordered
    try book?.write(line)
  }

  /// Writes sums, summary and check sums, and brings everything to disk.
  ///
  /// - Returns: the files, sorted by name, as `SHA256SUMS` lists them.
  /// - Throws: ``ReportError/unbalanced(_:)`` before anything is finished when any control total does not balance.
  package consuming func finish(totals: Totals, summary: SummaryFacts) throws(ReportError) -> [ReportFile] {
    try writeSums(totals)
    var control = summary.control(totals)
    control.insert(contentsOf: written.control(totals), at: min(1, control.count))
    let unbalanced = control.filter { !$0.isBalanced }
    guard unbalanced.isEmpty else { throw ReportError.unbalanced(unbalanced) }
    for day in summary.dayLines { try book?.write(day) }
    let options = options
    var files: [ReportFile] = []
    if let actions = actions.take() { files.append(try actions.finish()) }
    if let page {
      files.append(
        try ReportWriter.write(
          page.encoded(totals: totals, summary: summary), as: ReportPage.fileName, in: options.directory))
    }
    if let csv {
      files += try csv.finish()
      files.append(
        try ReportWriter.write(
          DataPackage(options, summary: summary, files: files).encoded(), as: DataPackage.fileName,
          in: options.directory))
    }
    let document = try ReportWriter.write(
      SummaryDocument(totals: totals, summary: summary, control: control, asOf: options.asOf).encoded(),
      as: SummaryDocument.fileName, in: options.directory)
    files.append(document)
    if let book = book.take() {
      try book.finish(totals: totals, summary: summary, summaryDigest: document.sha256)
      files.append(try OutputFile.describe(directory: options.directory, name: ReportBook.fileName(options)))
    }
    files.sort { Identifier($0.name) < Identifier($1.name) }
    // The format of sha256sum(1): the hash, two spaces, the name.
    let sums = files.map { "\($0.sha256)  \($0.name)\n" }.joined()
    _ = try ReportWriter.write(Array(sums.utf8), as: "SHA256SUMS", in: options.directory)
    try OutputFile.synchronize(directory: options.directory)
    return files
  }

  private mutating func writeSums(_ totals: Totals) throws(ReportError) {
    for key in totals.users.keys.sorted(by: { ($0.userId, $0.currency) < ($1.userId, $1.currency) }) {
      try write(user: key, totals.users[key])
    }
    // Orders that name the only app and orders that name none are of one app.
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
      let line = ProductLine(key, app: app, sums)
      try csv?.products.add(line)
      written.products[key.currency, default: 0] += sums.ordered
      try book?.write(line)
    }
    let pricePoints = byApp(totals.pricePoints, \.bundleId).sorted {
      ($0.key.currency, $0.key.minorUnits, $0.key.productId, $0.app ?? "")
        < ($1.key.currency, $1.key.minorUnits, $1.key.productId, $1.app ?? "")
    }
    for (app, key, sums) in pricePoints {
      let line = PricePointLine(key, app: app, sums)
      try csv?.amounts.add(line)
      written.amounts[key.currency, default: 0] += Int128(key.minorUnits) * Int128(sums.orders)
      try book?.write(line)
    }
  }

  private static func write(_ content: [UInt8], as name: String, in directory: String) throws(ReportError) -> ReportFile
  {
    var file = try OutputFile(directory: directory, name: name)
    try file.write(content)
    return try file.finish()
  }
}
