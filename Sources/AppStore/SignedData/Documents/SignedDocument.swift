import Reconciliation

/// A verified document that Apple signed as JWS.
package enum SignedDocument: Hashable, Sendable {
  case transaction(SignedTransaction)
  case notification(SignedNotification)
  /// Renewal information, an app transaction, or a newer kind; none contains a purchase.
  case other(SignedPaper)
}

package struct SignedPaper: Hashable, Sendable {
  package let environment: AppleEnvironment?
  /// Nil if missing, as in renewal information.
  package let bundleId: String?

  init(_ payload: JSONFields) {
    environment =
      payload.text("environment").flatMap(AppleEnvironment.init(rawValue:))
      ?? payload.text("receiptType").flatMap(AppleEnvironment.init(receiptType:))
    bundleId = payload.text("bundleId")
  }
}
