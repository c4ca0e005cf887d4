import Reconciliation

/// Anything that Apple signed, its signature verified.
package enum SignedDocument: Hashable, Sendable {
  /// One purchase (Apple: `JWSTransaction`).
  case transaction(SignedTransaction)
  /// A notification, perhaps with a purchase within (Apple: `responseBodyV2`).
  case notification(SignedNotification)
  /// Renewal information, an app transaction, or something newer: no purchase is in it.
  case other(SignedPaper)
}

/// Something that Apple signed and that proves no purchase.
package struct SignedPaper: Hashable, Sendable {
  /// Nil where it names none that is known here.
  package let environment: AppleEnvironment?
  /// Nil where it names none, as renewal information does.
  package let bundleId: String?
  /// When Apple signed or made it.
  package let signedDate: Instant

  /// Reads a payload whose signature holds.
  init(_ payload: JSONFields) throws(SignedDataRefusal) {
    guard let date = payload.instant("signedDate") ?? payload.instant("receiptCreationDate") else {
      throw .payloadIncomplete("signedDate")
    }
    signedDate = date
    environment =
      payload.text("environment").flatMap(AppleEnvironment.init(rawValue:))
      ?? payload.text("receiptType").flatMap(AppleEnvironment.init(receiptType:))
    bundleId = payload.text("bundleId")
  }
}
