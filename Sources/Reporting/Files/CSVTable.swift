import Glibc

/// A table as a CSV file, with a second file for Excel if it is wanted.
struct CSVTable<Row: TableRow> {
  private let plain: CSVFile
  private let excel: CSVFile?
  private let put: (Row, inout CSVText) -> Void
  /// True if rows go unchanged into one file, so that their bytes can be copied.
  let takesBytes: Bool

  init(_ options: ReportOptions) throws(ReportError) {
    guard let name = Row.table.fileName else {
      throw ReportError.cannotWrite(file: Row.table.shape.title.description, systemError: EINVAL)
    }
    let names = Row.columns.map(\.head.name)
    plain = try CSVFile(directory: options.directory, name: name, header: names, dialect: .plain)
    excel =
      options.formats.contains(.csvExcel)
      ? try CSVFile(
        directory: options.directory, name: ReportTable.excelFileName(name), header: names,
        dialect: .excel(options.excelLocale)) : nil
    put = Self.putting(Row.columns[...], options.pseudonyms)
    takesBytes = excel == nil && options.pseudonyms == nil
  }

  /// Each closure captures the one for the next cells: calls of millions of rows count no references.
  private static func putting(
    _ columns: ArraySlice<Column<Row>>, _ pseudonyms: Pseudonyms?
  ) -> (Row, inout CSVText) -> Void {
    guard let column = columns.first else { return { _, _ in } }
    let (cell, type, isId) = (column.cell, column.head.type, column.head.type.isId)
    let further = putting(columns.dropFirst(), pseudonyms)
    guard let pseudonyms else {
      return { row, text in
        text.put(cell(row), isId: isId)
        further(row, &text)
      }
    }
    return { row, text in
      text.put(pseudonyms.apply(to: cell(row), as: type), isId: isId)
      further(row, &text)
    }
  }

  func add(_ row: Row) throws(ReportError) {
    put(row, &plain.text)
    if let excel { put(row, &excel.text) }
    try plain.endRow()
    try excel?.endRow()
  }

  /// Adds a row whose cells `put` writes as the columns would. Requires `takesBytes`.
  func add(_ row: () throws -> Row, put: (inout CSVText) -> Void) throws(ReportError) {
    assert(
      (try? row()).map { row in Self.bytes { self.put(row, &$0) } } == Self.bytes(put), "the columns show another row")
    put(&plain.text)
    try plain.endRow()
  }

  /// Adds a row made by `RowText`. Requires `takesBytes`.
  func add(made row: UnsafeRawBufferPointer) throws(ReportError) {
    plain.text.append(row)
    try plain.countRow()
  }

  /// Writes the cells of a row into a file that takes bytes.
  static var putting: (Row, inout CSVText) -> Void { putting(Row.columns[...], nil) }

  private static func bytes(_ put: (inout CSVText) -> Void) -> [UInt8] {
    var text = CSVText(capacity: 1_024)
    put(&text)
    return text.bytes
  }

  func finish() throws(ReportError) -> [ReportFile] {
    let file = try plain.finish()
    guard let excel else { return [file] }
    return [file, try excel.finish()]
  }
}

/// One CSV file, used by one thread at a time. Dropped without `finish`, it is closed as it is.
final class CSVFile {
  var text: CSVText
  private var file: OutputFile?
  private let name: String
  private var rows = 0

  private static let blockSize = 1 << 17

  init(directory: String, name: String, header: [String], dialect: CSVDialect) throws(ReportError) {
    var file = try OutputFile(directory: directory, name: name)
    try file.write(dialect.mark)
    var text = CSVText(capacity: CSVFile.blockSize + (1 << 14), dialect: dialect)
    for name in header { text.text(name) }
    text.endRow()
    self.text = text
    self.name = name
    self.file = Optional(consume file)
  }

  func endRow() throws(ReportError) {
    text.endRow()
    try countRow()
  }

  func countRow() throws(ReportError) {
    rows += 1
    if text.count >= CSVFile.blockSize { try flush() }
  }

  private func flush() throws(ReportError) {
    try file?.write(text)
    text.removeAll()
  }

  func finish() throws(ReportError) -> ReportFile {
    try flush()
    guard let file = file.take() else { throw ReportError.cannotWrite(file: name, systemError: EBADF) }
    return try file.finish(rows: rows)
  }
}

struct CSVFiles {
  let findings: CSVTable<FindingLine>
  let changes: CSVTable<ChangeRow>
  let tieOut: CSVTable<TieOutLine>?
  let settlement: CSVTable<SettlementLine>?
  let products: CSVTable<ProductLine>
  let users: CSVTable<UserLine>
  let amounts: CSVTable<PricePointLine>
  let refunds: CSVTable<RefundRow>
  let refundRequests: CSVTable<RefundRequestRow>
  let journal: CSVTable<JournalLine>?
  let stripeImport: CSVTable<StripeImportLine>?
  let sandbox: CSVTable<SandboxRow>
  let receipts: CSVTable<ReceiptLine>
  let orders: CSVTable<OrderLine>

  init(_ options: ReportOptions) throws(ReportError) {
    findings = try CSVTable(options)
    changes = try CSVTable(options)
    tieOut = options.hasTieOut ? try CSVTable(options) : nil
    settlement = options.hasTieOut ? try CSVTable(options) : nil
    products = try CSVTable(options)
    users = try CSVTable(options)
    amounts = try CSVTable(options)
    refunds = try CSVTable(options)
    refundRequests = try CSVTable(options)
    journal = options.hasJournal ? try CSVTable(options) : nil
    stripeImport = options.formats.contains(.stripeImport) ? try CSVTable(options) : nil
    sandbox = try CSVTable(options)
    receipts = try CSVTable(options)
    orders = try CSVTable(options)
  }

  func finish() throws(ReportError) -> [ReportFile] {
    try findings.finish() + changes.finish() + (tieOut?.finish() ?? []) + (settlement?.finish() ?? [])
      + products.finish() + users.finish() + amounts.finish() + refunds.finish() + refundRequests.finish()
      + (journal?.finish() ?? []) + (stripeImport?.finish() ?? [])
      + sandbox.finish() + receipts.finish() + orders.finish()
  }
}

extension CSVDialect {
  /// For a double click in Excel: a byte order mark, the locale's separators, and every digit of IDs.
  static func excel(_ locale: ExcelLocale) -> CSVDialect {
    CSVDialect(
      separator: UInt8(ascii: locale.separatesBySemicolon ? ";" : ","),
      decimalMark: UInt8(ascii: locale.separatesBySemicolon ? "," : "."), timeMark: UInt8(ascii: " "),
      namesZone: false, marksIds: true, mark: [0xEF, 0xBB, 0xBF])
  }
}
