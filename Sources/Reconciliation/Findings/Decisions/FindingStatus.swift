/// The status that people give a finding. Facts alone decide whether the finding applies.
/// It stays as long as the facts do, and becomes `open` when a finding that had closed by itself applies again.
public enum FindingStatus: String, Hashable, CaseIterable, Sendable {
  case open
  case acknowledged
  /// Accepted until a day or up to an amount (`Acceptance`), after which the finding comes back.
  case accepted
  /// Settled for people. It stays in reports and counts as open while the facts do not change.
  case closed
}

/// The owners of new findings, by kind, else by severity.
public struct FindingOwners: Hashable, Sendable {
  public var byKind: [FindingKind: String] = [:]
  public var bySeverity: [Severity: String] = [:]

  public init() {}

  public func owner(of finding: Finding) -> String? { byKind[finding.kind] ?? bySeverity[finding.severity] }
}
