/// The state of a transaction at a time, in milliseconds since the epoch.
extension World.Transaction {
  private func events(by horizon: Int64) -> [Int64] {
    let own = [purchaseDate, knownFrom, revokedFrom, revocationRestatedDate, refundReversedDate]
    let changed = (changes ?? []).flatMap { change -> [Int64?] in [change.from, change.refundReversedDate] }
    return (own + changed).compactMap(\.self).filter { $0 <= horizon }
  }

  /// The transaction with its changes up to a time.
  func changed(by horizon: Int64) -> World.Transaction {
    var changed = self
    for change in changes ?? [] where change.from <= horizon {
      changed.isUpgraded = change.isUpgraded ?? changed.isUpgraded
      changed.expiresDate = change.expiresDate ?? changed.expiresDate
      guard let revocationDate = change.revocationDate else { continue }
      (changed.firstRevocationDate, changed.revocationRestatedDate) = (nil, nil)
      (changed.revocationDate, changed.refundReversedDate) = (revocationDate, change.refundReversedDate)
      (changed.revocationType, changed.revocationPercentage) = (change.revocationType, change.revocationPercentage)
    }
    return changed
  }

  func exists(by horizon: Int64) -> Bool { max(purchaseDate, knownFrom ?? purchaseDate) <= horizon }

  /// The instant of the refund.
  var revokedFrom: Int64? { firstRevocationDate ?? revocationDate }

  func isRevoked(by horizon: Int64) -> Bool {
    guard let revokedFrom, revokedFrom <= horizon else { return false }
    return refundReversedDate.map { $0 > horizon } ?? true
  }

  /// The date of the refund that answers state at a time.
  func statedRevocationDate(at horizon: Int64) -> Int64? {
    revocationRestatedDate.map { horizon < $0 } ?? false ? firstRevocationDate : revocationDate
  }

  /// The cancellation date in receipts of a time; nil: none. Receipts show no refund of a consumable.
  func cancellationDate(at horizon: Int64) -> Int64? {
    if type == .consumable { return nil }
    if isRevoked(by: horizon) { return statedRevocationDate(at: horizon) }
    return receiptCancellationDate.flatMap { $0 <= horizon ? $0 : nil }
  }

  func lastModified(by horizon: Int64) -> Int64 { events(by: horizon).max() ?? purchaseDate }

  /// True if family sharing ended, so no money was returned.
  var isFamilyRevocation: Bool { revocationType == "FAMILY_REVOKE" }

  var isRenewal: Bool {
    transactionReason.map { $0 == "RENEWAL" } ?? (type == .autoRenewable && originalId != transactionId)
  }
}
