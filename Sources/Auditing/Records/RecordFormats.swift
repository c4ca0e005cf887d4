import Reconciliation
import Reporting
import Streams

extension Finding {
  func write(to record: inout RecordBytes) {
    record.put(UInt8(clamping: kind.index))
    record.put(severity.rawValue)
    record.put(action.rawValue)
    record.put(subject.kind.rawValue)
    record.put(subject.id)
    record.put(orderId)
    record.put(userId)
    record.put(productId)
    record.put(transactionId)
    record.put(receiptId)
    record.put(deliveryId)
    record.put(goodsHolder)
    record.put(environment?.rawValue)
    record.put(bundleId)
    record.put(country?.code)
    record.put(amount)
    record.put(atStake)
    record.put(isAmountAtRiskUnknown)
    record.put(units?.ordered)
    record.put(units?.delivered)
    record.put(occurredAt)
    record.put(orderedAt)
    record.put(paidAt)
    record.put(deliveredAt)
    record.put(subscriptionExpiresDate)
    record.put(subscriptionStatus?.rawValue)
    record.put(reason.parts) { $0.write(to: &$1) }
    record.put(evidenceCheckedAt)
  }

  init(from record: inout RecordReader) throws(RecordReader.Mismatch) {
    let index = Int(try record.byte())
    guard FindingKind.allCases.indices.contains(index) else { throw RecordReader.Mismatch() }
    let severity = Severity(rawValue: try record.text())
    let action = FindingAction(rawValue: try record.text())
    guard let subjectKind = Subject.Kind(rawValue: try record.text()) else { throw RecordReader.Mismatch() }
    self.init(kind: FindingKind.allCases[index], subject: Subject(subjectKind, try record.id()), reason: "")
    self.severity = severity ?? kind.severity
    self.action = action ?? kind.action
    orderId = try record.optionalId()
    userId = try record.optionalId()
    productId = try record.optionalId()
    transactionId = try record.optionalId()
    receiptId = try record.optionalId()
    deliveryId = try record.optionalId()
    goodsHolder = try record.optionalId()
    environment = try record.optionalText().flatMap(AppleEnvironment.init)
    bundleId = try record.optionalText()
    country = Country(code: try record.optionalText())
    amount = try record.optionalMoney()
    atStake = try record.optionalMoney()
    isAmountAtRiskUnknown = try record.flag()
    let (ordered, delivered) = (try record.optionalInt(), try record.optionalInt())
    units = ordered.flatMap { ordered in delivered.map { Units(ordered: ordered, delivered: $0) } }
    occurredAt = try record.optionalInstant()
    orderedAt = try record.optionalInstant()
    paidAt = try record.optionalInstant()
    deliveredAt = try record.optionalInstant()
    subscriptionExpiresDate = try record.optionalInstant()
    subscriptionStatus = try record.optionalInt32().flatMap(SubscriptionState.init)
    reason = Reason(
      try record.list { (record) throws(RecordReader.Mismatch) in try Reason.Part(from: &record) })
    evidenceCheckedAt = try record.optionalInstant()
  }
}

extension Reason.Part {
  fileprivate func write(to record: inout RecordBytes) {
    switch self {
    case .words(let words):
      record.put(false)
      record.put(words)
    case .user(let id):
      record.put(true)
      record.put(id)
    }
  }

  fileprivate init(from record: inout RecordReader) throws(RecordReader.Mismatch) {
    self = try record.flag() ? .user(record.id()) : .words(record.text())
  }
}

extension Receipt {
  package func write(to record: inout RecordBytes) {
    record.put(receiptId)
    record.put(orderId)
    record.put(userId)
    record.put(claimedEnvironment)
    record.put(Optional(receivedAt))
    record.put(defect)
    if defect != nil { record.put(isUndated) }
    state.write(to: &record)
  }

  init(from record: inout RecordReader) throws(RecordReader.Mismatch) {
    self.init(
      receiptId: try record.id(), orderId: try record.optionalId(), userId: try record.optionalId(),
      claimedEnvironment: try record.optionalText(),
      receivedAt: try record.optionalInstant() ?? Instant(microseconds: 0), state: ProofState())
    defect = try record.optionalText()
    if defect != nil { isUndated = try record.flag() }
    state = try ProofState(from: &record)
  }
}

