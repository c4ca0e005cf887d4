import Reconciliation

extension ReportedFinding {
  /// The sort key of lists for people: severity, currency, amount at risk, age, ID.
  ///
  /// The largest amount and the oldest transaction come first, unknown amounts last.
  package func urgency(asOf: Instant) -> [UInt8] {
    let severity: UInt8 =
      switch finding.severity {
      case .critical: 0
      case .major: 1
      case .minor: 2
      }
    let currency = finding.currency?.code.utf8.map(\.self) ?? [0xFF, 0xFF, 0xFF]
    let stake = finding.atStake.map { ~UInt64(bitPattern: $0.minorUnits &+ Int64.min) } ?? UInt64.max
    let days = finding.occurredAt.map { max(0, (asOf - $0).wholeDays) } ?? -1
    return [severity] + currency + ReportedFinding.bytes(stake) + [finding.atStake == nil ? 1 : 0]
      + ReportedFinding.bytes(~UInt64(bitPattern: days &+ Int64.min)) + [UInt8](findingId.utf8)
  }

  private static func bytes(_ number: UInt64) -> [UInt8] {
    withUnsafeBytes(of: number.bigEndian) { [UInt8]($0) }
  }
}
