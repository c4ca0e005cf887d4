import Reconciliation

/// A count of findings, their amount at risk, and how many have an unknown amount at risk.
package struct RiskTotal: Equatable, Sendable {
  package private(set) var findings = 0
  package private(set) var money = MoneyByCurrency()
  package private(set) var unknown = 0

  package init() {}

  package mutating func add(_ finding: Finding) {
    findings += 1
    if let atStake = finding.atStake { money.add(atStake) }
    if finding.isAmountAtRiskUnknown { unknown += 1 }
  }

  /// Text such as `12.98 USD · 300 JPY · 3 with amount unknown`; `nothing` for no amount.
  package var words: String { parts.isEmpty ? "nothing" : parts.joined(separator: " · ") }

  /// The amounts one by one; a dash for none.
  var shown: [String] { parts.isEmpty ? ["–"] : parts }

  private var parts: [String] { money.words + (unknown > 0 ? ["\(grouped(unknown)) with amount unknown"] : []) }
}

/// Open findings by age of the transaction, and by time since they were first seen.
package struct Ageing: Equatable, Sendable {
  package enum Bucket: String, OrderedCases, Sendable {
    case upToOne = "0-1"
    case upToSeven = "2-7"
    case upToThirty = "8-30"
    case older = "over 30"
    /// The date of the transaction is unknown.
    case undated = "no date"

    init(days: Int64?) {
      self =
        switch days {
        case .none: .undated
        case .some(...1): .upToOne
        case .some(2...7): .upToSeven
        case .some(8...30): .upToThirty
        case .some: .older
        }
    }

    package var title: String {
      switch self {
      case .upToOne, .upToSeven, .upToThirty, .older: "\(rawValue) days"
      case .undated: rawValue
      }
    }
  }

  private var byAge: [Bucket: RiskTotal] = [:]
  private var known: [Bucket: Int] = [:]

  /// Counts a finding; dates after the as-of count as age 0.
  package mutating func add(_ reported: ReportedFinding, asOf: Instant) {
    let finding = reported.finding
    let days = finding.occurredAt.map { max(0, (asOf - $0).wholeDays) }
    byAge[Bucket(days: days), default: RiskTotal()].add(finding)
    known[Bucket(days: max(0, (asOf - reported.firstSeen).wholeDays)), default: 0] += 1
  }

  package subscript(bucket: Bucket) -> RiskTotal { byAge[bucket] ?? RiskTotal() }

  package func known(_ bucket: Bucket) -> Int { known[bucket, default: 0] }

  /// The buckets to show; `undated` only if it has findings.
  package var buckets: [Bucket] { Bucket.allCases.filter { $0 != .undated || self[$0].findings > 0 } }
}

/// The movement of the amount at risk since the last complete night.
package struct RollForward: Equatable, Sendable {
  /// Amount in findings that were open then.
  package var opening = MoneyByCurrency()
  /// Amount in new and reopened findings.
  package var new = MoneyByCurrency()
  /// Amount in closed findings, as of then.
  package var closed = MoneyByCurrency()
  /// Changes of amount in findings that stayed open.
  package var changed = MoneyByCurrency()

  /// The currencies of the movement, in alphabetical order.
  package func currencies(with closing: MoneyByCurrency) -> [Currency] {
    [opening, new, closed, changed, closing].reduce(into: Set()) { $0.formUnion($1.minorUnits.keys) }.sorted()
  }

  package func closing(_ currency: Currency) -> Int128 {
    func units(_ money: MoneyByCurrency) -> Int128 { money.minorUnits[currency] ?? 0 }
    return units(opening) + units(new) - units(closed) + units(changed)
  }
}
