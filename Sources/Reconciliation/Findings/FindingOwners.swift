/// The owners of new findings, by kind, else by severity.
public struct FindingOwners: Hashable, Sendable {
  public var byKind: [FindingKind: String] = [:]
  public var bySeverity: [Severity: String] = [:]

  public init() {}

  public func owner(of finding: Finding) -> String? { byKind[finding.kind] ?? bySeverity[finding.severity] }
}
