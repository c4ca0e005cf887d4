import Reconciliation

extension JSONFields {
  /// The revocation in a signed transaction (Apple: `revocationDate` and the items of `advancedCommerceInfo`). A
  /// missing or zero date means not revoked; an unreadable date is no statement.
  var revocation: Statement<Revocation?> {
    let items = (object("advancedCommerceInfo")?.objects("items") ?? []).map(AdvancedCommerceItem.init)
    let ofItems = AdvancedCommerceItem.revocation(of: items, price: integer("price"))
    guard has("revocationDate"), integer("revocationDate") != 0 else { return .stated(ofItems) }
    guard let date = instant("revocationDate") else { return ofItems.map(Statement.stated) ?? .absent }
    // Apple omits type and percentage for Advanced Commerce, so the items show how much was refunded.
    let revocation = Revocation(
      date: date, percentage: integer32("revocationPercentage").flatMap { 0...100_000 ~= $0 ? $0 : nil },
      type: text("revocationType"), reason: integer32("revocationReason"))
    guard revocation.type == nil, revocation.percentage == nil, var ofItems else { return .stated(revocation) }
    ofItems.date = date
    ofItems.reason = revocation.reason ?? ofItems.reason
    return .stated(ofItems)
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

  init(_ fields: JSONFields) {
    price = fields.integer("price")
    revocationDate = Self.date("revocationDate", in: fields)
    refunds = (fields.objects("refunds") ?? []).map {
      Refund(amount: $0.integer("refundAmount"), date: Self.date("refundDate", in: $0), type: $0.text("refundType"))
    }
  }

  private static func date(_ name: String, in fields: JSONFields) -> Instant? {
    fields.integer(name) == 0 ? nil : fields.instant(name)
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
