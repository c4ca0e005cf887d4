import Foundation
import Reconciliation

extension World {
  /// Apple's transactions, in the format of the simulator's world file. `isFinished`: finished by the app.
  package func appleTransactions(
    name: (Identifier) -> String, isFinished: Bool
  ) -> [[String: Any]] {
    transactions.map { fields($0, name: name, isFinished: isFinished) }
      + unseen.map { fields($0, name: name, isFinished: true) }
  }

  private func fields(_ record: TransactionRecord, name: (Identifier) -> String, isFinished: Bool) -> [String: Any] {
    let type = SampleProduct.all.first { $0.productId == record.productId }?.type
    let originalId = record.originalTransactionId ?? record.transactionId
    var fields: [String: Any] = [
      "transactionId": name(record.transactionId), "environment": record.environment.rawValue,
      "originalTransactionId": name(originalId), "bundleId": record.bundleId ?? "",
      "productId": record.productId.text, "finished": isFinished,
      "type": (type ?? (record.expiresDate == nil ? .consumable : .autoRenewable)).rawValue,
      // All periods of a subscription have one customer.
      "customer": (customers[originalId] ?? originalId).text,
    ]
    func set(_ field: String, _ instant: Instant?) { fields[field] = instant.map(\.milliseconds) }
    let announcement = announcements[record.key] ?? Announcement()
    if !announcement.isNotified { fields["isNotified"] = false }
    set("knownFrom", announcement.knownFrom)
    set("firstRevocationDate", announcement.firstRefund?.date)
    set("revocationRestatedDate", announcement.firstRefund?.restatedAt)
    set("purchaseDate", record.purchaseDate)
    set("originalPurchaseDate", record.originalPurchaseDate)
    set("expiresDate", record.expiresDate)
    fields["quantity"] = record.quantity.map { Int($0) }
    fields["price"] = record.priceMilliunits as Int64?
    fields["currency"] = record.currency as String?
    if case .stated(let token) = record.appAccountToken { fields["appAccountToken"] = token }
    fields["inAppOwnershipType"] = record.ownership?.rawValue
    fields["transactionReason"] = record.isRenewal == true ? "RENEWAL" : nil
    fields["webOrderLineItemId"] = record.webOrderLineItemId.map(name)
    fields["billingPlanType"] = record.details.billingPlanType
    fields["commitmentInfo"] = record.details.commitmentInfo.flatMap {
      try? JSONSerialization.jsonObject(with: Data($0.utf8))
    }
    if let part = announcement.bundlePart {
      fields["productId"] = part.text
      fields["originalTransactionId"] = name(record.transactionId)
      fields["webOrderLineItemId"] = nil as String?
      fields["bundleProductID"] = record.productId.text
      fields["bundleTransactionID"] = record.webOrderLineItemId.map(name)
      fields["bundleOriginalTransactionID"] = name(originalId)
    }
    let items = record.productId.text.split(separator: ",")
    if items.count > 1 {
      fields["productId"] = "com.example.generic"
      fields["advancedCommerceInfo"] = ["items": items.map { ["SKU": String($0)] }]
    }
    if record.hasOffer == true { fields["offerType"] = 1 }
    if record.isUpgraded == true { fields["isUpgraded"] = true }
    // Apple's status is `active` unless the story sets one. Running periods need none.
    if let expiresDate = record.expiresDate, expiresDate <= rules.asOf {
      fields["subscriptionStatus"] = Int((record.subscriptionStatus ?? .active).rawValue)
    }
    set("consumptionRequestDate", record.refundRequest?.date)
    fields["consumptionRequestReason"] = record.refundRequest?.reason
    set("refundDeclinedDate", record.refundRequest?.declinedDate)
    if let revocation = record.revocation {
      set("revocationDate", revocation.date)
      fields["revocationType"] = revocation.type ?? "REFUND_FULL"
      fields["revocationPercentage"] = revocation.percentage.map { Int($0) }
      fields["revocationReason"] = revocation.reason.map { Int($0) }
    }
    if let withdrawn = record.revocationWithdrawnDate {
      set("revocationDate", withdrawn - .hours(3))
      set("refundReversedDate", withdrawn)
    }
    return fields
  }
}
