import Reconciliation

struct FindingLine: TableRow {
  let reported: ReportedFinding
  let asOf: Instant
  private let app: String?
  private let businessDay: String?

  /// - Parameter pseudonyms: replace user IDs in sentences; nil keeps them.
  init(
    _ reported: ReportedFinding, asOf: Instant, in dimensions: inout ReportDimensions, pseudonyms: Pseudonyms? = nil
  ) {
    var reported = reported
    if let pseudonyms {
      if reported.remarkNamesUser { reported.remark = ReportedFinding.withheldRemark }
      reported.finding.reason = Reason(reported.finding.reason.text(naming: pseudonyms.pseudonym(of:)))
    }
    (self.reported, self.asOf) = (reported, asOf)
    app = dimensions.app(reported.finding.bundleId)
    businessDay = reported.finding.occurredAt.map { dimensions.businessDay(of: $0) }
  }

  private var finding: Finding { _read { yield reported.finding } }

  static let table = ReportTable.findings

  static let shape = ReportTable.Shape(
    title: "Findings", formulaName: "FindingsTable", fileName: "findings.csv",
    meaning: "Discrepancies that a person must look at: everything open in the lookback.",
    sheetNote: "Everything open, worst first. Status, owner, due and remark are for you to fill in.",
    primaryKey: ["finding_id"],
    sheetOrder: sheetOrder, frozenColumns: 3, printedColumns: printedColumns, takesEntries: true, tabColour: Palette.red
  )

  /// The sheet of a longer period. People fill in the sheet Findings, which has all findings.
  static let periodShape = ReportTable.Shape(
    title: "Period findings", formulaName: "PeriodFindingsTable", fileName: nil,
    meaning: "The open findings about transactions of the period.",
    sheetNote:
      "The open findings about transactions of the period. Fill in the sheet Findings, which has all findings.",
    primaryKey: ["finding_id"], sheetOrder: sheetOrder, frozenColumns: 3, printedColumns: printedColumns,
    tabColour: Palette.red)

  /// Columns that people read and fill in come first.
  private static let sheetOrder = [
    "severity", "kind", "order_id", "user_id", "at_stake", "currency", "days_since", "status", "owner", "due",
    "remark", "reason", "suggested_action",
  ]

  /// Printed up to the suggested action, because IDs are not read on paper.
  private static let printedColumns = 13

  static let columns: [Column<FindingLine>] = [
    Column("finding_id", .digest, 34, "Stable id: the same discrepancy has the same one every night.") {
      .text($0.reported.findingId)
    },
    Column("kind", .spelt(), 24, "What is wrong; the sheet About explains every kind.") {
      .text($0.finding.kind.rawValue)
    },
    Column("severity", .severity, 10, "critical: now; major: this week; minor: data quality.") {
      .text($0.finding.severity.rawValue)
    },
    Column("order_id", .orderLink, 21, "The shop's id of the order.") { Cell($0.finding.orderId) },
    Column("user_id", .user, 21, "The shop's id of the user.") { Cell($0.finding.userId) },
    Column("product_id", .id, 18, "App Store product identifier.") { Cell($0.finding.productId) },
    Column("transaction_id", .id, 20, "Apple's id of the purchase.") { Cell($0.finding.transactionId) },
    Column("receipt_id", .id, 16, "The shop's id of the proof of purchase.") { Cell($0.finding.receiptId) },
    Column("delivery_id", .id, 16, "The shop's id of the delivery.") { Cell($0.finding.deliveryId) },
    Column(
      "environment", .text, 13, "Apple's environment of the payment: Production, Sandbox, Xcode or LocalTesting."
    ) { Cell($0.finding.environment?.rawValue) },
    Column("currency", .currency, 10, "ISO 4217 code, of both amounts.") { Cell($0.finding.currency?.code) },
    Column(
      "amount", .price, 14, "Amount of the order as the shop recorded it, or of the payment where there is no order."
    ) { Cell($0.finding.amountInRiskCurrency) },
    Column(
      "at_stake", .amount, 14,
      """
      Amount at risk. One finding of an order carries it, and each second charge its own, so that it can be added up. Empty: \
      none, or another finding carries it. Empty and of unknown amount, as at_stake_unknown counts: orphan_payment, charged_twice, \
      unreported_by_shop; orphan_delivery with delivered_at; partial_refund where no other finding of the order has the money.
      """
    ) { Cell($0.finding.atStake) },
    Column("paid_at", .instant, 20, "Apple's purchase date.") { Cell($0.finding.paidAt) },
    Column("delivered_at", .instant, 20, "The latest delivery that was not taken back.") {
      Cell($0.finding.deliveredAt)
    },
    Column("first_seen", .instant, 20, "As-of of the run that met the finding first.") {
      .instant($0.reported.firstSeen)
    },
    Column("age_days", .days, 10, "Whole days since first_seen: how long people have known.") {
      Cell(daysSince: $0.reported.firstSeen, asOf: $0.asOf)
    },
    Column("status", .status, 14, "The decision about the finding: open, acknowledged, accepted or closed.") {
      .text($0.reported.status)
    },
    Column("owner", .people, 16, "The owner of the finding.") { Cell($0.reported.owner) },
    Column("reason", .prose, 56, "The reason of the finding.") { .text($0.finding.reason.text) },
    Column("suggested_action", .prose, 48, "The suggested action.") { .text($0.finding.suggestedAction) },
    Column(
      "occurred_at", .instant, 20,
      "Apple's purchase date, for refund kinds the refund's or its reversal's, else the order's, delivery's or receipt's own; of unreported_by_shop its Monday."
    ) { Cell($0.finding.occurredAt) },
    Column("days_since", .days, 12, "Whole days since occurred_at: the age of the transaction.") {
      Cell(daysSince: $0.finding.occurredAt, asOf: $0.asOf)
    },
    Column("due", .due, 12, "The day by which it must be settled.") { Cell(day: $0.reported.due) },
    Column("remark", .people, 36, "The remark of a person.") { Cell($0.reported.remark) },
    .app { $0.app },
    .country { $0.finding.country },
    .businessDay("Day of occurred_at in the report's time zone.") { $0.businessDay },
  ]
}
