import Reconciliation

/// `datapackage.json`: a Tabular Data Package with the schemas of the CSV files.
/// https://specs.frictionlessdata.io, version 1, which readers of version 2 accept.
struct DataPackage: Encodable {
  struct Resource: Encodable {
    let profile = "tabular-data-resource"
    let name: String
    let path: String
    let title: String
    let description: String
    let format = "csv"
    let mediatype = "text/csv"
    let encoding = "utf-8"
    let bytes: Int
    let hash: String
    let rows: Int?
    let dialect = Dialect()
    let schema: Schema
  }

  struct Dialect: Encodable {
    let delimiter = ","
    let lineTerminator = "\r\n"
    let quoteChar = "\""
    let doubleQuote = true
    let skipInitialSpace = false
    let header = true
    let caseSensitiveHeader = true
  }

  struct Schema: Encodable {
    let fields: [Field]
    let missingValues = [""]
    /// nil if rows may lack a part of the key, or share it.
    let primaryKey: [String]?
  }

  struct Field: Encodable {
    let name: String
    let title: String
    let type: String
    let format: String?
    let description: String
    /// The unit of a number. An extension, which the standard permits.
    let unit: String?
    let constraints: Constraints?
  }

  struct Constraints: Encodable {
    var required: Bool?
    var unique: Bool?
    var `enum`: [String]?
    var pattern: String?
    var minimum: Int?
    var maximum: Int?
  }

  let profile = "tabular-data-package"
  let name: String
  let title: String
  let description: String
  let created: String
  let resources: [Resource]

  init(_ options: ReportOptions, summary: SummaryFacts, files: [ReportFile]) {
    name = "night-audit-\(options.period.folderName)"
    title = "App Store night audit \(options.period.days) (\(summary.timeZone))"
    description = """
      Orders, payments and deliveries compared, for \(options.apps.joined(separator: ", ")), as of \(options.asOf.text). \
      Amounts are customer amounts as the shop recorded them, in major units of the currency of their row; they are not \
      Apple's proceeds and not for revenue recognition. Times are UTC. A text that a spreadsheet would run as a formula \
      begins with an apostrophe. Files share ids, but no foreign key holds throughout: each file has a scope of its own.
      """
    created = options.asOf.text
    resources = ReportTable.allCases.compactMap { table in
      files.first { $0.name == table.fileName }.map { Resource(table, $0) }
    }
  }

  func encoded() throws(ReportError) -> [UInt8] { try JSONText.document(self, named: DataPackage.fileName) }

  static let fileName = "datapackage.json"
}

extension DataPackage.Resource {
  fileprivate init(_ table: ReportTable, _ file: ReportFile) {
    name = String(file.name.prefix { $0 != "." })
    path = file.name
    title = name.displayText
    description = table.shape.meaning
    bytes = file.bytes
    hash = "sha256:\(file.sha256)"
    rows = file.rows
    let key = table.shape.surePrimaryKey
    schema = DataPackage.Schema(
      fields: table.columns.map { DataPackage.Field($0, of: table) }, primaryKey: key.isEmpty ? nil : key)
  }
}

extension DataPackage.Field {
  fileprivate init(_ column: ColumnHead, of table: ReportTable) {
    name = column.name
    title = column.title
    description = column.meaning
    var constraints = DataPackage.Constraints()
    let primaryKey = table.shape.surePrimaryKey
    if primaryKey.contains(column.name) {
      constraints.required = true
      if primaryKey.count == 1 { constraints.unique = true }
    }
    var (type, format, unit): (String, String?, String?) = ("string", nil, nil)
    let money = "major units of the currency in the field currency"
    switch column.type {
    case .text, .id, .user, .currency, .orderLink, .people, .prose: break
    case .digest: constraints.pattern = "[0-9a-f]{32}"
    case .word(let words), .spelt(let words): constraints.enum = words.isEmpty ? nil : words
    case .status: constraints.enum = FindingStatus.allCases.map(\.rawValue)
    case .flag: type = "boolean"
    case .due, .day: (type, format) = ("date", "%Y-%m-%d")
    case .count(let counted): (type, unit, constraints.minimum) = ("integer", counted, 0)
    case .tally: (type, unit, constraints.minimum) = ("integer", "1", 0)
    case .number: (type, unit) = ("integer", "1")
    case .code: type = "integer"
    case .amount, .share, .price:
      (type, unit) = ("number", money)
      if table == .refunds { constraints.maximum = 0 }
    case .exact: (type, unit) = ("number", "units, or major units of the currency in the field currency")
    case .percentage: (type, unit, constraints.minimum, constraints.maximum) = ("number", "%", 0, 100)
    case .instant: (type, format) = ("datetime", "%Y-%m-%dT%H:%M:%SZ")
    }
    (self.type, self.format, self.unit) = (type, format, unit)
    self.constraints = constraints.isEmpty ? nil : constraints
  }
}

extension DataPackage.Constraints {
  fileprivate var isEmpty: Bool {
    required == nil && unique == nil && `enum` == nil && pattern == nil && minimum == nil && maximum == nil
  }
}
