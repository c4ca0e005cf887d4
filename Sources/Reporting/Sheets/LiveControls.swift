import Reconciliation
import Spreadsheet

/// A number of the first sheet, with the formula over the sheets that computes it.
struct LiveFigure {
  /// nil if the sheets do not contain it.
  let formula: Formula?
  let result: Double
  /// Decimal digits of an amount; nil for a count.
  let digits: UInt8?

  init(_ formula: Formula?, _ result: Double, digits: UInt8?) {
    (self.formula, self.result, self.digits) = (formula, result, digits)
  }

  init(_ formula: Formula?, _ count: Int) { self.init(formula, Double(count), digits: nil) }

  init(_ formula: Formula?, _ units: Int128, _ currency: Currency) {
    self.init(formula, Money.number(units, digits: currency.digits), digits: currency.digits)
  }
}

struct LiveControl {
  let name: String
  let left: LiveFigure
  let right: LiveFigure
  var note: String?

  /// Decimal digits that must agree.
  var digits: UInt8 { left.digits ?? 0 }

  var isBalanced: Bool {
    let unit = 0.5 / Double(Money.powersOfTen[min(Int(digits), Money.powersOfTen.count - 1)])
    return abs(left.result - right.result) < unit
  }
}

struct SummaryCells {
  var opening: CellReference?
  var new: CellReference?
  var closed: CellReference?
  var kinds: CellRange?
  var firstDay: CellReference?
  var lastDay: CellReference?
  var closing: [Currency: CellReference] = [:]
  var journal: [Currency: CellReference] = [:]
}

extension TableFormulas {
  /// The sum of a column of the journal in the currency that a cell names.
  func journal(_ column: String, _ currency: Currency, _ code: CellReference) -> LiveFigure {
    let units = self[.journal].map { $0.tableTotals.units(of: currency.code, column: $0.position(of: column)) }
    return LiveFigure(sum(.journal, column, where: [("currency", .cell(code))]), units ?? 0, currency)
  }
}

struct MoneyTable {
  static let atStakeTitle = "Amount at risk in open findings"

  var header: Int
  var orders: Int
  /// The first column of dispositions; the sum is to its left.
  var firstColumn: Int
  var rows: [Currency: Int] = [:]
  var apart: [Disposition: CellReference] = [:]

  func cell(_ disposition: Disposition, row: Int) -> CellReference {
    CellReference(row: row, column: firstColumn + (Disposition.inMoneyTotals.firstIndex(of: disposition) ?? 0))
  }
}

/// The controls of the workbook. They detect changes that are made after the program's own control totals.
struct LiveControls {
  private(set) var controls: [LiveControl] = []

  init(
    totals: Totals, facts: SummaryFacts, options: ReportOptions, sheets: TableFormulas, money: MoneyTable,
    _ cells: SummaryCells
  ) {
    addOrders(totals, options, sheets, money)
    for (currency, ordered) in totals.ordered.sorted {
      addMoney(currency, ordered, totals, facts, options, sheets, money, cells)
    }
    addFindings(facts, sheets, cells)
    for (currency, closing) in cells.closing.sorted(by: { $0.key < $1.key }) {
      let code = Criterion.cell(CellReference(row: closing.row, column: 0))
      add(
        "At stake \(currency): findings = roll-forward",
        LiveFigure(
          sheets.sum(.findings, "at_stake", where: [("currency", code)]),
          facts.findings.atStake.minorUnits[currency] ?? 0, currency),
        LiveFigure("\(closing)", facts.findings.rollForward.closing(currency), currency))
    }
    for (currency, code) in cells.journal.sorted(by: { $0.key < $1.key }) {
      add(
        "Journal \(currency): debits = credits", sheets.journal("debit", currency, code),
        sheets.journal("credit", currency, code))
    }
    addRows(options, sheets)
  }

  private mutating func add(_ name: String, _ left: LiveFigure, _ right: LiveFigure, note: String? = nil) {
    controls.append(LiveControl(name: name, left: left, right: right, note: note))
  }

  // MARK: - Orders

  private mutating func addOrders(
    _ totals: Totals, _ options: ReportOptions, _ sheets: TableFormulas, _ money: MoneyTable
  ) {
    let inTotals = Disposition.inMoneyTotals.reduce(0) { $0 + totals.ordersByDisposition[$1.index] }
    let apart = [Disposition.sandbox, .badRow].compactMap { money.apart[$0] }
    let users = sheets.sum(.users, "orders")
    let isWhole = options.listsAllOrders
    let counted = options.hasFiles ? "the count of orders.csv" : "the program's own count"
    let note = isWhole ? nil : "The sheet Orders lists only orders with findings, so the left side is \(counted)."
    add(
      "Orders: read = users + sandbox + invalid source rows",
      LiveFigure(isWhole ? sheets.rows(.orders, "disposition") : nil, totals.ordersRead),
      LiveFigure(.sum(of: [users] + apart.map { "\($0)" }), totals.ordersRead), note: note)
    add(
      "Orders: read = sum over outcomes",
      LiveFigure(isWhole ? sheets.rows(.orders, "disposition") : nil, totals.ordersRead),
      LiveFigure(
        .sum(of: Disposition.inMoneyTotals.map { "\(money.cell($0, row: money.orders))" } + apart.map { "\($0)" }),
        totals.ordersRead), note: note)
    add("Orders: users = amounts", LiveFigure(users, inTotals), LiveFigure(sheets.sum(.amounts, "orders"), inTotals))
  }