extension ProofState {
  func write(to record: inout RecordBytes) {
    record.put(outcome, of: Vocabularies.outcome)
    record.put(reason, of: Vocabularies.reason)
    record.put(kind, of: Vocabularies.receiptKind)
    record.put(channel, of: Vocabularies.channel)
    record.put(environment, of: Vocabularies.environment)
    record.put(bundleId)
    record.put(appleStatus)
    record.put(Int64(attempts))
    record.put(lastAttempt)
    record.put(due?.from)
    record.put(due?.until)
    record.put(due.map { Int32($0.rank.rawValue) })
    record.put(unansweredSince)
    record.put(answeredAt)
    record.put(signedTransactionId)
    record.put(Int64(containedCount))
    record.put(isUnproven)
    record.put(failedCheck)
  }

  init(from record: inout RecordReader) throws(RecordReader.Mismatch) {
    self.init()
    outcome = try record.word(of: Vocabularies.outcome) ?? .pending
    reason = try record.word(of: Vocabularies.reason)
    kind = try record.word(of: Vocabularies.receiptKind)
    channel = try record.word(of: Vocabularies.channel)
    environment = try record.word(of: Vocabularies.environment)
    bundleId = try record.optionalText()
    appleStatus = try record.optionalInt32()
    attempts = Int32(clamping: try record.int())
    lastAttempt = try record.optionalInstant()
    due = try Dueness(from: &record)
    unansweredSince = try record.optionalInstant()
    answeredAt = try record.optionalInstant()
    signedTransactionId = try record.optionalId()
    containedCount = Int32(clamping: try record.int())
    isUnproven = try record.flag()
    failedCheck = try record.optionalText()
  }
}

extension Dueness {
  /// nil if it is never due.
  init?(from record: inout RecordReader) throws(RecordReader.Mismatch) {
    let (from, until) = (try record.optionalInstant(), try record.optionalInstant())
    let rank = try record.optionalInt32().flatMap { Dueness.Rank(rawValue: Int16(clamping: $0)) }
    guard let from, let rank else { return nil }
    self.init(from: from, until: until, rank: rank)
  }
}

extension RefundRow {
  package func write(to record: inout RecordBytes) {
    record.put(transactionId)
    record.put(orderId)
    record.put(userId)
    record.put(productId)
    record.put(refunded)
    record.put(milliPercent)
    record.put(purchasedAt)
    record.put(refundedAt.microseconds)
    record.put(reason)
    record.put(disposition?.rawValue)
    record.put(bundleId)
    record.put(country?.code)
  }

  init(from record: inout RecordReader) throws(RecordReader.Mismatch) {
    self.init(
      transactionId: try record.id(), orderId: try record.optionalId(), userId: try record.optionalId(),
      productId: try record.id(), refunded: try record.optionalMoney(),
      milliPercent: try record.optionalInt32(), purchasedAt: try record.optionalInstant(),
      refundedAt: Instant(microseconds: try record.int()), reason: try record.optionalText(),
      disposition: try record.optionalText().flatMap(Disposition.init))
    bundleId = try record.optionalText()
    country = Country(code: try record.optionalText())
  }
}

extension OrderLine {
  package func write(to record: inout RecordBytes) {
    record.put(orderId)
    record.put(userId)
    record.put(productId)
    record.put(quantity)
    switch amount {
    case .money(let money):
      record.put(true)
      record.put(Optional(money))
    case .text(let text, let currency):
      record.put(false)
      record.put(text)
      record.put(currency)
    }
    record.put(status)
    record.put(UInt8(disposition.index))
    record.put(createdAt.microseconds)
    record.put(payment)
    record.put(paymentReason?.rawValue)
    record.put(transactionId)
    record.put(environment?.rawValue)
    record.put(paidAt)
    record.put(deliveredAt)
    record.put(refundedAt)
    record.put(checkedAt)
    record.put(findings)
    record.put(bundleId)
    record.put(country?.code)
  }

