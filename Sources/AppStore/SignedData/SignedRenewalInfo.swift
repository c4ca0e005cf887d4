import Reconciliation

/// What is to become of a subscription, its signature verified (Apple: `JWSRenewalInfoDecodedPayload`).
package struct SignedRenewalInfo: Hashable, Sendable {
  /// Where the subscription was bought.
  package let environment: AppleEnvironment
  /// Names the subscription over all its periods.
  package let originalTransactionId: String
  /// When Apple signed it.
  package let signedDate: Instant
  /// The product of the current period.
  package let productId: String?
  /// The product that the next period will be of.
  package let autoRenewProductId: String?
  /// Whether the subscription will renew.
  package let autoRenews: Bool?
  /// 1 cancelled, 2 billing error, 3 price rise declined, 4 product unavailable, 5 other.
  package let expirationIntent: Int32?
  /// Whether Apple still tries to collect the money.
  package let isInBillingRetryPeriod: Bool?
  /// Until when access continues though the renewal has not been paid.
  package let gracePeriodExpiresDate: Instant?
  /// When the current period ends and the next payment is due.
  package let renewalDate: Instant?

  /// Reads a payload whose signature holds.
  init(_ payload: JSONFields) throws(SignedDataRefusal) {
    guard let id = payload.text("originalTransactionId") else { throw .payloadIncomplete("originalTransactionId") }
    guard let signedDate = payload.instant("signedDate") else { throw .payloadIncomplete("signedDate") }
    environment = try AppleEnvironment(signedIn: payload)
    originalTransactionId = id
    self.signedDate = signedDate
    productId = payload.text("productId")
    autoRenewProductId = payload.text("autoRenewProductId")
    autoRenews = payload.flag("autoRenewStatus")
    expirationIntent = payload.integer32("expirationIntent")
    isInBillingRetryPeriod = payload.flag("isInBillingRetryPeriod")
    gracePeriodExpiresDate = payload.instant("gracePeriodExpiresDate")
    renewalDate = payload.instant("renewalDate")
  }
}
