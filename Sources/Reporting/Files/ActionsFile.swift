import Reconciliation

/// `actions.json`: the suggested actions for the shop's own jobs, one object a line in one array.
struct ActionsFile: ~Copyable {
  static let fileName = "actions.json"

  private var file: OutputFile
  private var isFirst = true
  private let pseudonyms: Pseudonyms?
  private var text = JSONText()

  private static let blockSize = 1 << 16

  init(_ options: ReportOptions) throws(ReportError) {
    var file = try OutputFile(directory: options.directory, name: ActionsFile.fileName)
    try file.write(Array("[".utf8))
    self.file = file
    pseudonyms = options.pseudonyms
  }

  mutating func add(_ line: FindingLine) throws(ReportError) {
    text.append(isFirst ? "\n" : ",\n")
    put(line)
    if text.bytes.count >= ActionsFile.blockSize { try flush() }
    isFirst = false
  }

  private mutating func flush() throws(ReportError) {
    try file.write(text.bytes)
    text.removeAll()
  }

  /// Keys are in alphabetical order. Keys of facts and evidence appear only with a value.
  private mutating func put(_ line: FindingLine) {
    var finding = line.reported.finding
    // A person has accepted the loss, or has dealt with it.
    if !line.reported.isUndecided { (finding.action, finding.units, finding.refundToBook) = (.look, nil, nil) }
    text.open()
    text.put("action", finding.action.rawValue)
    text.open("evidence")
    text.put("checked_at", finding.evidenceCheckedAt?.text)
    text.put("environment", finding.environment?.rawValue)
    text.put("receipt_id", finding.receiptId)
    text.put("transaction_id", finding.transactionId)
    text.close()
    text.open("facts")
    text.put("amount", finding.amountInRiskCurrency?.decimalText)
    text.put("at_stake", finding.atStake?.decimalText)
    text.put("currency", finding.currency?.code)
    text.put("delivered_at", finding.deliveredAt?.text)
    text.put("delivery_id", finding.deliveryId)
    text.put("expires_at", finding.subscriptionExpiresDate?.text)
    text.put("held_by", shown(finding.goodsHolder))
    text.put("occurred_at", finding.occurredAt?.text)
    text.put("paid_at", finding.paidAt?.text)
    text.put("product_id", finding.productId)
    text.put("reason", finding.reason.text)
    text.put("refunded", finding.refundToBook?.decimalText)
    text.put("severity", finding.severity.rawValue)
    text.put("subscription_status", finding.subscriptionStatus?.word)
    text.put("units_held", finding.units?.delivered)
    text.put("units_ordered", finding.units?.ordered)
    text.close()
    text.put("finding_id", line.reported.findingId)
    text.put("kind", finding.kind.rawValue)
    text.put(orNull: "order_id", finding.orderId?.text)
    text.put(orNull: "user_id", shown(finding.userId))
    text.close()
  }

  private func shown(_ user: Identifier?) -> String? { user.map { pseudonyms?.pseudonym(of: $0) ?? $0.text } }

  consuming func finish() throws(ReportError) -> ReportFile {
    text.append(isFirst ? "]\n" : "\n]\n")
    try flush()
    return try file.finish()
  }
}
