/// Apple's `status` codes (App Store Receipts, "status") and what each of them means for us.
package enum VerifyReceiptStatus {
  /// What follows from a status.
  package enum Class: Hashable, CaseIterable, Sendable {
    /// The receipt is genuine and its content follows; 21006 says besides that its subscription has expired.
    case valid
    /// The receipt belongs to the sandbox.
    case askSandbox
    /// The receipt belongs to production.
    case askProduction
    /// Apple did not sign this receipt.
    case rejected
    /// The customer's account is gone. Nothing more will ever be learnt this way.
    case accountGone
    /// Apple's trouble, or a status that no document has: says nothing about the receipt.
    case transient
    /// Our shared secret is wrong.
    case secretRefused
    /// Our request is wrong.
    case requestRefused
    /// A person must look: Apple does not want to be asked again, or says what it says no longer.
    case review
  }

  /// The meaning of a status.
  /// - Parameter isRetryable: the answer's `is_retryable`, defined for 21100 to 21199 only; nil when it was absent, which
  ///   older answers are, and then trying again is harmless.
  package static func classify(_ status: Int, isRetryable: Bool?) -> Class {
    switch status {
    case 0, 21006: .valid
    case 21000: .requestRefused
    // 21002 is also "the service experienced a temporary issue": outages gave it for every receipt.
    case 21002, 21005, 21009: .transient
    case 21003: .rejected
    case 21004: .secretRefused
    case 21007: .askSandbox
    case 21008: .askProduction
    case 21010: .accountGone
    case 21001: .review
    case 21100...21199: isRetryable == false ? .review : .transient
    // A proxy answers in Apple's place, or Apple has a code that nobody has described.
    default: .transient
    }
  }
}
