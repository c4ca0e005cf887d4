/// Apple's `status` codes (App Store Receipts, "status").
package enum VerifyReceiptStatus {
  package enum Class: Hashable, CaseIterable, Sendable {
    /// The receipt is genuine and its content follows; 21006 also means that its subscription has expired.
    case valid
    case askSandbox
    case askProduction
    case rejected
    /// The customer's account no longer exists, so a retry is useless.
    case accountGone
    /// An error at Apple's side or an undocumented status; it says nothing about the receipt.
    case transient
    case secretRefused
    case requestRefused
    /// A person must look: Apple does not want a retry, or no longer sends this status.
    case review
  }

  /// - Parameter isRetryable: defined for 21100 to 21199 only; if missing, as in older answers, the receipt is retried.
  package static func classify(_ status: Int, isRetryable: Bool?) -> Class {
    switch status {
    case 0, 21006: .valid
    case 21000: .requestRefused
    // 21002 also means "the service experienced a temporary issue": in outages every receipt received it.
    case 21002, 21005, 21009: .transient
    case 21003: .rejected
    case 21004: .secretRefused
    case 21007: .askSandbox
    case 21008: .askProduction
    case 21010: .accountGone
    case 21001: .review
    case 21100...21199: isRetryable == false ? .review : .transient
    // An answer from a proxy, or a code that Apple has not documented.
    default: .transient
    }
  }
}
