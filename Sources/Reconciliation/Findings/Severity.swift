/// The urgency of a finding.
public enum Severity: String, Hashable, Comparable, CaseIterable, Sendable {
  /// Money or a customer is wrong now.
  case critical
  case major
  case minor

  private var rank: Int {
    switch self {
    case .critical: 0
    case .major: 1
    case .minor: 2
    }
  }

  // The synthesised function would hash the raw value.
  public func hash(into hasher: inout Hasher) { hasher.combine(rank) }

  public static func < (left: Severity, right: Severity) -> Bool { left.rank < right.rank }
}