  package init(from record: inout RecordReader) throws(RecordReader.Mismatch) {
    let (orderId, userId, productId) = (try record.id(), try record.id(), try record.id())
    let quantity = try record.optionalInt()
    let amount: Amount
    if try record.flag() {
      guard let money = try record.optionalMoney() else { throw RecordReader.Mismatch() }
      amount = .money(money)
    } else {
      amount = .text(try record.text(), currency: try record.text())
    }
    let (status, index) = (try record.text(), Int(try record.byte()))
    guard Disposition.allCases.indices.contains(index) else { throw RecordReader.Mismatch() }
    self.init(
      orderId: orderId, userId: userId, productId: productId, quantity: quantity, amount: amount, status: status,
      disposition: Disposition.allCases[index], createdAt: Instant(microseconds: try record.int()))
    payment = try record.optionalText()
    paymentReason = try record.optionalText().flatMap(PaymentReason.init)
    transactionId = try record.optionalId()
    environment = try record.optionalText().flatMap(AppleEnvironment.init)
    paidAt = try record.optionalInstant()
    deliveredAt = try record.optionalInstant()
    refundedAt = try record.optionalInstant()
    checkedAt = try record.optionalInstant()
    findings = try record.optionalText()
    bundleId = try record.optionalText()
    country = Country(code: try record.optionalText())
  }
}

extension PurchaseKey {
  func write(to record: inout RecordBytes) {
    record.put(transactionId)
    record.put(environment, of: Vocabularies.environment)
    record.put(period)
    record.put(purchasedAt)
  }
}

extension TransactionRecord {
  package func write(to record: inout RecordBytes) {
    record.put(self.environment, of: Vocabularies.environment)
    record.put(self.transactionId)
    record.put(self.originalTransactionId)
    record.put(self.webOrderLineItemId)
    record.put(self.bundleId)
    record.put(self.productId)
    record.put(self.productType?.rawValue)
    record.put(self.quantity)
    record.put(self.purchaseDate)
    record.put(self.originalPurchaseDate)
    record.put(self.expiresDate)
    record.put(self.subscriptionExpiresDate)
    record.put(self.subscriptionStatus?.rawValue)
    record.put(self.subscriptionStatusDate)
    record.put(self.renewalDate)
    record.put(self.revocation?.date)
    record.put(self.revocation?.percentage)
    record.put(self.revocation?.type)
    record.put(self.revocation?.reason)
    record.put(self.revocation?.coversSomeItemsOnly)
    record.put(self.revocationStatedDate)
    record.put(self.revocationWithdrawnDate)
    record.put(self.priceMilliunits)
    record.put(self.currency)
    switch self.appAccountToken {
    case .absent: record.put(false)
    case .stated(let token):
      record.put(true)
      record.put(token)
    }
    record.put(self.ownership, of: Vocabularies.ownership)
    record.put(self.isRenewal)
    record.put(self.hasOffer)
    record.put(self.isUpgraded)
    record.put(self.refundRequest?.date)
    record.put(self.refundRequest?.reason)
    record.put(self.refundRequest?.declinedDate)
    record.put(self.details.storefront)
    record.put(self.details.appTransactionId)
    record.put(self.details.offerType)
    record.put(self.details.offerIdentifier)
    record.put(self.details.subscriptionGroupIdentifier)
    record.put(self.details.commitmentInfo)
    record.put(self.details.billingPlanType)
    record.put(self.details.previousOriginalTransactionId)
    record.put(self.isContradictory)
    record.put(self.channel, of: Vocabularies.channel)
    record.put(self.signedDate.microseconds)
    record.put(self.firstSignedDate)
    record.put(self.notifiedDate)
    record.put(self.checkedAt)
    record.put(self.otherIds) { $1.put($0) }
  }

