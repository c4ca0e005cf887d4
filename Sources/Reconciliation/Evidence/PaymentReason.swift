/// The reason of a verdict, or of the state of a proof; raw values as in the column `payment_reason`.
public enum PaymentReason: String, Hashable, CaseIterable, Sendable {
  // Proofs of `unpaid`.
  case signatureInvalid = "signature_invalid"
  case malformed
  case wrongBundle = "wrong_bundle"
  case productMismatch = "product_mismatch"
  case restored
  case duplicate
  case sandbox
  case xcode
  case idMismatch = "id_mismatch"
  case notFound = "not_found"
  case familyShared = "family_shared"
  case noEvidence = "no_evidence"
  case neverPaid = "never_paid"
  /// Of `paid`: an order of amount 0 without proof and ID.
  case nothingToPay = "nothing_to_pay"
  // Reasons for `unconfirmed`.
  case neverChecked = "never_checked"
  case awaitingEvidence = "awaiting_evidence"
  case unreachable
  case rateLimited = "rate_limited"
  case appleError = "apple_error"
  case accountGone = "account_gone"
  case notInReceipt = "not_in_receipt"
  case notFoundYet = "not_found_yet"
  case contradiction
  case noRoots = "no_roots"
  case systemic
  case unreadable
  case certificateExpired = "certificate_expired"

  /// True if the reason proves that the order has no payment. All other reasons prove nothing.
  public var provesUnpaid: Bool {
    switch self {
    case .signatureInvalid, .malformed, .wrongBundle, .productMismatch, .restored, .duplicate, .sandbox, .xcode,
      .idMismatch, .notFound, .familyShared, .noEvidence, .neverPaid:
      true
    case .neverChecked, .awaitingEvidence, .unreachable, .rateLimited, .appleError, .accountGone, .notInReceipt,
      .notFoundYet, .contradiction, .noRoots, .systemic, .unreadable, .certificateExpired, .nothingToPay:
      false
    }
  }

  /// The reason as a clause.
  public var explanation: String {
    switch self {
    case .signatureInvalid: "its proof does not carry Apple's signature"
    case .malformed: "its proof is not a receipt at all"
    case .wrongBundle: "its proof belongs to another app"
    case .productMismatch: "the payment is for another product"
    case .restored: "it restores an earlier purchase, for which no money moved"
    case .duplicate: "another order owns the payment"
    case .sandbox: "it was a test purchase in the sandbox"
    case .xcode: "it was made in Xcode's test environment, which Apple does not sign"
    case .idMismatch: "its own signed proof contains another transaction ID"
    case .notFound: "Apple knows the transaction ID neither in production nor in the sandbox"
    case .familyShared: "access comes from a family member's purchase"
    case .noEvidence: "it has neither a receipt nor a transaction ID, though the shop says verified"
    case .neverPaid: "it has neither a receipt nor a transaction ID"
    case .nothingToPay: "nothing was to be paid"
    case .neverChecked: "Apple has not been asked yet"
    case .awaitingEvidence: "evidence is missing that could still decide the payment"
    case .unreachable: "Apple could not be reached"
    case .rateLimited: "Apple limited our requests"
    case .appleError: "Apple answered with an error"
    case .accountGone: "Apple says that the customer's account no longer exists"
    case .notInReceipt: "the receipt is genuine but does not list the purchase; that does not mean unpaid"
    case .notFoundYet: "Apple does not know the transaction yet"
    case .contradiction: "Apple's answers contradict each other"
    case .noRoots: "Apple's root certificates are not installed, so the signature cannot be checked"
    case .systemic: "so many answers were refused for one reason that night-audit assumes a misconfiguration"
    case .unreadable: "its receipts cannot be read, and Apple has given no other answer about it"
    case .certificateExpired:
      "Apple signed its proof with a certificate that was not valid then, and has not confirmed the purchase"
    }
  }
}

extension Vocabularies {
  public static let reason = Vocabulary<PaymentReason>()
}
