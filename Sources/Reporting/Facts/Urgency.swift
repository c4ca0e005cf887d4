import Reconciliation

extension ReportedFinding {
  /// The sort key of lists for people: severity, currency, amount at risk, age, ID. The largest amount and the oldest
  /// transaction come first, unknown amounts last.
  package func urgency(asOf: Instant) -> [UInt8] {
    let currency = finding.currency?.code.utf8.map(\.self) ?? [0xFF, 0xFF, 0xFF]
    let stake = finding.atStake.map { ~UInt64(bitPattern: $0.minorUnits &+ Int64.min) } ?? UInt64.max
    let days = finding.occurredAt.map { max(0, (asOf - $0).wholeDays) } ?? -1
    return [UInt8(finding.severity.index)] + currency + ReportedFinding.bytes(stake) + [finding.atStake == nil ? 1 : 0]
      + ReportedFinding.bytes(~UInt64(bitPattern: days &+ Int64.min)) + [UInt8](findingId.utf8)
  }

  private static func bytes(_ number: UInt64) -> [UInt8] { withUnsafeBytes(of: number.bigEndian) { [UInt8]($0) } }
}

/// The findings to do first, of all currencies. Findings that a person has accepted or closed are left out.
package struct FirstFindings {
  private static let limit = 5
  private var worst: [ReportedFinding] = []
  private var ofGroup = 0

  package init() {}

  /// Adds the next finding in the order of ``ReportedFinding/urgency(asOf:)``.
  package mutating func add(_ reported: ReportedFinding) {
    guard reported.isUndecided else { return }
    let (last, next) = (worst.last?.finding, reported.finding)
    if last?.severity != next.severity || last?.currency != next.currency { ofGroup = 0 }
    ofGroup += 1
    if ofGroup <= Self.limit { worst.append(reported) }
  }

  /// The worst by severity, then by the amount at risk in average orders, which compares currencies without rates.
  /// - Parameter averageOrder: the mean amount of an order of the report in minor units; nil: none has the currency.
  package func ranked(averageOrder: (Currency) -> Double?) -> [ReportedFinding] {
    func average(_ currency: Currency) -> Double {
      if let average = averageOrder(currency), average > 0 { return average }
      // No order of the report has the currency: the mean of its findings is the measure.
      let amounts = worst.compactMap(\.finding.atStake).filter { $0.currency == currency }.map { Double($0.minorUnits) }
      return max(1, amounts.reduce(0, +) / Double(amounts.count))
    }
    func orders(_ finding: Finding) -> Double {
      finding.atStake.map { Double($0.minorUnits) / average($0.currency) } ?? -1
    }
    let ranked = worst.enumerated().map { (reported: $1, orders: orders($1.finding), place: $0) }.sorted {
      ($0.reported.finding.severity, -$0.orders, $0.place) < ($1.reported.finding.severity, -$1.orders, $1.place)
    }
    return ranked.prefix(Self.limit).map(\.reported)
  }
}
