import Reconciliation

/// A payment on the page Payments and Financial Reports. Apple has no API for it: a person enters it into a file.
package struct Payment: Hashable, Sendable {
  package var period: FiscalPeriod
  package var currency: Identifier
  package var earned: Millionths
  package var taxesAndAdjustments: Millionths
  package var balanceForward: Millionths
  package var owed: Millionths
  /// Times 10^18. Apple shows five digits; checking the proceeds needs more. nil: Apple paid nothing.
  package var exchangeRate: Int128?
  package var bankCurrency: Identifier
  /// nil: Apple paid nothing, because the amount is below its payment threshold.
  package var proceeds: Millionths?
  package var paidOn: ReportDay?

  private static let rateDecimals = 18

  static let columns = [
    "fiscal_period", "currency", "earned", "taxes_adjustments", "balance_forward", "owed", "exchange_rate",
    "bank_currency", "proceeds", "paid_on",
  ]

  package static func isFileName(_ name: String) -> Bool {
    let name = name.lowercased()
    return name.hasPrefix("payments") && name.hasSuffix(".csv")
  }

  package static func isHeader(_ line: String) -> Bool {
    let names = (cells(of: line) ?? []).map(ReportHeader.canonical)
    return names.contains("fiscal_period") && names.contains("owed")
  }

  /// Reads a file. A line that cannot be read is a problem of its own, because payments are never added up.
  package static func read(_ bytes: [UInt8]) throws -> (payments: [Payment], problems: [ReportProblem]) {
    var positions: [String: Int]?
    var (payments, problems): ([Payment], [ReportProblem]) = ([], [])
    try ReportLines.read(bytes) { line, number in
      if line.contains(where: ReportLines.isForeign) { throw ReportLines.foreignByte(in: number) }
      guard let values = cells(of: String(decoding: line, as: UTF8.self)) else {
        problems.append(ReportProblem(line: number, "a quotation mark is not closed; write a second one"))
        return
      }
      guard let known = positions else {
        var found: [String: Int] = [:]
        for (index, cell) in values.enumerated() { found[ReportHeader.canonical(cell)] = index }
        for name in columns.dropLast() where found[name] == nil {
          throw ReportProblem(line: number, "the column “\(name)” is missing")
        }
        positions = found
        return
      }
      do throws(ReportProblem) {
        payments.append(
          try payment(number) { name in known[name].flatMap { $0 < values.count ? values[$0] : nil } ?? "" })
      } catch {
        problems.append(error)
      }
    }
    return (payments, problems)
  }

  /// The values of a line of CSV (RFC 4180), without white space around them; nil if a quotation mark is not closed.
  private static func cells(of line: String) -> [String]? {
    var (cells, cell): ([String], String) = ([], "")
    var isQuoted = false
    var previous: UnicodeScalar?
    for scalar in line.unicodeScalars {
      if scalar == "\"" {
        isQuoted.toggle()
        // Inside quotation marks, two of them stand for one.
        if isQuoted, previous == "\"" { cell.unicodeScalars.append(scalar) }
      } else if scalar == ",", !isQuoted {
        cells.append(cell.trimmed)
        cell = ""
      } else {
        cell.unicodeScalars.append(scalar)
      }
      previous = scalar
    }
    return isQuoted ? nil : cells + [cell.trimmed]
  }

  private static func payment(_ line: Int, _ cell: (String) -> String) throws(ReportProblem) -> Payment {
    func number(_ name: String) throws(ReportProblem) -> Millionths {
      let text = cell(name)
      // Apple's page groups thousands by commas. In `0,912` and `6,88` the comma is a decimal one.
      let isGrouped = text.wholeMatch(of: /-?[1-9][0-9]{0,2}(,[0-9]{3})+(\.[0-9]+)?/) != nil
      guard let value = Millionths(isGrouped ? text.filter { $0 != "," } : text) else {
        throw ReportProblem(line: line, "\(name) is “\(cell(name))”, expected a decimal number")
      }
      return value
    }
    guard let period = FiscalCalendar.period(named: cell("fiscal_period")) else {
      throw ReportProblem(
        line: line, "fiscal_period is “\(cell("fiscal_period"))”, expected a fiscal year and period such as 2026-02")
    }
    let (rateText, paidText) = (cell("exchange_rate"), cell("paid_on"))
    let rate = Millionths.scaled(rateText.utf8, decimals: rateDecimals)
    if rate == nil, !rateText.isEmpty {
      throw ReportProblem(line: line, "exchange_rate is “\(rateText)”, expected a decimal number")
    }
    let paidOn = ReportDay(paidText)
    if paidOn == nil, !paidText.isEmpty {
      throw ReportProblem(line: line, "paid_on is “\(paidText)”, expected a date such as 2026-12-03")
    }
    return Payment(
      period: period, currency: Identifier(cell("currency")), earned: try number("earned"),
      taxesAndAdjustments: try number("taxes_adjustments"), balanceForward: try number("balance_forward"),
      owed: try number("owed"), exchangeRate: rate, bankCurrency: Identifier(cell("bank_currency")),
      proceeds: try cell("proceeds").isEmpty ? nil : number("proceeds"), paidOn: paidOn)
  }

  /// Sentences about the inconsistencies of all payments, by period and currency.
  package static func problems(
    of payments: [Payment], earned: (FiscalPeriod, Identifier) -> Millionths?
  ) -> [String] {
    let sorted = payments.sorted { ($0.period, $0.currency) < ($1.period, $1.currency) }
    return sorted.enumerated().flatMap { index, payment -> [String] in
      let isRepeated =
        index > 0 && (sorted[index - 1].period, sorted[index - 1].currency) == (payment.period, payment.currency)
      let repetition =
        "\(payment.name) is entered more than once; keep one line, with the sums of all vendors"
      return (isRepeated ? [repetition] : []) + payment.problems(earned: earned(payment.period, payment.currency))
    }
  }

  private var name: String { "payment \(period) \(currency)" }

  /// Sentences about inconsistencies. `earned` is the amount in Apple's finance report; nil if there is none.
  package func problems(earned reported: Millionths?) -> [String] {
    var problems: [String] = []
    if let reported, reported != earned {
      problems.append("\(name): earned is \(earned), Apple's finance report makes \(reported)")
    }
    let sum = earned + taxesAndAdjustments + balanceForward
    if sum != owed {
      problems.append("\(name): earned, taxes_adjustments and balance_forward make \(sum), owed is \(owed)")
    }
    if let proceeds, let exchangeRate, !isConverted(to: proceeds, at: exchangeRate) {
      problems.append("\(name): owed times exchange_rate is not the \(proceeds) \(bankCurrency) of proceeds")
    }
    return problems
  }

  /// True if the proceeds equal the owed amount at the exchange rate, within one minor unit.
  private func isConverted(to proceeds: Millionths, at exchangeRate: Int128) -> Bool {
    func tens(_ exponent: Int) -> Int128 { (0..<exponent).reduce(1) { power, _ in power * 10 } }
    // All values at the scale of the product: millionths times the rate's decimals.
    let (product, isBeyond) = owed.count.multipliedReportingOverflow(by: exchangeRate)
    let (paid, isPaidBeyond) = proceeds.count.multipliedReportingOverflow(by: tens(Self.rateDecimals))
    let (difference, isFar) = product.subtractingReportingOverflow(paid)
    let minorUnit = tens(6 + Self.rateDecimals - Int(Currency(bankCurrency)?.digits ?? 2))
    return !isBeyond && !isPaidBeyond && !isFar && difference.magnitude <= minorUnit.magnitude
  }
}
