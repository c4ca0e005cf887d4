import Foundation
import Reconciliation
import Reporting
import Run
import TieOut

package struct TieOutText {
  package struct Document: Encodable {
    let asOf: String
    let firstDay: String
    let lastDay: String
    let tieOut: TieOutBlock
    let unreported: [Week]
    let settlement: [Period]
    let notes: [String]
    let gross: Gross?
  }

  struct Week: Encodable {
    let app: String
    let productId: String
    let name: String?
    let week: String
    let units: Decimal
    let amount: String?
    let currency: String?
  }

  struct Period: Encodable {
    let fiscalPeriod: String
    let currency: String
    let salesProceeds: String?
    let openAtEnd: String?
    let settledFromBefore: String
    let neverCollected: String?
    let settled: String
    let difference: String?
  }

  struct Gross: Encodable {
    struct Line: Encodable {
      let month: String
      let country: String
      let currency: String
      let gross: String
    }

    let year: Int
    let lines: [Line]
    let missing: [String]
    let running: String?
  }

  package let document: Document
  private let outcome: TieOutOutcome
  private let facts: TieOutFacts
  private static let longestList = 30

  package init(_ outcome: TieOutOutcome, gross: YearGross?) {
    self.outcome = outcome
    let (record, facts) = (outcome.record, TieOutFacts(outcome.record, outcome.totals))
    self.facts = facts
    document = Document(
      asOf: record.asOf.text, firstDay: facts.firstDay, lastDay: facts.lastDay, tieOut: TieOutBlock(facts),
      unreported: outcome.weeks.map { week in
        Week(
          app: week.app, productId: week.productId.text, name: outcome.names[week.productId],
          week: week.monday.description, units: week.units.decimal,
          amount: week.amount.map { Self.amount(of: $0, week.currency) }, currency: week.currency?.text)
      },
      settlement: outcome.periods.map { Period($0) }, notes: record.notes, gross: gross.map { Gross($0) })
  }

  /// Exit status of the command. A night is not incomplete because of the tie-out.
  package var exitStatus: ExitStatus { outcome.isComplete ? .complete : .incomplete }

  fileprivate static func amount(of value: Millionths, _ currency: Identifier?) -> String {
    value.text(digits: Int(currency.flatMap { Currency($0) }?.digits ?? 2))
  }

  // MARK: - For people

  package var table: String {
    var parts = [heading]
    if let weeks { parts.append("Units that Apple counted and no order or payment here explains:\n" + weeks) }
    if !outcome.periods.isEmpty { parts.append("Settlement (Apple's numbers for the fiscal period):\n" + settlement) }
    if let gross = document.gross { parts.append(gross.text) }
    for (title, lines) in [("Adjustments", outcome.revised.map(\.words)), ("Notes", document.notes)]
    where !lines.isEmpty {
      parts.append("\(title):\n" + lines.map { "  - \($0)" }.joined(separator: "\n"))
    }
    return parts.joined(separator: "\n\n")
  }

  private var heading: String {
    let state = outcome.isComplete ? ["COMPLETE"] : ["INCOMPLETE:"] + facts.incompleteReasons.map { "  - \($0)" }
    return (["Tie-out \(facts.firstDay) to \(facts.lastDay)", facts.sentence] + state).joined(separator: "\n")
  }

  private var weeks: String? {
    if outcome.weeks.isEmpty { return nil }
    var table = TextTable([
      .left("app"), .left("product"), .left("name"), .left("week from"), .right("units"), .right("amount"), .left(""),
    ])
    for (week, units) in zip(document.unreported, outcome.weeks.map(\.units)).prefix(Self.longestList) {
      table.add([
        week.app, week.productId, week.name ?? "", week.week, units.description, week.amount.map(Money.grouped) ?? "",
        week.currency ?? "",
      ])
    }
    let rest = outcome.weeks.count - Self.longestList
    return table.text(width: nil) + (rest > 0 ? "\n… and \(rest) more, with --json" : "")
  }

  private var settlement: String {
    var table = TextTable([.left("period"), .left("currency")] + SettlementLine.titles.map { .right($0.lowercased()) })
    for period in outcome.periods {
      let amounts = period.figures.prefix(SettlementLine.titles.count).map { figure in
        figure.map { Money.grouped(Self.amount(of: $0, period.currency)) } ?? ""
      }
      table.add([period.name, period.currency.text] + amounts)
    }
    return table.text(width: nil)
  }
}

extension TieOutText.Period {
  fileprivate init(_ period: TieOutTable.Period) {
    func amount(_ value: Millionths) -> String { TieOutText.amount(of: value, period.currency) }
    func amountOfSales(_ value: Millionths) -> String? { period.hasSales ? amount(value) : nil }
    let line = period.line
    self.init(
      fiscalPeriod: period.name, currency: period.currency.text, salesProceeds: amountOfSales(line.salesProceeds),
      openAtEnd: amountOfSales(line.openAtEnd), settledFromBefore: amount(line.settledFromBefore),
      neverCollected: amountOfSales(line.neverCollected), settled: amount(line.settled),
      difference: amountOfSales(line.difference))
  }
}

extension TieOutText.Gross {
  fileprivate init(_ gross: YearGross) {
    let lines = gross.lines.map {
      Line(
        month: $0.month, country: $0.country.text, currency: $0.currency.text,
        gross: TieOutText.amount(of: $0.gross, $0.currency))
    }
    self.init(year: gross.year, lines: lines, missing: gross.missing, running: gross.running)
  }

  fileprivate var text: String {
    var table = TextTable([.left("month"), .left("country"), .left("currency"), .right("gross")])
    for line in lines { table.add([line.month, line.country, line.currency, Money.grouped(line.gross)]) }
    let unended = running.map { "\n\($0) has not ended: its sums cover the reported days alone." } ?? ""
    let unreported =
      missing.isEmpty
      ? "" : "\nMonths without all daily reports, which are in no sum: \(missing.joined(separator: ", "))"
    return """
      Paid by customers in \(year), by calendar month and country:
      \(table.text(width: nil))\(unended)\(unreported)
      """
  }
}
