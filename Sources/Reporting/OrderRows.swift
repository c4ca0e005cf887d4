import Reconciliation

extension RowSink where Self: ~Copyable {
  /// The cells of ``ReportTable/orders``.
  mutating func order(_ judgement: borrowing Judgement) throws(Failure) {
    let createdAt: Instant
    switch judgement.row {
    case .valid(let order):
      createdAt = order.createdAt
      try id(order.orderId)
      try id(order.userId)
      try id(order.productId)
      try count(order.quantity)
      try text(order.amount.currency.code)
      try amount(order.amount)
      try text(order.status.rawValue)
    case .bad(let bad):
      createdAt = bad.createdAt
      try id(bad.orderId)
      try id(bad.userId)
      try id(bad.productId)
      // As the database prints them: what is wrong with the row may be any of these.
      try count(bad.quantity)
      try text(bad.currencyText)
      try figure(bad.amountText)
      try text(bad.statusText)
    }
    try text(judgement.disposition.rawValue)
    if let verdict = judgement.verdict {
      try text(verdict.name)
      try text(verdict.reason?.rawValue)
    } else {
      try blank()
      try blank()
    }
    try id(judgement.transactionId)
    try text(judgement.environment?.rawValue)
    try instant(createdAt)
    try instant(judgement.paidAt)
    try instant(judgement.deliveredAt)
    try instant(judgement.refundedAt)
    try instant(judgement.checkedAt)
    if judgement.findings.isEmpty {
      try blank()
    } else {
      try text(judgement.findings.kindWords)
    }
  }
}

extension [Finding] {
  /// Each kind once, in the order of the findings, separated by a space.
  var kindWords: String {
    var words = ""
    var last: FindingKind?
    for finding in self where finding.kind != last {
      if last != nil { words += " " }
      words += finding.kind.rawValue
      last = finding.kind
    }
    return words
  }
}
