/// What has become of a transaction by some moment.
extension World.Transaction {
  /// The changes that Apple would show by then, in milliseconds since the epoch.
  private func events(by horizon: Int64) -> [Int64] {
    [purchaseDate, revocationDate, refundReversedDate].compactMap(\.self).filter { $0 <= horizon }
  }

  /// Whether it has been bought by then.
  func exists(by horizon: Int64) -> Bool { purchaseDate <= horizon }

  /// Whether Apple has taken it back by then, and not given it back again.
  func isRevoked(by horizon: Int64) -> Bool {
    guard let revocationDate, revocationDate <= horizon else { return false }
    return refundReversedDate.map { $0 > horizon } ?? true
  }

  /// When the latest of its changes happened.
  func lastModified(by horizon: Int64) -> Int64 { events(by: horizon).max() ?? purchaseDate }

  /// Whether family sharing ended, rather than money being paid back.
  var isFamilyRevocation: Bool { revocationType == "FAMILY_REVOKE" }

  /// Whether it is a later period of a subscription.
  var isRenewal: Bool {
    transactionReason.map { $0 == "RENEWAL" } ?? (type == .autoRenewable && originalId != transactionId)
  }
}
