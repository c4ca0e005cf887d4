import Reconciliation

extension RowSink where Self: ~Copyable {
  /// The cells of ``ReportTable/findings``.
  mutating func finding(_ reported: ReportedFinding, asOf: Instant) throws(Failure) {
    let finding = reported.finding
    // One column of currency heads two amounts. A second charge in another currency than the order's is what is at
    // stake; the order's own amount is on its row.
    let currency = (finding.atStake ?? finding.amount)?.currency
    try text(reported.findingId)
    try text(finding.kind.rawValue)
    try text(finding.severity.rawValue)
    try id(finding.orderId)
    try id(finding.userId)
    try id(finding.productId)
    try id(finding.transactionId)
    try id(finding.receiptId)
    try id(finding.deliveryId)
    try text(finding.environment?.rawValue)
    try text(currency?.code)
    try amount(finding.amount?.currency == currency ? finding.amount : nil)
    try amount(finding.atStake)
    try instant(finding.paidAt)
    try instant(finding.deliveredAt)
    try instant(reported.firstSeen)
    try age(since: reported.firstSeen, asOf: asOf)
    try text(reported.status)
    try text(reported.owner)
    try text(finding.reason)
    try text(finding.kind.suggestedAction)
  }

  /// The cells of ``ReportTable/users``.
  mutating func user(_ key: Totals.UserKey, _ line: Totals.Line) throws(Failure) {
    try id(key.userId)
    try text(key.currency.code)
    try money(line, digits: key.currency.digits)
  }

  /// The cells of ``ReportTable/amounts``.
  mutating func pricePoint(_ key: Totals.PricePoint, _ line: Totals.Line) throws(Failure) {
    try text(key.currency.code)
    try decimal(Int128(key.minorUnits), digits: key.currency.digits)
    try id(key.productId)
    try money(line, digits: key.currency.digits)
  }

  private mutating func money(_ line: Totals.Line, digits: UInt8) throws(Failure) {
    try count(Int64(line.orders))
    try decimal(line.ordered, digits: digits)
    for units in line.byDisposition { try decimal(units, digits: digits) }
  }

  /// The cells of ``ReportTable/refunds``.
  mutating func refund(_ row: RefundRow) throws(Failure) {
    try id(row.transactionId)
    try id(row.orderId)
    try id(row.userId)
    try id(row.productId)
    try text(row.refunded?.currency.code)
    if let refunded = row.refunded {
      try decimal(-abs(Int128(refunded.minorUnits)), digits: refunded.currency.digits)
    } else {
      try blank()
    }
    if let milliPercent = row.milliPercent {
      let (percent, rest) = Int128(milliPercent).quotientAndRemainder(dividingBy: 1_000)
      // Whole percents, as nearly all of them are, without decimals.
      try rest == 0 ? decimal(percent, digits: 0) : decimal(Int128(milliPercent), digits: 3)
    } else {
      try blank()
    }
    try instant(row.purchasedAt)
    try instant(row.refundedAt)
    try text(row.reason)
    try text(row.disposition?.rawValue)
  }

  /// The cells of ``ReportTable/sandbox``.
  mutating func sandbox(_ row: SandboxRow) throws(Failure) {
    try id(row.userId)
    try id(row.productId)
    try text(row.currency.code)
    try count(Int64(row.orders))
    try decimal(row.minorUnits, digits: row.currency.digits)
    try text(row.isAllowed ? "true" : "false")
  }

  /// The cells of ``ReportTable/receipts``.
  mutating func receipt(_ receipt: Receipt, asOf: Instant) throws(Failure) {
    let state = receipt.state
    try id(receipt.receiptId)
    try id(receipt.orderId)
    try id(receipt.userId)
    try text(state.kind?.rawValue)
    try text(state.channel?.rawValue)
    try text(state.environment?.rawValue)
    try text(state.outcome.rawValue)
    try count(state.appleStatus)
    try count(state.attempts)
    try instant(state.lastAttempt)
    try instant(state.nextAttempt)
    try age(since: receipt.receivedAt, asOf: asOf)
    try text(state.outcome == .verified ? nil : state.reason?.rawValue)
  }
}
