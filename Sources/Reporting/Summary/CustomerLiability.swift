import Reconciliation

/// The amounts owed to customers: the amounts at risk in open findings about payments without goods. Each payment
/// counts once. A payment without an order whose amount an unpaid order with goods carries is not owed. Findings that a
/// person has accepted or closed are left out and counted, because that person has settled them.
package struct CustomerLiability: Sendable {
  /// The parts, in the order of their columns.
  package static let kinds = FindingKind.allCases.filter { $0.has(.isOwedToCustomer) }

  package private(set) var parts: [Currency: [FindingKind: Int128]] = [:]
  /// Findings of these kinds whose amount is unknown, or part of another finding's.
  package private(set) var uncounted = 0
  /// Findings of these kinds that a person has accepted or closed.
  private var decided = 0

  package mutating func add(_ reported: ReportedFinding) {
    let finding = reported.finding
    guard Self.kinds.contains(finding.kind) else { return }
    guard reported.isUndecided else {
      decided += 1
      return
    }
    if let amount = finding.atStake {
      parts[amount.currency, default: [:]][finding.kind, default: 0] += Int128(amount.minorUnits)
    } else if finding.isAmountAtRiskUnknown || finding.orderId != nil {
      uncounted += 1
    }
  }

  var note: String {
    [
      "Owed to customers: the amount at risk in open findings of these kinds.",
      sentence(uncounted, one: "1 finding without an amount of its own is excluded.") {
        "\($0) findings without an amount of their own are excluded."
      },
      sentence(decided, one: "1 finding that a person accepted or closed is excluded.") {
        "\($0) findings that a person accepted or closed are excluded."
      },
    ].compactMap(\.self).joined(separator: " ")
  }
}

/// One currency: what was ordered and refunded, Apple's proceeds, and what is owed to customers, with its parts.
struct SalesLine {
  static let title = "Sales, proceeds, and what is owed to customers"

  /// Titles of the amounts. The fiscal period of the proceeds is not the report's.
  static func headers(_ facts: SummaryFacts) -> [String] {
    let fiscal = facts.tieOut?.proceeds.first.map { ", fiscal \($0.period)" } ?? ""
    return ["Ordered", "Refunds reported", "Proceeds expected\(fiscal)", "Proceeds paid\(fiscal)", "Owed to customers"]
      + CustomerLiability.kinds.map(\.title)
  }

  let code: String
  let digits: UInt8
  let ordered: Int128
  let refunded: Int128
  let proceeds: SettlementLine?
  let owed: [Int128]

  static func all(_ totals: Totals, _ facts: SummaryFacts) -> [SalesLine] {
    let (proceeds, owed) = (facts.tieOut?.proceeds ?? [], facts.findings.liability.parts)
    let codes =
      totals.ordered.sorted.map(\.currency.code) + facts.refunded.sorted.map(\.currency.code)
      + proceeds.map(\.currency) + owed.keys.map(\.code)
    return Set(codes).sorted().map { code in
      let currency = Currency(code: code)
      func units(_ money: MoneyByCurrency) -> Int128 { currency.flatMap { money.minorUnits[$0] } ?? 0 }
      return SalesLine(
        code: code, digits: currency?.digits ?? 2, ordered: units(totals.ordered), refunded: units(facts.refunded),
        proceeds: proceeds.first { $0.currency == code },
        owed: CustomerLiability.kinds.map { kind in currency.flatMap { owed[$0]?[kind] } ?? 0 })
    }
  }

  static func note(_ facts: SummaryFacts) -> String {
    let period = facts.tieOut?.proceeds.first.map { "Proceeds are of Apple's fiscal period \($0.period). " } ?? ""
    return period + "Refunds reported: the sheet Refunds, of orders of any date. " + facts.findings.liability.note
  }
}
