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
  private let settings: Settings

  /// - Parameter asOf: what ages are counted to.
  package init(_ findings: [StoredFinding], asOf: Instant, settings: Settings) {
    self.findings = findings
    self.asOf = asOf
    self.settings = settings
  }

  /// The columns and the dialect of `findings.csv`, sorted by id.
  package var csv: String {
    var listing = FindingsListing(asOf: asOf, apps: settings.appNames, timeZone: settings.timeZone)
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
    /// Whether it puts money at stake whose amount nobody knows.
    let atStakeUnknown: Bool
    let occurredAt: String?
    let daysSince: Int64?
    let paidAt: String?
    let deliveredAt: String?
    let firstSeen: String
    let lastSeen: String
    let closedAt: String?
    let ageDays: Int64
    let status: String
    let owner: String?
    let due: String?
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
      currency = finding.currency?.code
      amount = finding.amountBesideStake?.decimalText
      atStake = finding.atStake?.decimalText
      atStakeUnknown = finding.isStakeUnknown
      occurredAt = finding.occurredAt?.text
      daysSince = FindingsText.days(since: finding.occurredAt, asOf)
      paidAt = finding.paidAt?.text
      deliveredAt = finding.deliveredAt?.text
      firstSeen = stored.reported.firstSeen.text
      lastSeen = stored.lastSeen.text
      closedAt = stored.closedAt?.text
      ageDays = FindingsText.days(since: stored.reported.firstSeen, asOf) ?? 0
      status = stored.reported.status
      owner = stored.reported.owner
      due = stored.reported.due
      remark = stored.reported.remark
      reason = finding.reason.text
      suggestedAction = finding.suggestedAction
      history = stored.history.map { Event(at: $0.at.text, event: $0.event, by: $0.actor, detail: $0.detail) }
    }
  }

  /// A list of objects whose keys are the columns of `findings.csv`, and what people and nights did.
  package var json: String {
    get throws { try MachineText.json(findings.map { Document($0, asOf: asOf) }) }
  }

  // MARK: - For people

  private static func days(since instant: Instant?, _ asOf: Instant) -> Int64? {
    instant.map { max(0, (asOf - $0).wholeDays) }
  }

  /// A table, worst first, as the sheet has it: `days` is how old the deal is, `known` for how many days people know.
  ///
  /// - Parameter width: of the terminal in characters; nil for as wide as it takes.
  package func table(width: Int?) -> String {
    if findings.isEmpty { return "No findings." }
    var table = TextTable([
      .left("finding"), .left("severity"), .left("kind"), .left("order"), .right("at stake"), .right("days"),
      .right("known"), .left("status"), .left("owner"), .left("reason"),
    ])
    var stake = Stake()
    let worstFirst = findings.map { (key: $0.reported.urgency(asOf: asOf), stored: $0) }
      .sorted { $0.key.lexicographicallyPrecedes($1.key) }
    for (_, stored) in worstFirst {
      let finding = stored.reported.finding
      if stored.closedAt == nil { stake.add(finding) }
      table.add([
        String(stored.reported.findingId.prefix(12)), finding.severity.rawValue, finding.kind.rawValue,
        (finding.orderId ?? finding.subject.id).text,
        finding.atStake.map { "\($0.decimalText) \($0.currency)" } ?? (finding.isStakeUnknown ? "unknown" : ""),
        FindingsText.days(since: finding.occurredAt, asOf).map(String.init) ?? "",
        String(FindingsText.days(since: stored.reported.firstSeen, asOf) ?? 0),
        stored.closedAt == nil ? stored.reported.status : "gone", stored.reported.owner ?? "",
        ([finding.reason.text] + (stored.reported.remark.map { ["— \($0)"] } ?? [])).joined(separator: " "),
      ])
    }
    let count = findings.count == 1 ? "1 finding" : "\(findings.count) findings"
    return table.text(width: width) + "\n\(count). At stake in the open ones: \(stake.words)."
  }
}

/// What became of a decision, in words.
package struct DecisionText {
  private let outcome: FindingsEditor.Outcome
  private let isDryRun: Bool
  /// The change that was taken back; nil: the decision is one of its own.
  private let undone: String?

  package init(_ outcome: FindingsEditor.Outcome, isDryRun: Bool, undone: String? = nil) {
    self.outcome = outcome
    self.isDryRun = isDryRun
    self.undone = undone
  }

  private struct Document: Encodable {
    let changed: [String]
    let unchanged: [String]
    let dryRun: Bool
    /// What `findings undo` takes back, or has taken back; absent for a decision about one finding.
    let changeId: String?
  }

  package var line: String {
    func findings(_ ids: [String]) -> String { ids.count == 1 ? "1 finding" : "\(ids.count) findings" }
    let changed = findings(outcome.changed)
    if let undone {
      let rest =
        outcome.unchanged.isEmpty ? "" : "; \(outcome.unchanged.count) stay as somebody has changed them since"
      return "Change \(undone.prefix(8)): "
        + (isDryRun ? "would take back \(changed)\(rest). Nothing was changed." : "took back \(changed)\(rest).")
    }
    let rest = outcome.unchanged.isEmpty ? "" : "; \(outcome.unchanged.count) were so already"
    if isDryRun { return "Would change \(changed)\(rest). Nothing was changed." }
    let undo = outcome.changeId.map { " To take it back: night-audit findings undo \($0.prefix(8))" } ?? ""
    return "Changed \(changed)\(rest).\(undo)"
  }

  package var json: String {
    get throws {
      try MachineText.json(
        Document(
          changed: outcome.changed, unchanged: outcome.unchanged, dryRun: isDryRun,
          changeId: undone ?? outcome.changeId))
    }
  }
}
