import Reconciliation

/// The fingerprint of a proof when Apple was asked, for comparison with the present one.
struct ProofFingerprint: Sendable {
  private let whole: Substring
  /// nil for a fingerprint of an older version, which covers the whole only.
  private let payload: Substring?

  /// - Parameter text: digest of payload, app and stated transaction ID; after a space, digest of the payload alone.
  init(_ text: String) {
    let parts = text.split(separator: " ", maxSplits: 1, omittingEmptySubsequences: false)
    whole = parts[0]
    payload = parts.count > 1 ? parts[1] : nil
  }

  var payloadText: String? { payload.map(String.init) }

  func isSame(as other: ProofFingerprint) -> Bool { whole == other.whole }

  /// True if the payload is the same, or unknown: shops change orders more often than payloads.
  func isOfSamePayload(as other: ProofFingerprint) -> Bool {
    guard let payload, let otherPayload = other.payload else { return true }
    return payload == otherPayload
  }
}

/// The shop's record of a proof and its order.
package struct ProofDescription: Sendable {
  package var orderId: Identifier?
  /// The app stated on the order.
  package var bundleId: String?
  /// The transaction ID stated on the order.
  package var statedTransactionId: String?
  package var orderCreatedAt: Instant?
  /// The user of the order, or else the sender of the receipt.
  package var userId: String?
  package var productId: String?
  var payloadBytes = 0
  /// Of a receipt, with its order's app and stated transaction ID.
  package var fingerprint: String?
}
