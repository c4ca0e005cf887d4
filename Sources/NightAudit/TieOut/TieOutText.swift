import Foundation
import Reconciliation
import Reporting
import Run
import TieOut

/// The output of `night-audit tie-out`.
package struct TieOutText {
  private let outcome: TieOutOutcome
  private let gross: YearGross?
  private let year: Int?
  private static let longestList = 30

  package init(_ outcome: TieOutOutcome, gross: YearGross? = nil, year: Int? = nil) {
    self.outcome = outcome
    self.gross = gross
    self.year = year
  }

  /// Exit status of the command. A night is not incomplete because of the tie-out.
  package var exitStatus: ExitStatus { outcome.isComplete ? .complete : .incomplete }

  // MARK: - For people

  package var table: String {
    var parts = [heading]
    if let weeks { parts.append("Units that Apple counted and no order or payment here explains:\n" + weeks) }
    if !outcome.periods.isEmpty { parts.append("Settlement (Apple's numbers for the fiscal period):\n" + settlement) }
    if let grossTable { parts.append(grossTable) }
    let revised = outcome.revised.map { "  - \(TieOutFacts.Revision($0).words)" }
    if !revised.isEmpty { parts.append("Adjustments:\n" + revised.joined(separator: "\n")) }
    if !outcome.record.notes.isEmpty {
      parts.append("Notes:\n" + outcome.record.notes.map { "  - \($0)" }.joined(separator: "\n"))
    }
    return parts.joined(separator: "\n\n")
  }

  private var heading: String {
    let days = outcome.record.days
    var lines = ["Tie-out \(days.lowerBound) to \(days.upperBound)", facts.sentence]
    if outcome.isComplete {
      lines.append("COMPLETE")
    } else {
      lines.append("INCOMPLETE:")
      lines += outcome.record.incompleteReasons.map { "  - \($0)" }
    }
    return lines.joined(separator: "\n")
  }

  private var facts: TieOutFacts {
    let totals = outcome.totals
    return TieOutFacts(
      incompleteReasons: outcome.record.incompleteReasons, firstDay: outcome.record.days.lowerBound.description,
      lastDay: outcome.record.days.upperBound.description, appleUnits: totals.apple.figure(),
      ourUnits: totals.ours.figure(),
      explained: TieOutExplanation.allCases.map { ($0.rawValue, totals.explained[$0].figure()) },
      unexplained: totals.unexplained.figure())
  }

  private var weeks: String? {
    let weeks = outcome.weeks
    if weeks.isEmpty { return nil }
    var table = TextTable([
      .left("app"), .left("product"), .left("name"), .left("week from"), .right("units"), .right("amount"), .left(""),
    ])
    for week in weeks.prefix(Self.longestList) {
      table.add([
        week.app, week.productId.text, outcome.names[week.productId] ?? "", week.monday.description,
        week.units.description, week.amount.map { Money.grouped(amount(of: $0, week.currency)) } ?? "",
        week.currency?.text ?? "",
      ])
    }
    let rest = weeks.count - Self.longestList
    return table.text(width: nil) + (rest > 0 ? "\n… and \(rest) more, with --json" : "")
  }

  private var settlement: String {
    var table = TextTable(
      [
        .left("period"), .left("currency"),
      ] + SettlementLine.titles.map { .right($0.lowercased()) })
    for period in outcome.periods {
      let line = period.line
      func cell(_ value: Millionths, _ isKnown: Bool = true) -> String {
        isKnown ? Money.grouped(amount(of: value, period.currency)) : ""
      }
      table.add([
        period.name, period.currency.text, cell(line.salesProceeds, period.hasSales),
        cell(line.openAtEnd, period.hasSales), cell(line.settledFromBefore),
        cell(line.neverCollected, period.hasSales), cell(line.settled), cell(line.difference, period.hasSales),
      ])
    }
    return table.text(width: nil)
  }

  private var grossTable: String? {
    guard let gross, let year else { return nil }
    var table = TextTable([.left("month"), .left("country"), .left("currency"), .right("gross")])
    for line in gross.lines {
      table.add([
        line.month, line.country.text, line.currency.text, Money.grouped(amount(of: line.gross, line.currency)),
      ])
    }
    var text = "Paid by customers in \(year), by calendar month and country:\n" + table.text(width: nil)
    if let running = gross.running { text += "\n\(running) has not ended: its sums cover the reported days alone." }
    if !gross.missing.isEmpty {
      text += "\nMonths without all daily reports, which are in no sum: \(gross.missing.joined(separator: ", "))"
    }
    return text
  }

  private func amount(of value: Millionths, _ currency: Identifier?) -> String {
    value.text(digits: Int(currency.flatMap { Currency($0) }?.digits ?? 2))
  }

  // MARK: - For machines

  struct Document: Encodable {
    var asOf: String
    var firstDay: String
    var lastDay: String
    var tieOut: TieOutBlock
    var unreported: [Week]
    var settlement: [Period]
    var notes: [String]
    var gross: Gross?
  }

  struct Week: Encodable {
    var app: String
    var productId: String
    var name: String?
    var week: String
    var units: Decimal
    var amount: String?
    var currency: String?
  }

  struct Period: Encodable {
    var fiscalPeriod: String
    var currency: String
    var salesProceeds: String?
    var openAtEnd: String?
    var settledFromBefore: String
    var neverCollected: String?
    var settled: String
    var difference: String?
  }

  struct Gross: Encodable {
    struct Line: Encodable {
      var month: String
      var country: String
      var currency: String
      var gross: String
    }

    var year: Int
    var lines: [Line]
    var missing: [String]
    var running: String?
  }

  package var json: String {
    get throws {
      let document = Document(
        asOf: outcome.record.asOf.text, firstDay: outcome.record.days.lowerBound.description,
        lastDay: outcome.record.days.upperBound.description, tieOut: TieOutBlock(facts),
        unreported: outcome.weeks.map { week in
          Week(
            app: week.app, productId: week.productId.text, name: outcome.names[week.productId],
            week: week.monday.description, units: week.units.figure().decimal,
            amount: week.amount.map { amount(of: $0, week.currency) }, currency: week.currency?.text)
        },
        settlement: outcome.periods.map { period in
          func cell(_ value: Millionths) -> String? { period.hasSales ? amount(of: value, period.currency) : nil }
          return Period(
            fiscalPeriod: period.name, currency: period.currency.text, salesProceeds: cell(period.line.salesProceeds),
            openAtEnd: cell(period.line.openAtEnd),
            settledFromBefore: amount(of: period.line.settledFromBefore, period.currency),
            neverCollected: cell(period.line.neverCollected), settled: amount(of: period.line.settled, period.currency),
            difference: cell(period.line.difference))
        },
        notes: outcome.record.notes,
        gross: gross.flatMap { gross in
          year.map { year in
            Gross(
              year: year,
              lines: gross.lines.map {
                .init(
                  month: $0.month, country: $0.country.text, currency: $0.currency.text,
                  gross: amount(of: $0.gross, $0.currency))
              }, missing: gross.missing, running: gross.running)
          }
        })
      return try MachineText.json(document)
    }
  }
}
