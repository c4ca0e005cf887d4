import Reconciliation

/// A row of the sheet Days: a day and currency, with the amounts now and as reported at the time.
package struct DayLine: Hashable, Sendable {
  package var day: String
  package var currency: Currency
  package var now: [Disposition: DayTotals.Sum]
  /// Sums as reported; nil if no night reported this day.
  package var reported: [Disposition: DayTotals.Sum]?

  /// The rows of all days with orders now or when reported, newest day first.
  package static func lines(_ totals: DayTotals, reported: [String: DayTotals.Sums]) -> [DayLine] {
    var lines: [DayLine] = []
    for day in totals.days.reversed() {
      let now = byCurrency(totals.sums(of: day.name) ?? [:])
      let then = reported[day.name].map(byCurrency)
      for currency in Set(now.keys).union((then ?? [:]).keys).sorted() {
        lines.append(
          DayLine(
            day: day.name, currency: currency, now: now[currency] ?? [:], reported: then.map { $0[currency] ?? [:] }))
      }
    }
    return lines
  }

  private static func byCurrency(_ sums: DayTotals.Sums) -> [Currency: [Disposition: DayTotals.Sum]] {
    sums.reduce(into: [:]) { $0[$1.key.currency, default: [:]][$1.key.disposition] = $1.value }
  }

  private func sum(_ sums: [Disposition: DayTotals.Sum]) -> DayTotals.Sum {
    Disposition.inMoneyTotals.reduce(into: DayTotals.Sum()) { total, disposition in
      guard let sum = sums[disposition] else { return }
      total.orders += sum.orders
      total.minorUnits += sum.minorUnits
    }
  }

  private func amount(_ units: Int128) -> Cell { .decimal(units, digits: currency.digits) }

  private func amount(_ disposition: Disposition) -> Cell { amount(now[disposition]?.minorUnits ?? 0) }

  private func reportedAmount(_ disposition: Disposition) -> Cell {
    reported.map { amount($0[disposition]?.minorUnits ?? 0) } ?? .blank
  }

  /// Number of dispositions whose amount differs from the reported one.
  private var differences: Cell {
    guard let reported else { return .blank }
    return .count(
      Int64(Disposition.inMoneyTotals.count { (now[$0] ?? DayTotals.Sum()) != (reported[$0] ?? DayTotals.Sum()) }))
  }
}

extension DayLine: TableRow {
  static let table = ReportTable.days

  static let shape = ReportTable.Shape(
    title: "Days", formulaName: "DaysTable", fileName: nil,
    meaning: "Every day of the lookback by currency and outcome, as known now and as reported at the time.",
    sheetNote: "Every day of the lookback by currency and outcome as it is known now, and as it was reported then.",
    primaryKey: ["day", "currency"], frozenColumns: 2, totalLabelColumn: "day", pagesWide: 2, tabColour: Palette.blue)

  static let columns: [Column<DayLine>] =
    [
      Column("day", .text, 13, "The business day on which the orders were created.") { .text($0.day) },
      Column("currency", .currency, 10, "ISO 4217 code.") { .text($0.currency.code) },
      Column("differs", .things, 10, "The number of outcomes that differ from the report.") { $0.differences },
      Column("orders", .tally, 10, "Number of orders, as known now.") { .count(Int64($0.sum($0.now).orders)) },
      Column("ordered", .amount, 14, "Sum of the orders' amounts, as known now.") {
        $0.amount($0.sum($0.now).minorUnits)
      },
    ]
    + Disposition.inMoneyTotals.map { disposition in
      Column(
        disposition.rawValue, .share, 21, title: disposition.title,
        "Amounts of orders \(disposition.clause), as known now."
      ) { $0.amount(disposition) }
    } + [
      Column("reported_orders", .tally, 10, "Number of orders, as reported about that day.") { line in
        line.reported.map { .count(Int64(line.sum($0).orders)) } ?? .blank
      },
      Column("reported_ordered", .amount, 14, "Sum of the orders' amounts, as reported about that day.") { line in
        line.reported.map { line.amount(line.sum($0).minorUnits) } ?? .blank
      },
    ]
    + Disposition.inMoneyTotals.map { disposition in
      Column(
        "reported_\(disposition.rawValue)", .share, 23, title: "Reported: \(disposition.title)",
        "Amounts of orders \(disposition.clause), as reported."
      ) { $0.reportedAmount(disposition) }
    }
}
