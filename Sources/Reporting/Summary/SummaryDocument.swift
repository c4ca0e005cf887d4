import Foundation
import Reconciliation

/// The document `summary.json`.
package struct SummaryDocument: Codable {
  package static let fileName = "summary.json"

  struct Period: Codable {
    var since: String
    var until: String
    var timeZone: String
    var ended: Bool
    var missingDays: Int
  }

  struct Orders: Codable {
    var read: Int
  }

  struct Bucket: Codable {
    var orders: Int
    var amount: [String: String]
  }

  struct Findings: Codable {
    var open: [String: Int]
    /// Counts by kind and severity. The severity may differ from the kind's own: App Review findings are minor.
    var severities: [String: [String: Int]]
    var opening: Int
    var new: Int
    var closed: Int
    var closing: Int
    var atStake: [String: String]
    /// Amounts of the kinds that have one; nil in reports of earlier versions.
    var atStakeByKind: [String: [String: String]]?
    var atStakeUnknown: Int
    var ageing: [Age]
  }

  struct Age: Codable {
    var days: String
    var findings: Int
    var atStake: [String: String]
    var atStakeUnknown: Int
    var known: Int
  }

  struct Changes: Codable {
    /// As-of of that night; nil for the first night.
    var since: String?
    /// False if no night was complete yet; the last night with a report is then compared.
    var sinceComplete: Bool
    var counts: [String: Int]
    var first: [String]
  }

  /// Apple's proceeds of the newest fiscal period in one currency; a nil amount is unknown.
  struct Settlement: Codable {
    var fiscalPeriod: String
    var currency: String
    var salesProceeds: String?
    var settled: String?
    var difference: String?

    init(_ line: SettlementLine) {
      (fiscalPeriod, currency) = (line.period, line.currency)
      func text(_ figure: Millionths?) -> String? { figure?.text(digits: Int(line.digits)) }
      salesProceeds = text(line.proceedsEarned)
      settled = text(line.proceedsPaid)
      difference = text(line.difference)
    }
  }

  package var complete: Bool
  var incompleteReasons: [String]
  /// In RFC 3339.
  package var asOf: String
  var period: Period
  var configuration: String
  var orders: Orders
  var dispositions: [String: Bucket]
  var findings: Findings
  package var control: [ControlTotal]
  var adjustments: [AdjustmentLine]
  var changes: Changes
  var notChecked: [String: [String]]
  var feedCoverage: [String: Double]
  var unusual: [String]
  /// The five most urgent findings, one line each.
  var first: [String]
  /// nil if no tie-out is configured.
  var tieOut: TieOutBlock?
  /// nil without a settled fiscal period.
  var settlement: [Settlement]?

  package init(totals: Totals, summary: SummaryFacts, control: [ControlTotal], asOf: Instant) {
    complete = summary.isComplete
    incompleteReasons = summary.incompleteReasons
    self.asOf = asOf.text
    period = Period(
      since: summary.period.since, until: summary.period.until, timeZone: summary.timeZone,
      ended: summary.missingDays == 0,
      missingDays: summary.missingDays)
    configuration = summary.configuration
    orders = Orders(read: totals.ordersRead)
    dispositions = [:]
    for disposition in Disposition.allCases {
      dispositions[disposition.rawValue] = Bucket(
        orders: totals.ordersByDisposition[disposition.index],
        amount: totals.amountByDisposition[disposition.index].texts)
    }
    findings = Findings(summary.findings)
    adjustments = summary.adjustments.map { AdjustmentLine($0) }
    tieOut = summary.tieOut.map { TieOutBlock($0) }
    let proceeds = summary.tieOut?.proceeds ?? []
    settlement = proceeds.isEmpty ? nil : proceeds.map { Settlement($0) }
    notChecked = summary.notChecked.mapValues { $0.map(\.rawValue) }
    feedCoverage = summary.feedCoverage.mapValues(\.share)
    unusual = summary.unusual.map(\.words)
    first = summary.first.map(\.line)
    self.control = control
    changes = Changes(
      since: summary.changes.since?.text, sinceComplete: summary.changes.isSinceCompleteNight,
      counts: Dictionary(uniqueKeysWithValues: summary.changes.counts.map { ($0.key.rawValue, $0.value) }),
      first: summary.changes.first)
  }

  package init?(json: [UInt8]) {
    let decoder = JSONDecoder()
    decoder.keyDecodingStrategy = .convertFromSnakeCase
    guard let document = try? decoder.decode(SummaryDocument.self, from: Data(json)) else { return nil }
    self = document
  }

  package func encoded() throws(ReportError) -> [UInt8] {
    try JSONText.document(self, named: SummaryDocument.fileName, keys: .convertToSnakeCase)
  }
}

extension SummaryDocument.Findings {
  fileprivate init(_ findings: FindingsSummary) {
    self.init(
      open: Dictionary(uniqueKeysWithValues: findings.openByKind.map { ($0.key.rawValue, $0.value) }),
      severities: Dictionary(
        uniqueKeysWithValues: findings.openKinds.map { kind in
          (kind.rawValue, Dictionary(uniqueKeysWithValues: findings.severities(of: kind).map { ($0.rawValue, $1) }))
        }),
      opening: findings.opening, new: findings.new, closed: findings.closed, closing: findings.closing,
      atStake: findings.atStake.texts,
      atStakeByKind: Dictionary(
        uniqueKeysWithValues: findings.byKind.map { ($0.key.rawValue, $0.value.money.texts) }.filter { !$0.1.isEmpty }),
      atStakeUnknown: findings.open.unknown,
      ageing: findings.ageing.buckets.map { bucket in
        let stake = findings.ageing[bucket]
        return SummaryDocument.Age(
          days: bucket.rawValue, findings: stake.findings, atStake: stake.money.texts, atStakeUnknown: stake.unknown,
          known: findings.ageing.known(bucket))
      })
  }
}
