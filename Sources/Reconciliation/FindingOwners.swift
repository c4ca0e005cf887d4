/// Who takes care of findings that nobody has taken on yet: by kind, else by severity.
public struct FindingOwners: Hashable, Sendable {
  public var byKind: [FindingKind: String] = [:]
  public var bySeverity: [Severity: String] = [:]

  /// Nobody.
  public init() {}

  public var isEmpty: Bool { byKind.isEmpty && bySeverity.isEmpty }

  /// The owner of a new finding; nil: nobody.
  public func owner(of finding: Finding) -> String? { byKind[finding.kind] ?? bySeverity[finding.severity] }
}
