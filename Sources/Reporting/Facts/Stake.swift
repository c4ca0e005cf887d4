import Reconciliation

/// Findings, the money at stake in them, and how many of them have money at stake that nobody knows.
package struct Stake: Equatable, Sendable {
  /// How many findings.
  package private(set) var findings = 0
  /// What is known to be at stake.
  package private(set) var money = MoneyByCurrency()
  /// How many of the findings put money at stake whose amount nobody knows.
  package private(set) var unknown = 0

  /// Nothing.
  package init() {}

  /// Counts a finding.
  package mutating func add(_ finding: Finding) {
    findings += 1
    if let atStake = finding.atStake { money.add(atStake) }
    if finding.isStakeUnknown { unknown += 1 }
  }

  /// In words: `12.98 USD · 300 JPY · 3 with amount unknown`; `nothing` for no money at all.
  package var words: String { Stake.words(money.texts, unknown: unknown) }

  /// The same, each part by itself, for people who read long numbers.
  var shown: [String] {
    var parts = money.sorted.map { "\($0.currency.shown($0.minorUnits)) \($0.currency)" }
    if unknown > 0 { parts.append("\(unknown) with amount unknown") }
    return parts.isEmpty ? ["–"] : parts
  }

  /// The same from decimal texts by currency.
  static func words(_ amounts: [String: String], unknown: Int) -> String {
    var parts = amounts.sorted { $0.key < $1.key }.map { "\($0.value) \($0.key)" }
    if unknown > 0 { parts.append("\(unknown) with amount unknown") }
    return parts.isEmpty ? "nothing" : parts.joined(separator: " · ")
  }
}

/// Open findings by how many whole days ago the deals happened, and by how long people have known about them.
package struct Ageing: Equatable, Sendable {
  /// How many whole days.
  package enum Bucket: String, CaseIterable, Sendable {
    case upToOne = "0-1"
    case upToSeven = "2-7"
    case upToThirty = "8-30"
    case older = "over 30"
    /// Nobody knows when the deal happened.
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

    // Left to the compiler, the word would be hashed.
    package func hash(into hasher: inout Hasher) { withUnsafeBytes(of: self) { hasher.combine($0[0]) } }

    /// As a heading.
    package var title: String {
      switch self {
      case .upToOne, .upToSeven, .upToThirty, .older: "\(rawValue) days"
      case .undated: rawValue
      }
    }
  }

  private var deals: [Bucket: Stake] = [:]
  private var known: [Bucket: Int] = [:]

  /// Nothing counted.
  package init() {}

  /// Counts a finding; instants later than the as-of are no days ago.
  package mutating func add(_ reported: ReportedFinding, asOf: Instant) {
    let finding = reported.finding
    let days = finding.occurredAt.map { max(0, (asOf - $0).wholeDays) }
    deals[Bucket(days: days), default: Stake()].add(finding)
    known[Bucket(days: max(0, (asOf - reported.firstSeen).wholeDays)), default: 0] += 1
  }

  /// Findings about deals of this age.
  package subscript(bucket: Bucket) -> Stake { deals[bucket] ?? Stake() }

  /// Findings that people have known about for so long.
  package func known(_ bucket: Bucket) -> Int { known[bucket, default: 0] }

  /// Those worth a line: the four ages always, the undated where there are any.
  package var buckets: [Bucket] { Bucket.allCases.filter { $0 != .undated || self[$0].findings > 0 } }
}

/// How the money at stake went from one complete night to the next.
package struct RollForward: Equatable, Sendable {
  /// In what was open then.
  package var opening = MoneyByCurrency()
  /// In what is new or stands again.
  package var new = MoneyByCurrency()
  /// In what has closed, as it was then.
  package var closed = MoneyByCurrency()
  /// What other amounts came to in findings that were open then and are open now.
  package var changed = MoneyByCurrency()

  /// Nothing at stake, then and now.
  package init() {}

  /// The currencies that it is told in, in alphabetical order.
  package func currencies(with closing: MoneyByCurrency) -> [Currency] {
    [opening, new, closed, changed, closing].reduce(into: Set()) { $0.formUnion($1.minorUnits.keys) }.sorted()
  }

  /// What it comes to.
  package func closing(_ currency: Currency) -> Int128 {
    func units(_ money: MoneyByCurrency) -> Int128 { money.minorUnits[currency] ?? 0 }
    return units(opening) + units(new) - units(closed) + units(changed)
  }
}
