import Glibc
import Reconciliation

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

/// The tables of a report that have a file.
struct CSVFiles {
  let orders: CSVTable<OrderLine>
  let receipts: CSVTable<Receipt>
  /// By the table's raw value; nil for a table without a file.
  private let others: [(any FinishingTable)?]

  init(_ options: ReportOptions) throws(ReportError) {
    var others: [(any FinishingTable)?] = []
    for table in ReportTable.allCases {
      let isOther = table.hasFile(options) && table != .orders && table != .receipts
      others.append(isOther ? try table.row.file(options) : nil)
    }
    self.others = others
    receipts = try CSVTable(options)
    orders = try CSVTable(options)
  }

  /// Adds a row to its table, if that has a file. Orders and receipts are added to theirs.
  func add<Row: TableRow>(_ row: Row) throws(ReportError) {
    try (others[Row.table.rawValue] as? CSVTable<Row>)?.add(row)
  }

  func finish() throws(ReportError) -> [ReportFile] {
    var files = try orders.finish() + receipts.finish()
    for table in others { files += try table?.finish() ?? [] }
    return files
  }
}

private protocol FinishingTable {
  func finish() throws(ReportError) -> [ReportFile]
}

extension CSVTable: FinishingTable {}

extension TableRow {
  fileprivate static func file(_ options: ReportOptions) throws(ReportError) -> any FinishingTable {
    try CSVTable<Self>(options)
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
