/// The urgency of a finding.
public enum Severity: String, OrderedCases, Sendable {
  /// Money or a customer is wrong now.
  case critical
  case major
  case minor
}
