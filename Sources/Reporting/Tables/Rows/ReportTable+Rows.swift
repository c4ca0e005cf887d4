import Reconciliation
import Spreadsheet

extension ReportTable {
  var row: any TableRow.Type {
    switch self {
    case .findings, .periodFindings: FindingLine.self
    case .changes: ChangeRow.self
    case .days: DayLine.self
    case .tieOut: TieOutLine.self
    case .settlement: SettlementLine.self
    case .products: ProductLine.self
    case .users: UserLine.self
    case .amounts: PricePointLine.self
    case .refunds: RefundRow.self
    case .refundRequests: RefundRequestRow.self
    case .journal: JournalLine.self
    case .stripeImport: StripeImportLine.self
    case .sandbox: SandboxRow.self
    case .receipts: Receipt.self
    case .orders: OrderLine.self
    }
  }

  var shape: Shape { self == .periodFindings ? FindingLine.periodShape : row.shape }

  var columns: [ColumnHead] { row.heads }

  func hasSheet(_ options: ReportOptions) -> Bool { self != .stripeImport && isConfigured(options) }

  func hasFile(_ options: ReportOptions) -> Bool { fileName != nil && isConfigured(options) }

  private func isConfigured(_ options: ReportOptions) -> Bool {
    switch self {
    case .periodFindings: options.period.isRange
    case .tieOut, .settlement: options.hasTieOut
    case .journal: options.hasJournal
    case .stripeImport: options.formats.contains(.stripeImport)
    case .findings, .changes, .days, .products, .users, .amounts, .refunds, .refundRequests, .sandbox, .receipts,
      .orders:
      true
    }
  }

  var fileName: String? { shape.fileName }

  /// The sheet of a table, or a continuation of it.
  func sheetName(part: Int) -> SheetName { SheetName(shape.title, part: part) }

  /// For each sheet column its position in the file.
  var sheetColumns: [Int] {
    let columns = columns
    let order = shape.sheetOrder
    if order.isEmpty { return Array(columns.indices) }
    let first = order.compactMap { name in columns.firstIndex { $0.name == name } }
    return first + columns.indices.filter { !first.contains($0) }
  }
}
