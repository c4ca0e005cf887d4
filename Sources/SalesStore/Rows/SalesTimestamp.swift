import Postgres
import Reconciliation

extension SalesRows {
  package enum Timestamp: Hashable, Sendable {
    case missing
    case infinite
    case beyond
    case finite(Instant)

    package var instant: Instant? {
      switch self {
      case .finite(let instant): instant
      case .missing, .infinite, .beyond: nil
      }
    }

    func defect(_ column: String, isRequired: Bool) -> String? {
      switch self {
      case .missing: isRequired ? "\(column) is missing" : nil
      case .infinite: "\(column) is infinite"
      case .beyond: "\(column) is not within the years 1900 to 9999"
      case .finite: nil
      }
    }
  }

  /// The range that a report can show in every time zone: spreadsheets begin with 1900 and end with 9999.
  static let shown: Range<Int64> = -2_208_900_000_000_000..<253_402_128_000_000_000

  /// A condition that a date is in that range.
  static func isShown(_ column: String) -> String {
    let (first, end) = (shown.lowerBound / 1_000_000, shown.upperBound / 1_000_000)
    return "\(column) >= to_timestamp(\(first)) AND \(column) < to_timestamp(\(end))"
  }

  package static func timestamp(_ row: borrowing CopyReader, _ column: Int) throws(PostgresError) -> Timestamp {
    if try row.isNull(column) { return .missing }
    if try row.isInfinite(column) { return .infinite }
    guard let microseconds = try row.representableTimestamp(column), shown.contains(microseconds) else {
      return .beyond
    }
    return .finite(Instant(microseconds: microseconds))
  }
}
