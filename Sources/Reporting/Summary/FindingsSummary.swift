import Reconciliation

/// The movement of findings since the last complete night, and the open findings.
package struct FindingsSummary: Sendable {
  package private(set) var byKind: [FindingKind: RiskTotal] = [:]
  package struct Line: Hashable, Sendable {
    package var kind: FindingKind
    package var severity: Severity
    package var currency: Currency?
    package var findings = 0
    package var minorUnits: Int128 = 0
    package var unknown = 0

    fileprivate mutating func add(_ finding: Finding) {
      findings += 1
      minorUnits += Int128(finding.atStake?.minorUnits ?? 0)
      unknown += finding.isAmountAtRiskUnknown ? 1 : 0
    }
  }

  package struct OwnerLine: Hashable, Sendable {
    package var owner: String?
    package var open = 0
    package var critical = 0
    package var overdue = 0
  }

  /// By the same line without a finding.
  private var byLine: [Line: Line] = [:]
  private var byOwner: [String?: OwnerLine] = [:]
  private var bySeverity: [Severity: RiskTotal] = [:]
  package private(set) var open = RiskTotal()
  package private(set) var ageing = Ageing()
  package private(set) var liability = CustomerLiability()
  /// Findings that were open at the end of that night.
  package var opening = 0
  /// Findings first seen or reopened since.
  package var new = 0
  package var closed = 0
  package var rollForward = RollForward()
  /// Findings that opened and closed since.
  package private(set) var passing = RiskTotal()

  package init() {}

  /// - Parameter today: the as-of's day in the report's time zone, `2026-11-20`.
  package mutating func add(_ reported: ReportedFinding, asOf: Instant, today: String = "") {
    let finding = reported.finding
    if reported.isUndecided { addToOwner(reported, today: today) }
    byKind[finding.kind, default: RiskTotal()].add(finding)
    bySeverity[finding.severity, default: RiskTotal()].add(finding)
    open.add(finding)
    liability.add(reported)
    let line = Line(kind: finding.kind, severity: finding.severity, currency: finding.currency)
    byLine[line, default: line].add(finding)
    ageing.add(reported, asOf: asOf)
  }

  private mutating func addToOwner(_ reported: ReportedFinding, today: String) {
    let owner = reported.owner.flatMap { $0.isEmpty ? nil : $0 }
    var line = byOwner[owner] ?? OwnerLine(owner: owner)
    line.open += 1
    line.critical += reported.finding.severity == .critical ? 1 : 0
    line.overdue += reported.due.map { $0 < today ? 1 : 0 } ?? 0
    byOwner[owner] = line
  }

  package mutating func count(_ finding: Finding, openBefore: Bool, atStakeBefore: Money?) {
    guard openBefore else {
      new += 1
      if let atStake = finding.atStake { rollForward.new.add(atStake) }
      return
    }
    opening += 1
    if let before = atStakeBefore { rollForward.opening.add(before) }
    guard finding.atStake != atStakeBefore else { return }
    if let now = finding.atStake { rollForward.changed.add(now) }
    if let before = atStakeBefore { rollForward.changed.subtract(before) }
  }

  /// Counts a finding that was open then and is closed now.
  package mutating func count(closed atStakeBefore: Money?) {
    opening += 1
    closed += 1
    guard let before = atStakeBefore else { return }
    rollForward.opening.add(before)
    rollForward.closed.add(before)
  }

  /// Counts a finding that opened and closed since; it is in no other count.
  package mutating func count(passing finding: Finding) { passing.add(finding) }

  package var lines: [Line] { Array(byLine.values) }

  /// Findings by owner without accepted and closed ones: most overdue first, then most open, without an owner last.
  package var owners: [OwnerLine] {
    byOwner.values.sorted {
      if ($0.owner == nil) != ($1.owner == nil) { return $1.owner == nil }
      return ($1.overdue, $1.open, $0.owner ?? "") < ($0.overdue, $0.open, $1.owner ?? "")
    }
  }

  private static let shownOwners = 20

  /// The owners for people: the first by name, one line for the rest, and the findings without an owner.
  var shownOwners: [(name: String, line: OwnerLine)] {
    let named = owners.filter { $0.owner != nil }
    let rest = named.dropFirst(Self.shownOwners)
    var shown = named.prefix(Self.shownOwners).map { (name: $0.owner ?? "", line: $0) }
    if let unowned = owners.last, unowned.owner == nil { shown.append(("No owner", unowned)) }
    if !rest.isEmpty {
      let sum = rest.reduce(into: OwnerLine()) { sum, line in
        sum.open += line.open
        sum.critical += line.critical
        sum.overdue += line.overdue
      }
      shown.append((counted(rest.count, "more owner"), sum))
    }
    return shown
  }

  package var closing: Int { open.findings }

  package var atStake: MoneyByCurrency { open.money }

  package var openByKind: [FindingKind: Int] { byKind.mapValues(\.findings) }

  /// The kinds of open findings, by the worst severity of each.
  package var openKinds: [FindingKind] {
    let kinds = FindingKind.allCases.filter { byKind[$0] != nil }
    return Severity.allCases.flatMap { severity in kinds.filter { severities(of: $0).first?.0 == severity } }
  }

  /// The severities of a kind's open findings, worst first; they may differ from the kind's own.
  package func severities(of kind: FindingKind) -> [(Severity, Int)] {
    Severity.allCases.compactMap { severity in
      let count = byLine.values.reduce(0) { $0 + ($1.kind == kind && $1.severity == severity ? $1.findings : 0) }
      return count == 0 ? nil : (severity, count)
    }
  }

  /// The severities as text: `critical`, or `1 major, 18 minor`.
  package func severityText(of kind: FindingKind) -> String {
    FindingsSummary.severityText(severities(of: kind).map { ($0.rawValue, $1) })
  }

  static func severityText(_ severities: [(String, Int)]) -> String {
    if severities.count == 1 { return severities[0].0 }
    return severities.map { "\($1) \($0)" }.joined(separator: ", ")
  }

  package func count(_ severity: Severity) -> Int { bySeverity[severity]?.findings ?? 0 }

  package func atStake(_ severity: Severity) -> MoneyByCurrency { bySeverity[severity]?.money ?? MoneyByCurrency() }

  package var control: [ControlTotal] {
    [
      ControlTotal(
        name: "findings: opening + new - closed = closing", left: String(opening + new - closed), right: String(closing)
      )
    ]
      + rollForward.currencies(with: atStake).map { currency in
        ControlTotal(
          name: "at stake \(currency): opening + new - closed + changed = closing",
          left: Money.decimalText(rollForward.closing(currency), digits: currency.digits),
          right: Money.decimalText(atStake.minorUnits[currency] ?? 0, digits: currency.digits))
      }
  }
}

extension MoneyByCurrency {
  fileprivate mutating func subtract(_ money: Money) {
    add(Money(minorUnits: -money.minorUnits, currency: money.currency))
  }
}
