/// Apple's revocation of a purchase, in full or in part.
public typealias Revocation = RevocationFields<String>

public struct RevocationFields<Text: FieldText>: Equatable {
  public var date: Instant
  /// The refunded share in milli-percent, 0 to 100,000; nil: not stated.
  public var percentage: Int32?
  /// Apple's `REFUND_FULL`, `REFUND_PRORATED`, `FAMILY_REVOKE` or a newer word; nil: not stated.
  public var type: Text?
  /// Apple's code: 1 for an issue in the app, 0 for any other reason.
  public var reason: Int32?
  /// True if some of several items were refunded (`advancedCommerceInfo.items`): an unknown part.
  public var coversSomeItemsOnly: Bool
  /// True if only receipts state it. They have no field for the refunded share.
  public var isUnsigned: Bool

  public init(
    date: Instant, percentage: Int32? = nil, type: Text? = nil, reason: Int32? = nil,
    coversSomeItemsOnly: Bool = false, isUnsigned: Bool = false
  ) {
    self.date = date
    self.percentage = percentage
    self.type = type
    self.reason = reason
    self.coversSomeItemsOnly = coversSomeItemsOnly
    self.isUnsigned = isUnsigned
  }
}

extension RevocationFields: FieldCoded {
  public static var blank: RevocationFields { RevocationFields(date: .blank) }
  public static var fieldCount: Int { 5 }

  public mutating func code<Coder: FieldCoder & ~Copyable>(with coder: inout Coder) throws(Coder.Failure) {
    try coder.code(&date, "revoked_at")
    try coder.code(&percentage, "revocation_percentage")
    try coder.code(&type, "revocation_type")
    try coder.code(&reason, "revocation_reason")
    // Only signed data has the items.
    var coversSome: Bool? = isUnsigned ? nil : coversSomeItemsOnly
    try coder.code(&coversSome, "revocation_of_some_items")
    (coversSomeItemsOnly, isUnsigned) = (coversSome ?? false, coversSome == nil)
  }
}

extension RevocationFields: Hashable where Text: Hashable {}
extension RevocationFields: Sendable where Text: Sendable {}

extension Revocation {
  var statesShare: Bool { percentage != nil || type != nil || coversSomeItemsOnly }

  /// Combines the statement with the known refund, if it is the same one. The refund keeps its first date.
  /// Channels date one refund differently, and may cut the date to seconds.
  func completed(by known: Revocation?) -> Revocation {
    guard let known, isOfSameShare(as: known) || !statesShare && (date - known.date).magnitude < .seconds(1)
    else { return self }
    var refund = statesShare ? self : known.restated(by: self)
    refund.date = known.date
    return refund
  }

  /// True if both refund the same share. Money that was refunded is not refunded again.
  private func isOfSameShare(as known: Revocation) -> Bool {
    if isFull || known.isFull { return isFull && known.isFull }
    return percentage == known.percentage && type == known.type && coversSomeItemsOnly == known.coversSomeItemsOnly
  }

  /// Combines a receipt's statement, which has a date and a reason alone, with the known refund.
  /// Channels date one refund differently. A date one day later is another refund, which can only be of all the rest.
  func yielding(to known: Revocation?) -> Revocation {
    guard let known, known.statesShare, date - known.date < .days(1) else { return completed(by: known) }
    return known.restated(by: self)
  }

  private func restated(by newer: Revocation) -> Revocation {
    var revocation = self
    revocation.reason = newer.reason ?? reason
    revocation.isUnsigned = isUnsigned && newer.isUnsigned
    return revocation
  }

  /// The refunded part of an amount; nil: Apple states no share.
  func part(of amount: Money) -> Money? { isFull ? amount : percentage.map { amount.share(milliPercent: $0) } }

  /// True if Apple revoked the whole transaction, as it did without type and percentage.
  public var isFull: Bool {
    switch percentage {
    case .none: type != "REFUND_PRORATED" && !coversSomeItemsOnly
    case .some(let milliPercent): milliPercent >= 100_000
    }
  }
}
