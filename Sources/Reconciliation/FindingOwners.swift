/// Who takes care of findings that nobody has taken on yet: by kind, else by severity.
package struct FindingOwners: Hashable, Sendable {
  package var byKind: [FindingKind: String] = [:]
  package var bySeverity: [Severity: String] = [:]

  /// Nobody.
  package init() {}

  package var isEmpty: Bool { byKind.isEmpty && bySeverity.isEmpty }

  /// The owner of a new finding; nil: nobody.
  package func owner(of finding: Finding) -> String? { byKind[finding.kind] ?? bySeverity[finding.severity] }
}
