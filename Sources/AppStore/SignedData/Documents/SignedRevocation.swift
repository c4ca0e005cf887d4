import Reconciliation

extension JSONFields {
  /// Reads the revocation in a signed transaction (Apple: `revocationDate` and the items of `advancedCommerceInfo`). A
  /// missing or zero date means not revoked. An unreadable date is thrown, because the transaction may be refunded.
  func revocation() throws(SignedDataRefusal) -> Revocation? {
    var items: [AdvancedCommerceItem] = []
    for fields in object("advancedCommerceInfo")?.objects("items") ?? [] {
      items.append(try AdvancedCommerceItem(fields))
    }
    let ofItems = AdvancedCommerceItem.revocation(of: items, price: integer("price"))
    guard let date = try refundDate("revocationDate") else { return ofItems }
    // Apple omits type and percentage for Advanced Commerce, so the items show how much was refunded.
    let revocation = Revocation(
      date: date, percentage: integer32("revocationPercentage").flatMap { 0...100_000 ~= $0 ? $0 : nil },
      type: text("revocationType"), reason: integer32("revocationReason"))
    guard revocation.type == nil, revocation.percentage == nil, var ofItems else { return revocation }
    ofItems.date = date
    ofItems.reason = revocation.reason ?? ofItems.reason
    return ofItems
  }

  fileprivate func refundDate(_ name: String) throws(SignedDataRefusal) -> Instant? {
    try integer(name) == 0 ? nil : optionalDate(name)
  }
}

/// One item of an Advanced Commerce purchase (Apple: `AdvancedCommerceTransactionItem`).
private struct AdvancedCommerceItem {
  /// Milliunits of the transaction's currency.
  private let price: Int64?
  private let refunds: [Refund]
  private let revocationDate: Instant?

  /// Apple: `AdvancedCommerceRefund`.
  private struct Refund {
    let amount: Int64?
    let date: Instant?
    /// `FULL`, `PRORATED`, `CUSTOM`, or a newer word.
    let type: String?
  }

  init(_ fields: JSONFields) throws(SignedDataRefusal) {
    price = fields.integer("price")
    revocationDate = try fields.refundDate("revocationDate")
    var refunds: [Refund] = []
    for refund in fields.objects("refunds") ?? [] {
      refunds.append(
        Refund(
          amount: refund.integer("refundAmount"), date: try refund.refundDate("refundDate"),
          type: refund.text("refundType")))
    }
    self.refunds = refunds
  }

  private var hasRevocationData: Bool { revocationDate != nil || !refunds.isEmpty }

  /// The refunds' total in milliunits; nil without refunds, or if an amount is missing.
  private var amountOfRefunds: Int64? {
    guard !refunds.isEmpty else { return nil }
    return sum(refunds.map(\.amount))
  }

  private var refunded: Int64? {
    guard hasRevocationData else { return 0 }
    return isWhole ? price ?? amountOfRefunds : amountOfRefunds
  }

  private var isWhole: Bool {
    if refunds.contains(where: { $0.type == "FULL" }) { return true }
    guard !refunds.isEmpty else { return revocationDate != nil }
    guard let price, price > 0, let amountOfRefunds else { return false }
    return amountOfRefunds >= price
  }

  private var latest: Instant? { (refunds.compactMap(\.date) + [revocationDate].compactMap(\.self)).max() }

  /// If only some items were refunded, the revocation is partial, with a share from 0.001% to 99.999%. Amounts are
  /// milliunits.
  static func revocation(of items: [AdvancedCommerceItem], price: Int64?) -> Revocation? {
    guard let date = items.compactMap(\.latest).max(), items.contains(where: \.hasRevocationData) else { return nil }
    guard !items.allSatisfy(\.isWhole) else { return Revocation(date: date) }
    guard let total = price ?? sum(items.map(\.price)), total > 0, let refunded = sum(items.map(\.refunded)),
      refunded > 0
    else { return Revocation(date: date, coversSomeItemsOnly: true) }
    let share = Int32(min(max((Double(refunded) / Double(total) * 100_000).rounded(), 1), 99_999))
    return Revocation(date: date, percentage: share, coversSomeItemsOnly: true)
  }
}

/// Nil if an amount is unknown or negative, or on overflow.
private func sum(_ amounts: [Int64?]) -> Int64? {
  var sum: Int64 = 0
  for amount in amounts {
    guard let amount, amount >= 0 else { return nil }
    let (value, overflow) = sum.addingReportingOverflow(amount)
    guard !overflow else { return nil }
    sum = value
  }
  return sum
}
