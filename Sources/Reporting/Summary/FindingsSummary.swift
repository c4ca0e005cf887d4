import Reconciliation

/// What happened to findings since the last complete night, and what is open now.
package struct FindingsSummary: Sendable {
  /// Open findings by kind; a kind without any may be left out.
  package private(set) var byKind: [FindingKind: Stake] = [:]
  /// One kind of one severity in one currency.
  package struct Line: Hashable, Sendable {
    package var kind: FindingKind
    package var severity: Severity
    /// nil: nobody knows what money it is about.
    package var currency: Currency?
    package var findings = 0
    package var minorUnits: Int128 = 0
    package var unknown = 0
  }

  /// The open findings of one person.
  package struct OwnerLine: Hashable, Sendable {
    /// nil: they have no owner.
    package var owner: String?
    package var open = 0
    package var critical = 0
    /// Their due day is over.
    package var overdue = 0
  }

  private struct LineKey: Hashable {
    var kind: FindingKind
    var severity: Severity
    var currency: Currency?
  }

  private var byLine: [LineKey: Line] = [:]
  private var byOwner: [String?: OwnerLine] = [:]
  private var bySeverity: [Severity: Stake] = [:]
  /// All open findings.
  package private(set) var open = Stake()
  /// How old the open ones are.
  package private(set) var ageing = Ageing()
  /// Open at the end of that night.
  package var opening = 0
  /// Met since for the first time, or again after they were closed.
  package var new = 0
  /// Closed since.
  package var closed = 0
  /// The same in money.
  package var rollForward = RollForward()
  /// What came since and is gone again.
  package private(set) var passing = Stake()

  /// No findings, then and now.
  package init() {}

  /// Counts a finding that is open now.
  ///
  /// - Parameter today: the day of the as-of in the report's time zone, `2026-11-20`.
  package mutating func add(_ reported: ReportedFinding, asOf: Instant, today: String = "") {
    let finding = reported.finding
    let owner = reported.owner.flatMap { $0.isEmpty ? nil : $0 }
    var ownerLine = byOwner[owner] ?? OwnerLine(owner: owner)
    ownerLine.open += 1
    ownerLine.critical += finding.severity == .critical ? 1 : 0
    ownerLine.overdue += reported.due.map { $0 < today ? 1 : 0 } ?? 0
    byOwner[owner] = ownerLine
    byKind[finding.kind, default: Stake()].add(finding)
    bySeverity[finding.severity, default: Stake()].add(finding)
    open.add(finding)
    let key = LineKey(kind: finding.kind, severity: finding.severity, currency: finding.currency)
    var line = byLine[key] ?? Line(kind: finding.kind, severity: finding.severity, currency: finding.currency)
    line.findings += 1
    line.minorUnits += Int128(finding.atStake?.minorUnits ?? 0)
    line.unknown += finding.isStakeUnknown ? 1 : 0
    byLine[key] = line
    ageing.add(reported, asOf: asOf)
  }

  /// Counts how a finding that is open now came to be so.
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

  /// Counts a finding that was open then and is not now.
  package mutating func count(closed atStakeBefore: Money?) {
    opening += 1
    closed += 1
    guard let before = atStakeBefore else { return }
    rollForward.opening.add(before)
    rollForward.closed.add(before)
  }

  /// Counts a finding that came after that night and is gone again: in no other number here.
  package mutating func count(passing finding: Finding) { passing.add(finding) }

  /// The open ones by kind, severity and currency, in no order.
  package var lines: [Line] { Array(byLine.values) }

  /// Open findings by owner: most overdue ones first, then most open ones; those without an owner last.
  package var owners: [OwnerLine] {
    byOwner.values.sorted {
      if ($0.owner == nil) != ($1.owner == nil) { return $1.owner == nil }
      return ($1.overdue, $1.open, $0.owner ?? "") < ($0.overdue, $0.open, $1.owner ?? "")
    }
  }

  /// Open now.
  package var closing: Int { open.findings }

  /// Money at stake in the open findings.
  package var atStake: MoneyByCurrency { open.money }

  /// Open findings of the kinds that have any.
  package var openByKind: [FindingKind: Int] { byKind.mapValues(\.findings) }

  /// The kinds that have any, worst first.
  package var openKinds: [FindingKind] { FindingKind.allCases.filter { byKind[$0] != nil } }

  /// Of what severities the open findings of a kind are, worst first: not always that of the kind.
  package func severities(of kind: FindingKind) -> [(Severity, Int)] {
    Severity.allCases.compactMap { severity in
      let count = byLine.values.reduce(0) { $0 + ($1.kind == kind && $1.severity == severity ? $1.findings : 0) }
      return count == 0 ? nil : (severity, count)
    }
  }

  /// The same in words: `critical`, or `1 major, 18 minor`.
  package func severityWords(of kind: FindingKind) -> String {
    FindingsSummary.severityWords(severities(of: kind).map { ($0.rawValue, $1) })
  }

  static func severityWords(_ severities: [(String, Int)]) -> String {
    if severities.count == 1 { return severities[0].0 }
    return severities.map { "\($1) \($0)" }.joined(separator: ", ")
  }

  /// Open findings of one severity.
  package func count(_ severity: Severity) -> Int { bySeverity[severity]?.findings ?? 0 }

  /// Money at stake in the open findings of one severity.
  package func atStake(_ severity: Severity) -> MoneyByCurrency { bySeverity[severity]?.money ?? MoneyByCurrency() }

  /// Findings do not get lost between two nights, and neither does their money.
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
