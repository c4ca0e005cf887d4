import AuditStore
import Auditing
import Foundation
import Reconciliation
import Reporting
import Run

/// Findings for people, for machines and for spreadsheets.
package struct FindingsText {
  private let findings: [StoredFinding]
  private let asOf: Instant

  /// - Parameter asOf: what ages are counted to.
  package init(_ findings: [StoredFinding], asOf: Instant) {
    self.findings = findings
    self.asOf = asOf
  }

  /// The columns and the dialect of `findings.csv`, sorted by id.
  package var csv: String {
    var listing = FindingsListing(asOf: asOf)
    for finding in findings { listing.add(finding.reported) }
    return String(decoding: listing.bytes, as: UTF8.self)
  }

  // MARK: - For machines

  private struct Document: Encodable {
    struct Event: Encodable {
      let at: String
      let event: String
      let by: String?
      let detail: String?
    }

    let findingId: String
    let kind: String
    let severity: String
    let orderId: String?
    let userId: String?
    let productId: String?
    let transactionId: String?
    let receiptId: String?
    let deliveryId: String?
    let environment: String?
    let currency: String?
    let amount: String?
    let atStake: String?
    let paidAt: String?
    let deliveredAt: String?
    let firstSeen: String
    let lastSeen: String
    let closedAt: String?
    let ageDays: Int64
    let status: String
    let owner: String?
    let remark: String?
    let reason: String
    let suggestedAction: String
    let history: [Event]

    init(_ stored: StoredFinding, asOf: Instant) {
      let finding = stored.reported.finding
      findingId = stored.reported.findingId
      kind = finding.kind.rawValue
      severity = finding.severity.rawValue
      orderId = finding.orderId?.text
      userId = finding.userId?.text
      productId = finding.productId?.text
      transactionId = finding.transactionId?.text
      receiptId = finding.receiptId?.text
      deliveryId = finding.deliveryId?.text
      environment = finding.environment?.rawValue
      currency = (finding.atStake ?? finding.amount)?.currency.code
      amount = finding.amount?.decimalText
      atStake = finding.atStake?.decimalText
      paidAt = finding.paidAt?.text
      deliveredAt = finding.deliveredAt?.text
      firstSeen = stored.reported.firstSeen.text
      lastSeen = stored.lastSeen.text
      closedAt = stored.closedAt?.text
      ageDays = max(0, (asOf - stored.reported.firstSeen).wholeDays)
      status = stored.reported.status
      owner = stored.reported.owner
      remark = stored.reported.remark
      reason = finding.reason
      suggestedAction = finding.kind.suggestedAction
      history = stored.history.map { Event(at: $0.at.text, event: $0.event, by: $0.actor, detail: $0.detail) }
    }
  }

  /// A list of objects whose keys are the columns of `findings.csv`, and what people and nights did.
  package var json: String {
    get throws { try MachineText.json(findings.map { Document($0, asOf: asOf) }) }
  }

  // MARK: - For people

  /// A table, worst first.
  ///
  /// - Parameter width: of the terminal in characters; nil for as wide as it takes.
  package func table(width: Int?) -> String {
    if findings.isEmpty { return "No findings." }
    var table = TextTable([
      .left("finding"), .left("severity"), .left("kind"), .left("order"), .right("at stake"), .right("days"),
      .left("status"), .left("owner"), .left("reason"),
    ])
    for stored in findings.sorted(by: FindingsText.isWorse) {
      let finding = stored.reported.finding
      table.add([
        String(stored.reported.findingId.prefix(12)), finding.severity.rawValue, finding.kind.rawValue,
        (finding.orderId ?? finding.subject.id).text,
        finding.atStake.map { "\($0.decimalText) \($0.currency)" } ?? "",
        String(max(0, (asOf - stored.reported.firstSeen).wholeDays)),
        stored.closedAt == nil ? stored.reported.status : "gone", stored.reported.owner ?? "",
        ([finding.reason] + (stored.reported.remark.map { ["— \($0)"] } ?? [])).joined(separator: " "),
      ])
    }
    let count = findings.count == 1 ? "1 finding." : "\(findings.count) findings."
    return table.text(width: width) + "\n" + count
  }

  private static func isWorse(_ left: StoredFinding, _ right: StoredFinding) -> Bool {
    (
      left.reported.finding.severity, left.reported.finding.kind.index, left.reported.firstSeen,
      left.reported.findingId
    )
      < (
        right.reported.finding.severity, right.reported.finding.kind.index, right.reported.firstSeen,
        right.reported.findingId
      )
  }
}

/// What became of a decision, in words.
package struct DecisionText {
  private let outcome: FindingsEditor.Outcome
  private let isDryRun: Bool

  package init(_ outcome: FindingsEditor.Outcome, isDryRun: Bool) {
    self.outcome = outcome
    self.isDryRun = isDryRun
  }

  private struct Document: Encodable {
    let changed: [String]
    let unchanged: [String]
    let dryRun: Bool
  }

  package var line: String {
    let changed = outcome.changed.count == 1 ? "1 finding" : "\(outcome.changed.count) findings"
    let rest = outcome.unchanged.isEmpty ? "" : "; \(outcome.unchanged.count) were so already"
    return isDryRun ? "Would change \(changed)\(rest). Nothing was changed." : "Changed \(changed)\(rest)."
  }

  package var json: String {
    get throws {
      try MachineText.json(Document(changed: outcome.changed, unchanged: outcome.unchanged, dryRun: isDryRun))
    }
  }
}