  package init(from record: inout RecordReader) throws(RecordReader.Mismatch) {
    guard let environment = try record.word(of: Vocabularies.environment) else { throw RecordReader.Mismatch() }
    let transactionId = try record.id()
    let originalTransactionId = try record.optionalId()
    let webOrderLineItemId = try record.optionalId()
    let bundleId = try record.optionalText()
    var contents = Contents(environment: environment, transactionId: transactionId, productId: try record.id())
    contents.originalTransactionId = originalTransactionId
    contents.webOrderLineItemId = webOrderLineItemId
    contents.bundleId = bundleId
    contents.productType = try record.optionalText().flatMap(ProductType.init)
    contents.quantity = try record.optionalInt32()
    contents.purchaseDate = try record.optionalInstant()
    contents.originalPurchaseDate = try record.optionalInstant()
    contents.expiresDate = try record.optionalInstant()
    contents.subscriptionExpiresDate = try record.optionalInstant()
    contents.subscriptionStatus = try record.optionalInt32().flatMap(SubscriptionState.init)
    contents.subscriptionStatusDate = try record.optionalInstant()
    contents.renewalDate = try record.optionalInstant()
    let revoked = try record.optionalInstant()
    let percentage = try record.optionalInt32()
    let type = try record.optionalText()
    let reason = try record.optionalInt32()
    let coversSomeItemsOnly = try record.optionalFlag() ?? false
    contents.revocation = revoked.map {
      Revocation(date: $0, percentage: percentage, type: type, reason: reason, coversSomeItemsOnly: coversSomeItemsOnly)
    }
    contents.revocationStatedDate = try record.optionalInstant()
    contents.revocationWithdrawnDate = try record.optionalInstant()
    contents.priceMilliunits = try record.optionalInt()
    contents.currency = try record.optionalText()
    contents.appAccountToken = try record.flag() ? .stated(try record.optionalText()) : .absent
    contents.ownership = try record.word(of: Vocabularies.ownership)
    contents.isRenewal = try record.optionalFlag()
    contents.hasOffer = try record.optionalFlag()
    contents.isUpgraded = try record.optionalFlag()
    let requested = try record.optionalInstant()
    let requestReason = try record.optionalText()
    let declined = try record.optionalInstant()
    contents.refundRequest = requested.map {
      RefundRequest(date: $0, reason: requestReason, declinedDate: declined)
    }
    contents.details.storefront = try record.optionalText()
    contents.details.appTransactionId = try record.optionalText()
    contents.details.offerType = try record.optionalInt32()
    contents.details.offerIdentifier = try record.optionalText()
    contents.details.subscriptionGroupIdentifier = try record.optionalText()
    contents.details.commitmentInfo = try record.optionalText()
    contents.details.billingPlanType = try record.optionalText()
    contents.details.previousOriginalTransactionId = try record.optionalText()
    contents.isContradictory = try record.flag()
    contents.channel = try record.word(of: Vocabularies.channel) ?? .verifyReceipt
    contents.signedDate = Instant(microseconds: try record.int())
    contents.firstSignedDate = try record.optionalInstant()
    contents.notifiedDate = try record.optionalInstant()
    contents.checkedAt = try record.optionalInstant()
    contents.otherIds = try record.list { (record) throws(RecordReader.Mismatch) in try record.id() }
    self.init(contents)
  }
}

extension OrderClaims {
  package func write(to record: inout RecordBytes) {
    record.put(owned) { $0.write(to: &$1) }
    record.put(lost) { claim, record in
      claim.transaction.write(to: &record)
      record.put(claim.ownerOrderId)
      record.put(claim.ownerUserId)
      record.put(claim.isFinal)
    }
    record.put(refused?.reason.rawValue)
    refused?.transaction.write(to: &record)
    record.put(contradictory != nil)
    contradictory?.write(to: &record)
    record.put(isFinal)
    record.put(statesAnotherThanProven)
    record.put(named?.environment.rawValue)
    record.put(named?.transactionId)
  }

  init(from record: inout RecordReader) throws(RecordReader.Mismatch) {
    self.init()
    owned = try record.list { (record) throws(RecordReader.Mismatch) in try TransactionRecord(from: &record) }
    lost = try record.list { (record) throws(RecordReader.Mismatch) in
      LostClaim(
        transaction: try TransactionRecord(from: &record), ownerOrderId: try record.id(),
        ownerUserId: try record.id(), isFinal: try record.flag())
    }
    if let reason = try record.optionalText().flatMap(PaymentReason.init) {
      refused = RefusedClaim(transaction: try TransactionRecord(from: &record), reason: reason)
    }
    if try record.flag() { contradictory = try TransactionRecord(from: &record) }
    isFinal = try record.flag()
    statesAnotherThanProven = try record.flag()
    let environment = try record.optionalText().flatMap(AppleEnvironment.init)
    if let id = try record.optionalId() {
      named = environment.map { TransactionKey(environment: $0, transactionId: id) }
    }
  }
}
