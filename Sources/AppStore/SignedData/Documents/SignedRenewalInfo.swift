import Reconciliation

/// Verified renewal information of a subscription (Apple: `JWSRenewalInfoDecodedPayload`).
package struct SignedRenewalInfo: Hashable, Sendable {
  package let environment: AppleEnvironment
  package let originalTransactionId: String
  package let signedDate: Instant
  /// The end of access while the renewal is unpaid.
  package let gracePeriodExpiresDate: Instant?
  /// The end of the current period, when the next payment is due.
  package let renewalDate: Instant?
  /// Milliunits of `currency`: the price of the next period.
  package let renewalPriceMilliunits: Int64?
  package let currency: String?

  init(_ payload: JSONFields) throws(SignedDataRefusal) {
    guard let id = payload.text("originalTransactionId") else { throw .payloadIncomplete("originalTransactionId") }
    guard let signedDate = payload.instant("signedDate") else { throw .payloadIncomplete("signedDate") }
    environment = try AppleEnvironment(signedIn: payload)
    originalTransactionId = id
    self.signedDate = signedDate
    gracePeriodExpiresDate = try payload.optionalDate("gracePeriodExpiresDate")
    renewalDate = try payload.optionalDate("renewalDate")
    renewalPriceMilliunits = payload.integer("renewalPrice")
    currency = payload.text("currency")
  }
}
