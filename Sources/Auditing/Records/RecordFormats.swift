import Reconciliation
import Reporting
import Streams

// The fields of records on disk, in the order in which they are written and read.

extension Finding: FieldCoded {
  public static var blank: Finding { Finding(kind: .deliveredNotPaid, subject: .order(.blank), reason: "") }

  public mutating func code<Coder: FieldCoder & ~Copyable>(with coder: inout Coder) throws(Coder.Failure) {
    try coder.code(word: &kind, of: Vocabularies.findingKind)
    try coder.code(raw: &severity)
    try coder.code(raw: &action)
    try coder.code(raw: &subject.kind)
    try coder.code(&subject.id)
    try coder.code(&orderId)
    try coder.code(&userId)
    try coder.code(&productId)
    try coder.code(&transactionId)
    try coder.code(&receiptId)
    try coder.code(&deliveryId)
    try coder.code(&goodsHolder)
    try coder.code(raw: &environment)
    try coder.code(&bundleId)
    try Country.code(&country, with: &coder)
    try coder.code(&amount)
    try coder.code(&atStake)
    try coder.code(&isAmountAtRiskUnknown)
    try coder.code(&refundToBook)
    try coder.code(&units)
    try coder.code(&occurredAt)
    try coder.code(&orderedAt)
    try coder.code(&paidAt)
    try coder.code(&deliveredAt)
    try coder.code(&subscriptionExpiresDate)
    try coder.code(raw: &subscriptionStatus)
    try coder.code(&reason)
    try coder.code(&evidenceCheckedAt)
  }
}

extension Units: FieldCoded {
  public static var blank: Units { Units(ordered: 0, delivered: 0) }

  public mutating func code<Coder: FieldCoder & ~Copyable>(with coder: inout Coder) throws(Coder.Failure) {
    try coder.code(&ordered)
    try coder.code(&delivered)
  }
}

extension Reason: FieldCoded {
  public static var blank: Reason { "" }

  public mutating func code<Coder: FieldCoder & ~Copyable>(with coder: inout Coder) throws(Coder.Failure) {
    var parts = parts
    try coder.code(&parts)
    self = Reason(parts)
  }
}

extension Reason.Part: FieldCoded {
  public static var blank: Reason.Part { .words("") }

  public mutating func code<Coder: FieldCoder & ~Copyable>(with coder: inout Coder) throws(Coder.Failure) {
    var user: Identifier? = if case .user(let id) = self { id } else { nil }
    try coder.code(&user)
    if let user {
      self = .user(user)
    } else {
      var words = if case .words(let words) = self { words } else { "" }
      try coder.code(&words)
      self = .words(words)
    }
  }
}

extension RefundRow: FieldCoded {
  package static var blank: RefundRow {
    RefundRow(
      transactionId: .blank, productId: .blank, refunded: nil, milliPercent: nil, purchasedAt: nil, refundedAt: .blank)
  }

  package mutating func code<Coder: FieldCoder & ~Copyable>(with coder: inout Coder) throws(Coder.Failure) {
    try coder.code(&transactionId)
    try coder.code(&orderId)
    try coder.code(&userId)
    try coder.code(&productId)
    try coder.code(&refunded)
    try coder.code(&milliPercent)
    try coder.code(&purchasedAt)
    try coder.code(&refundedAt)
    try coder.code(&reason)
    try coder.code(raw: &disposition)
    try coder.code(&bundleId)
    try Country.code(&country, with: &coder)
  }
}

extension OrderLine: FieldCoded {
  package static var blank: OrderLine {
    OrderLine(
      orderId: .blank, userId: .blank, productId: .blank, quantity: nil, amount: .blank, status: "",
      disposition: .settled, createdAt: .blank)
  }

  package mutating func code<Coder: FieldCoder & ~Copyable>(with coder: inout Coder) throws(Coder.Failure) {
    try coder.code(&orderId)
    try coder.code(&userId)
    try coder.code(&productId)
    try coder.code(&quantity)
    try coder.code(&amount)
    try coder.code(&status)
    try coder.code(word: &disposition, of: Vocabularies.disposition)
    try coder.code(&createdAt)
    try coder.code(&payment)
    try coder.code(raw: &paymentReason)
    try coder.code(&transactionId)
    try coder.code(raw: &environment)
    try coder.code(&paidAt)
    try coder.code(&deliveredAt)
    try coder.code(&refundedAt)
    try coder.code(&checkedAt)
    try coder.code(&findings)
    try coder.code(&bundleId)
    try Country.code(&country, with: &coder)
  }
}

extension OrderLine.Amount: FieldCoded {
  package static var blank: OrderLine.Amount { .text("", currency: "") }

  package mutating func code<Coder: FieldCoder & ~Copyable>(with coder: inout Coder) throws(Coder.Failure) {
    var money: Money? = if case .money(let money) = self { money } else { nil }
    try coder.code(&money)
    if let money {
      self = .money(money)
    } else {
      var (text, currency) = if case .text(let text, let currency) = self { (text, currency) } else { ("", "") }
      try coder.code(&text)
      try coder.code(&currency)
      self = .text(text, currency: currency)
    }
  }
}

extension PurchaseKey: FieldCoded {
  public static var blank: PurchaseKey { PurchaseKey(environment: .production, transactionId: .blank) }

  public mutating func code<Coder: FieldCoder & ~Copyable>(with coder: inout Coder) throws(Coder.Failure) {
    try coder.code(&transactionId)
    try coder.code(word: &environment, of: Vocabularies.environment)
    try coder.code(&period)
    try coder.code(&purchasedAt)
  }
}

extension OrderClaims: FieldCoded {
  public static var blank: OrderClaims { OrderClaims() }

  public mutating func code<Coder: FieldCoder & ~Copyable>(with coder: inout Coder) throws(Coder.Failure) {
    try coder.code(&owned)
    try coder.code(&lost)
    // Of the two at most one is there, and setting either removes the other.
    var (refused, contradictory) = (refused, contradictory)
    try coder.code(&refused)
    try coder.code(&contradictory)
    if let refused { self.refused = refused }
    if let contradictory { self.contradictory = contradictory }
    try coder.code(&isFinal)
    try coder.code(&statesAnotherThanProven)
    try coder.code(&named)
  }
}

extension LostClaim: FieldCoded {
  public static var blank: LostClaim {
    LostClaim(transaction: .blank, ownerOrderId: .blank, ownerUserId: .blank, isFinal: false)
  }

  public mutating func code<Coder: FieldCoder & ~Copyable>(with coder: inout Coder) throws(Coder.Failure) {
    try coder.code(&transaction)
    try coder.code(&ownerOrderId)
    try coder.code(&ownerUserId)
    try coder.code(&isFinal)
  }
}

extension RefusedClaim: FieldCoded {
  public static var blank: RefusedClaim { RefusedClaim(transaction: .blank, reason: .neverChecked) }

  public mutating func code<Coder: FieldCoder & ~Copyable>(with coder: inout Coder) throws(Coder.Failure) {
    try coder.code(raw: &reason)
    try coder.code(&transaction)
  }
}
