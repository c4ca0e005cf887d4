/// The state of a transaction at a time, in milliseconds since the epoch.
extension World.Transaction {
  private func events(by horizon: Int64) -> [Int64] {
    [purchaseDate, revocationDate, refundReversedDate].compactMap(\.self).filter { $0 <= horizon }
  }

  func exists(by horizon: Int64) -> Bool { purchaseDate <= horizon }

  func isRevoked(by horizon: Int64) -> Bool {
    guard let revocationDate, revocationDate <= horizon else { return false }
    return refundReversedDate.map { $0 > horizon } ?? true
  }

  func lastModified(by horizon: Int64) -> Int64 { events(by: horizon).max() ?? purchaseDate }

  /// True if family sharing ended, so no money was returned.
  var isFamilyRevocation: Bool { revocationType == "FAMILY_REVOKE" }

  var isRenewal: Bool {
    transactionReason.map { $0 == "RENEWAL" } ?? (type == .autoRenewable && originalId != transactionId)
  }
}