  private mutating func addMoney(
    _ currency: Currency, _ ordered: Int128, _ totals: Totals, _ facts: SummaryFacts, _ options: ReportOptions,
    _ sheets: TableFormulas, _ money: MoneyTable, _ cells: SummaryCells
  ) {
    guard let row = money.rows[currency] else { return }
    let code = Criterion.cell(CellReference(row: row, column: 0))
    let figure = { (formula: Formula?) in LiveFigure(formula, ordered, currency) }
    func sum(_ table: ReportTable, _ column: String) -> Formula {
      sheets.sum(table, column, where: [("currency", code)])
    }
    func overDispositions(_ table: ReportTable) -> Formula {
      .sum(of: Disposition.inMoneyTotals.map { sum(table, $0.rawValue) })
    }
    let users = sum(.users, "ordered")
    func line(_ what: String, _ left: Formula?, _ right: Formula?, note: String? = nil) {
      add("Ordered \(currency): \(what)", figure(left), figure(right), note: note)
    }
    line("users = amounts", users, sum(.amounts, "ordered"))
    line("users = products", users, sum(.products, "ordered"))
    line("users = their outcomes", users, overDispositions(.users))
    line("amounts = their outcomes", sum(.amounts, "ordered"), overDispositions(.amounts))
    line("products = their outcomes", sum(.products, "ordered"), overDispositions(.products))
    if options.listsAllOrders {
      let ofOrders = sheets.sum(
        .orders, "amount",
        where: [
          ("currency", code), ("disposition", .word("<>Sandbox")), ("disposition", .word("<>Invalid source row")),
        ])
      line("users = orders", users, ofOrders)
    } else {
      let summed = options.hasFiles ? "the sum of orders.csv" : "the program's own sum"
      line("users = orders", users, nil, note: "The right side is \(summed): the sheet lists only some orders.")
    }
    for disposition in Disposition.inMoneyTotals {
      let units = totals.amountByDisposition[disposition.index].minorUnits[currency] ?? 0
      if units == 0 { continue }
      func column(_ table: ReportTable, _ formula: Formula) {
        add(
          "\(disposition.title) \(currency): users = \(table.shape.title.description.lowercased())",
          LiveFigure(sum(.users, disposition.rawValue), units, currency), LiveFigure(formula, units, currency))
      }
      column(.amounts, sum(.amounts, disposition.rawValue))
      column(.products, sum(.products, disposition.rawValue))
      guard options.listsAllOrders else { continue }
      let title = Criterion.cell(money.cell(disposition, row: money.header))
      column(.orders, sheets.sum(.orders, "amount", where: [("currency", code), ("disposition", title)]))
    }
    if let first = cells.firstDay, let last = cells.lastDay,
      facts.dayLines.contains(where: { $0.day == facts.period.until || $0.day == facts.period.since })
    {
      line(
        "users = days", users, sheets.sum(.days, "ordered", of: ("currency", code), from: first, to: last, in: "day"))
    }
  }

  // MARK: - Findings

  private mutating func addFindings(_ facts: SummaryFacts, _ sheets: TableFormulas, _ cells: SummaryCells) {
    let findings = facts.findings
    let rows = LiveFigure(sheets.rows(.findings, "finding_id"), findings.closing)
    if let opening = cells.opening, let new = cells.new, let closed = cells.closed {
      add(
        "Findings: rows = opening + new - closed", rows,
        LiveFigure("\(opening)+\(new)-\(closed)", findings.opening + findings.new - findings.closed))
      if facts.changes.since != nil {
        let counts = facts.changes.counts
        add(
          "Findings: new = changes new or reopened", LiveFigure("\(new)", findings.new),
          LiveFigure(
            .sum(of: [
              sheets.count(.changes, where: [("change", .word("new"))]),
              sheets.count(.changes, where: [("change", .word("reopened"))]),
            ]), counts[.new, default: 0] + counts[.reopened, default: 0]))
        add(
          "Findings: closed = changes closed", LiveFigure("\(closed)", findings.closed),
          LiveFigure(sheets.count(.changes, where: [("change", .word("closed"))]), counts[.closed, default: 0]))
      }
    }
    let kinds = cells.kinds.map { Formula.call("SUM", ["\($0)"]) }
    add("Findings: rows = sum over kinds", rows, LiveFigure(kinds, findings.closing))
    let severities: [(Severity, StaticString)] = [(.critical, "critical"), (.major, "major"), (.minor, "minor")]
    for (severity, word) in severities {
      add(
        "Findings: \(severity.rawValue) = as counted",
        LiveFigure(sheets.count(.findings, where: [("severity", .word(word))]), findings.count(severity)),
        LiveFigure(nil, findings.count(severity)), note: "The right side is the program's own count.")
    }
  }

  // MARK: - Rows of files

  private mutating func addRows(_ options: ReportOptions, _ sheets: TableFormulas) {
    if let tieOut = sheets[.tieOut] {
      add(
        "Tie-out: rows = rows written", LiveFigure(sheets.rows(.tieOut, "level"), tieOut.rowCount),
        LiveFigure(nil, tieOut.rowCount), note: "The right side is the program's own count.")
    }
    guard let receipts = sheets[.receipts] else { return }
    let isWhole = options.listsAllReceipts
    add(
      "Receipts: rows = \(isWhole ? "rows written" : "those that are not verified")",
      LiveFigure(sheets.rows(.receipts, "outcome"), receipts.rowCount), LiveFigure(nil, receipts.rowCount),
      note: isWhole || !options.hasFiles
        ? "The right side is the program's own count." : "All receipts are in receipts.csv.")
  }
}
