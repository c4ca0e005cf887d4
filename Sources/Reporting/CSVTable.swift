/// A table as a CSV file.
struct CSVTable: ~Copyable {
  private var text = CSVText(capacity: CSVTable.blockSize + (1 << 14))
  private var file: OutputFile
  private var rows = 0

  private static let blockSize = 1 << 17

  /// Creates the file with its header row.
  init(_ table: ReportTable, directory: String) throws(ReportError) {
    file = try OutputFile(directory: directory, name: table.fileName)
    for column in table.columns { text.text(column.name) }
    text.endRow()
  }

  /// Adds the row that the closure's cells make.
  mutating func row(_ cells: (inout CSVText) -> Void) throws(ReportError) {
    cells(&text)
    text.endRow()
    rows += 1
    if text.count >= CSVTable.blockSize { try flush() }
  }

  private mutating func flush() throws(ReportError) {
    try file.write(text)
    text.removeAll()
  }

  /// Brings the file to disk.
  consuming func finish() throws(ReportError) -> ReportFile {
    try flush()
    return try file.finish(rows: rows)
  }
}

/// Every CSV file of a report.
struct CSVFiles: ~Copyable {
  var findings: CSVTable
  var users: CSVTable
  var amounts: CSVTable
  var refunds: CSVTable
  var sandbox: CSVTable
  var receipts: CSVTable
  var orders: CSVTable

  init(directory: String) throws(ReportError) {
    let findings = try CSVTable(.findings, directory: directory)
    let users = try CSVTable(.users, directory: directory)
    let amounts = try CSVTable(.amounts, directory: directory)
    let refunds = try CSVTable(.refunds, directory: directory)
    let sandbox = try CSVTable(.sandbox, directory: directory)
    let receipts = try CSVTable(.receipts, directory: directory)
    let orders = try CSVTable(.orders, directory: directory)
    self.findings = findings
    self.users = users
    self.amounts = amounts
    self.refunds = refunds
    self.sandbox = sandbox
    self.receipts = receipts
    self.orders = orders
  }

  /// Brings all of them to disk.
  consuming func finish() throws(ReportError) -> [ReportFile] {
    [
      try findings.finish(), try users.finish(), try amounts.finish(), try refunds.finish(), try sandbox.finish(),
      try receipts.finish(), try orders.finish(),
    ]
  }
}
