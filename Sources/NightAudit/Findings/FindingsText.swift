import AuditStore
import Auditing
import Foundation
import Reconciliation
import Reporting
import Run
import Settings
import Streams

/// Findings as CSV: the columns and dialect of `findings.csv`, sorted by ID.
package struct FindingsCSV: FindingsOutput, ~Copyable {
  package static let requestsHistory = false

  private var listing: FindingsListing
  private let print: (String) -> Void

  package init(asOf: Instant, settings: Settings, print: @escaping (String) -> Void) {
    listing = FindingsListing(asOf: asOf, apps: settings.appNames, timeZone: settings.timeZone)
    self.print = print
    print(listing.takeText())
  }

  package mutating func add(_ finding: StoredFinding) {
    listing.add(finding.reported)
    print(listing.takeText())
  }

  package func finish() {}
}

/// Findings as JSON: one object, whose `findings` have the keys of `findings.csv`, each with its history.
package struct FindingsJSON: FindingsOutput {
  package static let requestsHistory = true

  private var list = MachineText.List<Document>(named: "findings")
  private let asOf: Instant
  private let print: (String) -> Void

  package init(asOf: Instant, print: @escaping (String) -> Void) {
    self.asOf = asOf
    self.print = print
  }

  package mutating func add(_ finding: StoredFinding) throws { print(try list.add(Document(finding, asOf: asOf))) }

  package func finish() throws { print(try list.end() + "\n") }

  struct Document: Encodable {
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
  }
}

extension FindingsJSON.Document {
  fileprivate init(_ stored: StoredFinding, asOf: Instant) {
    let (reported, finding) = (stored.reported, stored.reported.finding)
    self.init(
      findingId: reported.findingId, kind: finding.kind.rawValue, severity: finding.severity.rawValue,
      orderId: finding.orderId?.text, userId: finding.userId?.text, productId: finding.productId?.text,
      transactionId: finding.transactionId?.text, receiptId: finding.receiptId?.text,
      deliveryId: finding.deliveryId?.text, environment: finding.environment?.rawValue,
      currency: finding.currency?.code, amount: finding.amountInRiskCurrency?.decimalText,
      atStake: finding.atStake?.decimalText, atStakeUnknown: finding.isAmountAtRiskUnknown,
      occurredAt: finding.occurredAt?.text, daysSince: finding.occurredAt?.days(until: asOf),
      paidAt: finding.paidAt?.text, deliveredAt: finding.deliveredAt?.text, firstSeen: reported.firstSeen.text,
      lastSeen: stored.lastSeen.text, closedAt: stored.closedAt?.text, ageDays: reported.firstSeen.days(until: asOf),
      status: reported.status, owner: reported.owner, due: reported.due, remark: reported.remark,
      reason: finding.reason.text, suggestedAction: finding.suggestedAction,
      history: stored.history.map { .init(at: $0.at.text, event: $0.event, by: $0.actor, detail: $0.detail) })
  }
}

/// Findings as a table for people, worst first. Rows wait in a file until column widths are known.
package struct FindingsTable: FindingsOutput, ~Copyable {
  package static let requestsHistory = false

  private var columns = TextColumns([
    .left("finding"), .left("severity"), .left("kind"), .left("order"), .right("amount at risk"), .right("days since"),
    .right("age"), .left("status"), .left("owner"), .left("reason"),
  ])
  private let rows = SpillSorter(directory: NSTemporaryDirectory())
  private var record = RecordBytes()
  private var stake = RiskTotal()
  private let asOf: Instant
  private let width: Int?
  private let print: (String) -> Void

  package init(asOf: Instant, width: Int?, print: @escaping (String) -> Void) {
    (self.asOf, self.width, self.print) = (asOf, width, print)
  }

  package mutating func add(_ stored: StoredFinding) throws {
    let (reported, finding) = (stored.reported, stored.reported.finding)
    if stored.closedAt == nil { stake.add(finding) }
    let cells = columns.measure([
      String(reported.findingId.prefix(12)), finding.severity.rawValue, finding.kind.title,
      (finding.orderId ?? finding.subject.id).text, reported.stakeText,
      finding.occurredAt.map { String($0.days(until: asOf)) } ?? "", String(reported.firstSeen.days(until: asOf)),
      // A person can close a finding, too; its status is then `closed` as long as it applies.
      stored.closedAt == nil ? reported.status : "closed by itself", reported.owner ?? "",
      ([finding.reason.text] + (reported.remark.map { ["— \($0)"] } ?? [])).joined(separator: " "),
    ])
    record.clear()
    record.put(cells) { $1.put($0) }
    try rows.add(key: reported.urgency(asOf: asOf), content: record.content)
  }

  package mutating func finish() throws {
    if rows.count == 0 { return print("No findings.\n") }
    print(columns.titles(width: width) + "\n")
    while let row = try rows.next() {
      var reader = RecordReader(row.content)
      let cells = try reader.list { (reader) throws(RecordReader.Mismatch) in try reader.text() }
      print(columns.line(cells, width: width) + "\n")
    }
    let count = rows.count == 1 ? "1 finding" : "\(rows.count) findings"
    print("\(count). Amount at risk in the open ones: \(stake.words).\n")
  }
}

extension Instant {
  fileprivate func days(until later: Instant) -> Int64 { max(0, (later - self).wholeDays) }
}

package struct DecisionText {
  package struct Document: Encodable {
    let changed: [String]
    let unchanged: [String]
    let dryRun: Bool
    let changeId: String?
    let signOffsOfRuns: [String]?
  }

  package let document: Document
  package let line: String

  package init(_ outcome: FindingsEditor.Outcome, isDryRun: Bool, undone: String? = nil) {
    document = Document(
      changed: outcome.changed, unchanged: outcome.unchanged, dryRun: isDryRun, changeId: undone ?? outcome.changeId,
      signOffsOfRuns: undone == nil ? nil : outcome.signedRuns)
    let changed = outcome.changed.count == 1 ? "1 finding" : "\(outcome.changed.count) findings"
    let others = outcome.unchanged.isEmpty ? nil : outcome.unchanged.count
    guard let undone else {
      let rest = others.map { "; \($0) had this value already" } ?? ""
      let undo = outcome.changeId.map { " To take it back: night-audit findings undo \($0.prefix(8))" } ?? ""
      line = isDryRun ? "Would change \(changed)\(rest). Nothing was changed." : "Changed \(changed)\(rest).\(undo)"
      return
    }
    let rest =
      others.map { others in
        others == 1
          ? "; 1 was changed since and stays as it is" : "; \(others) were changed since and stay as they are"
      } ?? ""
    let runs = outcome.signedRuns.map { String($0.prefix(8)) }.joined(separator: ", ")
    let all = changed + (runs.isEmpty ? "" : " and the sign-off of run \(runs)") + rest
    line =
      "Change \(undone.prefix(8)): " + (isDryRun ? "would take back \(all). Nothing was changed." : "took back \(all).")
  }
}
