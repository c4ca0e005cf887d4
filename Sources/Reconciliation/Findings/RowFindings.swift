// Findings that one row of the shop shows by itself, with an order or without one.

extension Delivery {
  var subject: Subject { .row(.delivery, deliveryId, orderId: orderId, userId: userId, productId: productId) }

  /// The reason of `bad_row`.
  var brokenContract: Reason? { defect.map { "The delivery row breaks the contract: \($0)." } }
}

extension Receipt {
  var subject: Subject { .row(.receipt, receiptId, orderId: orderId, userId: userId) }

  /// The reason of `bad_row`.
  var brokenContract: Reason? { defect.map { "The receipt row breaks the contract: \($0)." } }

  /// The reason of `signature_invalid`.
  var invalidSignature: Reason? {
    guard state.outcome == .rejected, state.reason == .signatureInvalid else { return nil }
    let check = state.failedCheck.map { ": \($0)" } ?? ""
    return "The proof in receipt \(receiptId) does not carry Apple's signature\(check)."
  }

  /// The reason of `environment_mislabelled`.
  var mislabelledEnvironment: Reason? {
    guard let claimedEnvironment, let signed = state.environment, claimedEnvironment != signed.rawValue else {
      return nil
    }
    return
      "The client stated the environment \(claimedEnvironment) for receipt \(receiptId); Apple's is \(signed.rawValue)."
  }
}
