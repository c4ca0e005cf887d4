import Reconciliation

extension World {
  /// Apple's transactions, in the format of the simulator's world file. `isFinished`: finished by the app.
  package func appleTransactions(
    name: (Identifier) -> String, isFinished: Bool
  ) -> [[String: Any]] {
    transactions.map { told($0, name: name, isFinished: isFinished) }
      + unseen.map { told($0, name: name, isFinished: true) }
  }

  private func told(_ record: TransactionRecord, name: (Identifier) -> String, isFinished: Bool) -> [String: Any] {
    let type = SampleProduct.all.first { $0.productId == record.productId }?.type
    let originalId = record.originalTransactionId ?? record.transactionId
    var told: [String: Any] = [
      "transactionId": name(record.transactionId), "environment": record.environment.rawValue,
      "originalTransactionId": name(originalId), "bundleId": record.bundleId ?? "",
      "productId": record.productId.text, "finished": isFinished,
      "type": (type ?? (record.expiresDate == nil ? .consumable : .autoRenewable)).rawValue,
      // All periods of a subscription have one customer.
      "customer": (customers[originalId] ?? originalId).text,
    ]
    func tell(_ field: String, _ instant: Instant?) { told[field] = instant.map(\.milliseconds) }
    tell("purchaseDate", record.purchaseDate)
    tell("originalPurchaseDate", record.originalPurchaseDate)
    tell("expiresDate", record.expiresDate)
    told["quantity"] = record.quantity.map { Int($0) }
    told["price"] = record.priceMilliunits as Int64?
    told["currency"] = record.currency as String?
    if case .stated(let token) = record.appAccountToken { told["appAccountToken"] = token }
    told["inAppOwnershipType"] = record.ownership?.rawValue
    told["transactionReason"] = record.isRenewal == true ? "RENEWAL" : nil
    if record.hasOffer == true { told["offerType"] = 1 }
    if record.isUpgraded == true { told["isUpgraded"] = true }
    // Apple's status is `active` unless the story sets one. Running periods need none.
    if let expiresDate = record.expiresDate, expiresDate <= rules.asOf {
      told["subscriptionStatus"] = Int((record.subscriptionStatus ?? .active).rawValue)
    }
    tell("consumptionRequestDate", record.refundRequest?.date)
    told["consumptionRequestReason"] = record.refundRequest?.reason
    tell("refundDeclinedDate", record.refundRequest?.declinedDate)
    if let revocation = record.revocation {
      tell("revocationDate", revocation.date)
      told["revocationType"] = revocation.type ?? "REFUND_FULL"
      told["revocationPercentage"] = revocation.percentage.map { Int($0) }
      told["revocationReason"] = revocation.reason.map { Int($0) }
    }
    if let withdrawn = record.revocationWithdrawnDate {
      tell("revocationDate", withdrawn - .hours(3))
      tell("refundReversedDate", withdrawn)
    }
    return told
  }
}
