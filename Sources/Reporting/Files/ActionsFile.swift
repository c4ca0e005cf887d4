import Foundation
import Reconciliation

/// `actions.json`: what the shop's own jobs may do about the findings, one object a line within one array.
struct ActionsFile: ~Copyable {
  static let fileName = "actions.json"

  /// One thing to do.
  struct Action: Encodable {
    let findingId: String
    let kind: String
    let orderId: String?
    let userId: String?
    let action: String
    let facts: Facts
    let evidence: Evidence

    // The keys are spelt out, because to find out how each is spelt took longer than to write it.
    enum CodingKeys: String, CodingKey {
      case findingId = "finding_id"
      case kind
      case orderId = "order_id"
      case userId = "user_id"
      case action, facts, evidence
    }

    /// What a job needs to do it.
    struct Facts: Encodable {
      let severity: String
      let productId: String?
      let deliveryId: String?
      let currency: String?
      let amount: String?
      let atStake: String?
      let paidAt: String?
      let deliveredAt: String?
      let occurredAt: String?
      let reason: String

      enum CodingKeys: String, CodingKey {
        case severity
        case productId = "product_id"
        case deliveryId = "delivery_id"
        case currency, amount
        case atStake = "at_stake"
        case paidAt = "paid_at"
        case deliveredAt = "delivered_at"
        case occurredAt = "occurred_at"
        case reason
      }
    }

    /// What it rests on.
    struct Evidence: Encodable {
      let transactionId: String?
      let receiptId: String?
      let environment: String?
      let checkedAt: String?

      enum CodingKeys: String, CodingKey {
        case transactionId = "transaction_id"
        case receiptId = "receipt_id"
        case environment
        case checkedAt = "checked_at"
      }
    }

    init(_ line: FindingLine, pseudonyms: Pseudonyms?) {
      let finding = line.reported.finding
      findingId = line.reported.findingId
      kind = finding.kind.rawValue
      orderId = finding.orderId?.text
      userId = finding.userId.map { pseudonyms?.pseudonym(of: $0) ?? $0.text }
      action = finding.kind.action.rawValue
      facts = Facts(
        severity: finding.severity.rawValue, productId: finding.productId?.text, deliveryId: finding.deliveryId?.text,
        currency: line.currency?.code,
        amount: finding.amount.flatMap { $0.currency == line.currency ? $0.decimalText : nil },
        atStake: finding.atStake?.decimalText, paidAt: finding.paidAt?.text, deliveredAt: finding.deliveredAt?.text,
        occurredAt: finding.occurredAt?.text, reason: finding.reason)
      evidence = Evidence(
        transactionId: finding.transactionId?.text, receiptId: finding.receiptId?.text,
        environment: finding.environment?.rawValue, checkedAt: finding.evidenceCheckedAt?.text)
    }
  }

  private var file: OutputFile
  private var isFirst = true
  private let pseudonyms: Pseudonyms?
  private let encoder = JSONEncoder()

  init(_ options: ReportOptions) throws(ReportError) {
    var file = try OutputFile(directory: options.directory, name: ActionsFile.fileName)
    try file.write(Array("[".utf8))
    self.file = file
    pseudonyms = options.pseudonyms
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
  }

  mutating func add(_ line: FindingLine) throws(ReportError) {
    let content: Data
    do {
      content = try encoder.encode(Action(line, pseudonyms: pseudonyms))
    } catch {
      // Text can always be encoded.
      throw ReportError.cannotWrite(file: ActionsFile.fileName, systemError: EINVAL)
    }
    try file.write(Array((isFirst ? "\n" : ",\n").utf8) + content)
    isFirst = false
  }

  consuming func finish() throws(ReportError) -> ReportFile {
    try file.write(Array((isFirst ? "]\n" : "\n]\n").utf8))
    return try file.finish()
  }
}
