/// Non-consumables that a person paid for twice. Memory grows with their payments, not with orders.
public struct RepeatedPurchases: Sendable {
  private struct Sale: Hashable {
    var person: Identifier
    var productId: Identifier
    var bundleId: String
  }

  private struct Payment: Comparable {
    var date: Instant
    var orderId: Identifier

    static func < (left: Payment, right: Payment) -> Bool { (left.date, left.orderId) < (right.date, right.orderId) }
  }

  private let rules: Rules
  private var first: [Sale: Finding] = [:]
  private var further: [Finding] = []

  public init(rules: Rules) { self.rules = rules }

  /// Adds a judged order, in any sequence. A payment that an answer could change is left out.
  public mutating func take(_ judgement: Judgement) {
    guard case .valid(let order) = judgement.row, case .paid(let transaction) = judgement.verdict,
      judgement.isPaymentFinal, rules.catalogue?.isNonConsumable(order.productId) ?? false
    else { return }
    var finding = Finding(kind: .boughtTwice, subject: .order(order.orderId), reason: "")
    finding.orderId = order.orderId
    finding.userId = order.userId
    finding.productId = order.productId
    finding.transactionId = transaction.shownId(stated: order.transactionId)
    finding.environment = transaction.environment
    finding.bundleId = rules.bundleId(of: order)
    finding.amount = order.amount
    finding.occurredAt = transaction.saleDate ?? order.createdAt
    finding.paidAt = judgement.paidAt
    finding.deliveredAt = judgement.deliveredAt
    finding.evidenceCheckedAt = transaction.checkedAt
    take(finding)
  }

  public var taken: [Finding] { Array(first.values) + further }

  public mutating func take(_ paid: Finding) {
    let sale = sale(of: paid)
    guard let known = first[sale] else {
      first[sale] = paid
      return
    }
    let isEarlier = payment(of: paid) < payment(of: known)
    if isEarlier { first[sale] = paid }
    further.append(isEarlier ? known : paid)
  }

  public mutating func join(_ other: RepeatedPurchases) {
    for paid in other.taken { take(paid) }
  }

  private func sale(of paid: Finding) -> Sale {
    Sale(person: rules.people.person(paid.userId ?? ""), productId: paid.productId ?? "", bundleId: paid.bundleId ?? "")
  }

  private func payment(of paid: Finding) -> Payment {
    Payment(date: paid.occurredAt ?? rules.asOf, orderId: paid.orderId ?? "")
  }

  /// The findings on every payment but the first, by order ID.
  public func findings() -> [Finding] {
    further.map { finding in
      var finding = finding
      let sale = sale(of: finding)
      let orderId = first[sale]?.orderId ?? ""
      finding.reason = "The same person paid for \(sale.productId) before, with order \(orderId)."
      return finding
    }.sorted { $0.subject < $1.subject }
  }
}
