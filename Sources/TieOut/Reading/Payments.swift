import Reconciliation

/// A payment on the page Payments and Financial Reports. Apple has no API for it: a person enters it into a file.
package struct Payment: Hashable, Sendable {
  package var period: FiscalPeriod
  package var currency: Identifier
  package var earned: Millionths
  package var taxesAndAdjustments: Millionths
  package var balanceForward: Millionths
  package var owed: Millionths
  /// Times 10^18. Apple shows five digits; checking the proceeds needs more.
  package var exchangeRate: Int128
  package var bankCurrency: Identifier
  package var proceeds: Millionths
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
    let names = line.split(separator: ",").map { ReportHeader.canonical(String($0.trimmed.trimmingQuotes)) }
    return names.contains("fiscal_period") && names.contains("owed")
  }

  /// Reads a file. Values need no quotes; surrounding quotes are removed.
  package static func read(_ bytes: [UInt8]) throws -> [Payment] {
    var positions: [String: Int]?
    var payments: [Payment] = []
    try ReportLines.read(bytes) { line, number in
      if line.contains(where: ReportLines.isForeign) { throw ReportLines.foreignByte(in: number) }
      let cells = String(decoding: line, as: UTF8.self).split(separator: ",", omittingEmptySubsequences: false)
        .map { String($0.trimmed.trimmingQuotes) }
      guard let known = positions else {
        var found: [String: Int] = [:]
        for (index, cell) in cells.enumerated() { found[ReportHeader.canonical(cell)] = index }
        for name in columns.dropLast() where found[name] == nil {
          throw ReportProblem(line: number, "the column “\(name)” is missing")
        }
        positions = found
        return
      }
      payments.append(try payment(number) { name in known[name].flatMap { $0 < cells.count ? cells[$0] : nil } ?? "" })
    }
    return payments
  }

  private static func payment(_ line: Int, _ cell: (String) -> String) throws(ReportProblem) -> Payment {
    func number(_ name: String) throws(ReportProblem) -> Millionths {
      guard let value = Millionths(cell(name)) else {
        throw ReportProblem(line: line, "\(name) is “\(cell(name))”, expected a decimal number")
      }
      return value
    }
    guard let period = FiscalCalendar.period(named: cell("fiscal_period")) else {
      throw ReportProblem(
        line: line, "fiscal_period is “\(cell("fiscal_period"))”, expected a fiscal year and period such as 2026-02")
    }
    guard let rate = Millionths.scaled(cell("exchange_rate").utf8, decimals: rateDecimals) else {
      throw ReportProblem(line: line, "exchange_rate is “\(cell("exchange_rate"))”, expected a decimal number")
    }
    return Payment(
      period: period, currency: Identifier(cell("currency")), earned: try number("earned"),
      taxesAndAdjustments: try number("taxes_adjustments"), balanceForward: try number("balance_forward"),
      owed: try number("owed"), exchangeRate: rate, bankCurrency: Identifier(cell("bank_currency")),
      proceeds: try number("proceeds"), paidOn: ReportDay(cell("paid_on")))
  }

  /// Sentences about inconsistencies. `earned` is the amount in Apple's finance report; nil if there is none.
  package func problems(earned reported: Millionths?) -> [String] {
    var problems: [String] = []
    let name = "payment \(period) \(currency)"
    if let reported, reported != earned {
      problems.append("\(name): earned is \(earned), Apple's finance report makes \(reported)")
    }
    let sum = earned + taxesAndAdjustments + balanceForward
    if sum != owed {
      problems.append("\(name): earned, taxes_adjustments and balance_forward make \(sum), owed is \(owed)")
    }
    if !isConverted {
      problems.append("\(name): owed times exchange_rate is not the \(proceeds) \(bankCurrency) of proceeds")
    }
    return problems
  }

  /// True if the proceeds equal the owed amount at the exchange rate, within one minor unit.
  private var isConverted: Bool {
    func tens(_ exponent: Int) -> Int128 { (0..<exponent).reduce(1) { power, _ in power * 10 } }
    // All values at the scale of the product: millionths times the rate's decimals.
    let (product, isBeyond) = owed.count.multipliedReportingOverflow(by: exchangeRate)
    let (paid, isPaidBeyond) = proceeds.count.multipliedReportingOverflow(by: tens(Self.rateDecimals))
    let (difference, isFar) = product.subtractingReportingOverflow(paid)
    let minorUnit = tens(6 + Self.rateDecimals - Int(Currency(bankCurrency)?.digits ?? 2))
    return !isBeyond && !isPaidBeyond && !isFar && difference.magnitude <= minorUnit.magnitude
  }
}

extension String {
  fileprivate var trimmingQuotes: Substring {
    count >= 2 && first == "\"" && last == "\"" ? dropFirst().dropLast() : self[...]
  }
}
