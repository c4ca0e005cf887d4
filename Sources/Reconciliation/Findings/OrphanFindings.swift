/// Findings about payments, deliveries and receipts without an order.
public enum OrphanFindings {
  /// The finding on a transaction that no order claims; nil: none, or its order may still be written.
  /// The caller reports the finding on a refunded renewal only if goods of its subscription were not taken back.
  public static func finding(
    on transaction: TransactionRecord, userId: Identifier?, receiptId: Identifier?, rules: Rules
  ) -> Finding? {
    guard transaction.isLive || transaction.isRefundedRenewal, !transaction.isContradictory,
      !transaction.isFamilyShared,
      !transaction.isKnownByRestoresAlone, transaction.transactionId == transaction.smallestId,
      let bundle = transaction.bundleId, rules.bundleIds.contains(bundle),
      let purchased = transaction.saleDate, purchased >= rules.lookbackStart,
      !rules.mayAwaitOrder(since: purchased)
    else { return nil }
    if transaction.isReversed {
      // A later period pays for the access, or may.
      guard transaction.subscriptionKey != nil, transaction.isPastPeriodOfActiveSubscription(at: rules.asOf) == false
      else {
        return nil
      }
    }
    let (kind, reason): (FindingKind, Reason) =
      if transaction.isReversed {
        (
          .renewalWithoutOrder,
          "Apple refunded a renewal of \(transaction.productId) that no order claims. The subscription is still served."
        )
      } else if transaction.isLaterPeriod {
        (
          .renewalWithoutOrder,
          "Apple renewed a subscription to \(transaction.productId) and no order claims the renewal."
        )
      } else if transaction.priceMilliunits == 0 {
        (
          .unclaimedRedemption,
          "A customer received \(transaction.productId) from Apple at price 0, and no order claims it."
        )
      } else {
        (.orphanPayment, "Apple confirms a payment for \(transaction.productId) that no order claims.")
      }
    var finding = Finding(kind: kind, subject: .transaction(transaction.transactionId), reason: reason)
    finding.userId = userId
    finding.productId = transaction.productId
    finding.transactionId = transaction.transactionId
    finding.receiptId = receiptId
    finding.environment = transaction.environment
    finding.bundleId = transaction.bundleId
    finding.country = transaction.country
    finding.amount = transaction.price
    if transaction.isReversed {
      finding.severity = .major
      (finding.subscriptionExpiresDate, finding.subscriptionStatus) = (
        transaction.subscriptionExpiresDate, transaction.subscriptionStatus
      )
    }
    if kind == .orphanPayment {
      finding.atStake = transaction.price.flatMap { transaction.left(of: $0) }
      finding.isAmountAtRiskUnknown = finding.atStake == nil
    }
    finding.occurredAt = transaction.saleDate
    finding.paidAt = transaction.saleDate
    finding.evidenceCheckedAt = transaction.checkedAt
    return finding
  }

  /// The finding on a delivery without an existing order; nil: its order may still be written.
  public static func finding(on delivery: Delivery, rules: Rules) -> Finding? {
    if delivery.defect == nil, delivery.orderId != nil, rules.mayAwaitOrder(since: delivery.deliveredAt) { return nil }
    let reason: Reason =
      switch (delivery.brokenContract, delivery.orderId) {
      case (.some(let brokenContract), _): brokenContract
      case (.none, .some(let orderId)): "The delivery is for order \(orderId), which does not exist."
      case (.none, .none): "The delivery has no order_id."
      }
    var finding = Finding(
      kind: delivery.defect == nil ? .orphanDelivery : .badRow, subject: delivery.subject, reason: reason)
    finding.orderId = delivery.orderId
    finding.userId = delivery.userId
    finding.productId = delivery.productId
    finding.deliveryId = delivery.deliveryId
    finding.isAmountAtRiskUnknown = delivery.defect == nil && delivery.stands
    finding.occurredAt = delivery.isUndated ? nil : delivery.deliveredAt
    finding.deliveredAt = delivery.stands ? finding.occurredAt : nil
    return finding
  }

  /// Returns the findings on a receipt without an existing order. It may still be written.
  public static func findings(on receipt: Receipt, rules: Rules) -> [Finding] {
    var found: [Finding] = []
    func add(_ kind: FindingKind, _ reason: Reason) {
      var finding = Finding(kind: kind, subject: receipt.subject, reason: reason)
      finding.orderId = receipt.orderId
      finding.userId = receipt.userId
      finding.receiptId = receipt.receiptId
      finding.occurredAt = receipt.isUndated ? nil : receipt.receivedAt
      finding.environment = receipt.state.environment
      finding.bundleId = receipt.state.bundleId
      finding.evidenceCheckedAt = receipt.state.lastAttempt
      found.append(finding)
    }
    if let brokenContract = receipt.brokenContract {
      add(.badRow, brokenContract)
      return found
    }
    if receipt.orderId != nil, rules.mayAwaitOrder(since: receipt.receivedAt) { return [] }
    if let invalid = receipt.invalidSignature { add(.signatureInvalid, invalid) }
    // The age counts from the receipt, as for an order, whichever runs have asked.
    if receipt.state.isUnanswered, rules.asOf - receipt.receivedAt > rules.stuckAfter {
      add(
        .stuckUnconfirmed,
        .unconfirmed(
          since: receipt.receivedAt, attempts: Int64(receipt.state.attempts),
          receipt.state.unconfirmedReason.explanation))
    }
    if let mislabelled = receipt.mislabelledEnvironment { add(.environmentMislabelled, mislabelled) }
    return found
  }
}
