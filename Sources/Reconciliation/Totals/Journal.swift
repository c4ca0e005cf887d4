/// A role in the journal, which `journal.accounts` maps to an account of the ledger.
///
/// Nothing is posted to `tax`: Apple's sales and finance reports have no column for tax. Where prices are without tax,
/// the tax is zero; elsewhere it is unknown, and so is the commission.
public enum JournalRole: String, Hashable, CaseIterable, Sendable {
  case sale, refund, adjustment, commission, tax, payout, receivable
}

/// An event that the ledger contains at most once.
public struct JournalEvent: Hashable, Comparable, Sendable {
  public enum Kind: String, Hashable, CaseIterable, Sendable {
    case sale, refund, commission, tax, payout

    var side: (role: JournalRole, isDebit: Bool) {
      switch self {
      case .sale: (.sale, false)
      case .refund: (.refund, true)
      case .commission: (.commission, true)
      case .tax: (.tax, true)
      case .payout: (.payout, true)
      }
    }

    /// True if an entry for a later business day than the event's is a prior-period adjustment.
    var adjustsPriorPeriods: Bool {
      switch self {
      case .sale, .refund: true
      case .commission, .tax, .payout: false
      }
    }
  }

  public var kind: Kind
  /// The order's ID; for Apple's amounts the fiscal period and the currency, `2026-02 USD`.
  public var subject: Identifier

  public init(_ kind: Kind, _ subject: Identifier) { (self.kind, self.subject) = (kind, subject) }

  public static func < (left: JournalEvent, right: JournalEvent) -> Bool {
    (left.subject, left.kind.rawValue) < (right.subject, right.kind.rawValue)
  }
}

/// The required content of the ledger for an event.
public struct JournalPosting: Hashable, Sendable {
  public var amount: Money
  public var day: String
  /// The configured name of the app; nil: unknown, or Apple's amount of all apps.
  public var app: String?
  public var transactionId: Identifier?
  /// First and last day of a subscription's service period; nil: the day of the event.
  public var service: ClosedRange<String>?

  public init(
    amount: Money, day: String, app: String? = nil, transactionId: Identifier? = nil,
    service: ClosedRange<String>? = nil
  ) {
    (self.amount, self.day, self.app) = (amount, day, app)
    (self.transactionId, self.service) = (transactionId, service)
  }

  /// True if the ledger needs no correction. Another transaction ID of the same purchase changes nothing.
  func isPosted(as posted: JournalPosting) -> Bool {
    (amount, day, app) == (posted.amount, posted.day, posted.app) && service == posted.service
  }
}

/// A posted entry, never edited. A changed fact posts a reversal and a new entry.
public struct JournalEntry: Hashable, Sendable {
  public var event: JournalEvent
  public var posting: JournalPosting
  public var version: Int32
  public var isReversal: Bool
  public var postedFor: String

  public init(
    event: JournalEvent, posting: JournalPosting, version: Int32, isReversal: Bool = false, postedFor: String
  ) {
    (self.event, self.posting, self.version) = (event, posting, version)
    (self.isReversal, self.postedFor) = (isReversal, postedFor)
  }

  public struct Line: Hashable, Sendable {
    public var role: JournalRole
    public var isDebit: Bool
    public var minorUnits: UInt64
  }

  public var lines: [Line] {
    let (role, growsAsDebit) = event.kind.side
    let isAdjustment = event.kind.adjustsPriorPeriods && posting.day < postedFor
    // A reversal and a negative amount change the side.
    let isDebit = (growsAsDebit != isReversal) != (posting.amount.minorUnits < 0)
    let minorUnits = posting.amount.minorUnits.magnitude
    let lines = [
      Line(role: isAdjustment ? .adjustment : role, isDebit: isDebit, minorUnits: minorUnits),
      Line(role: .receivable, isDebit: !isDebit, minorUnits: minorUnits),
    ]
    return isDebit ? lines : lines.reversed()
  }

  public var signedUnits: Int128 { Int128(posting.amount.minorUnits) * (isReversal ? -1 : 1) }

  public func name(of line: Line) -> String {
    "\(event.kind.rawValue) \(version) \(isReversal ? "reversal" : "entry") \(line.isDebit ? "debit" : "credit") "
      + event.subject.text
  }
}

public enum Journal {
  /// Returns the entries that lead from the posted content of an event to the required one.
  /// `wanted` is nil for no content. The ledger contains events before `firstDay` already.
  public static func entries(
    _ event: JournalEvent, newest: JournalEntry?, wanted: JournalPosting?, on day: String, firstDay: String
  ) -> [JournalEntry] {
    let current = newest.flatMap { $0.isReversal ? nil : $0 }
    // An event of a later day waits for the night of that day.
    if let wanted, wanted.day > day { return [] }
    let wanted = wanted.flatMap { $0.amount.minorUnits == 0 || $0.day < firstDay && newest == nil ? nil : $0 }
    switch (current, wanted) {
    case (.none, .none): return []
    case (.some(let current), .some(let wanted)) where wanted.isPosted(as: current.posting): return []
    case (.some, _), (_, .some): break
    }
    var entries: [JournalEntry] = []
    if var reversal = current {
      (reversal.isReversal, reversal.postedFor) = (true, day)
      entries.append(reversal)
    }
    if let wanted {
      entries.append(
        JournalEntry(event: event, posting: wanted, version: (newest?.version ?? 0) + 1, postedFor: day))
    }
    return entries
  }
}

/// The ledger's sale of an order, with its refund.
public struct JournalSale: Hashable, Sendable {
  /// The refunded part of the order's amount, with the date of the newest refund; nil: none, or an unknown share.
  public var refund: Refund?
  public var transactionId: Identifier?
  public var service: ClosedRange<Instant>?

  public struct Refund: Hashable, Sendable {
    public var amount: Money
    public var date: Instant

    public init(amount: Money, date: Instant) { (self.amount, self.date) = (amount, date) }
  }

  public init(refund: Refund? = nil, transactionId: Identifier? = nil, service: ClosedRange<Instant>? = nil) {
    (self.refund, self.transactionId, self.service) = (refund, transactionId, service)
  }

  /// nil: no confirmed payment (sandbox, bad row, unconfirmed).
  public init?(_ judgement: Judgement) {
    guard case .valid(let order) = judgement.row else { return nil }
    let transaction = judgement.verdict?.transaction
    switch judgement.disposition {
    case .settled, .paidNotDelivered, .partlyDelivered, .inFlight:
      if let amount = judgement.refundedAmount, let date = judgement.refundedAt {
        refund = Refund(amount: amount, date: date)
      }
    case .refunded, .refundedStillDelivered:
      refund = judgement.refundedAt.map { Refund(amount: order.amount, date: $0) }
    case .deliveredNotPaid, .unconfirmed, .void, .sandbox, .badRow: return nil
    }
    transactionId = judgement.transactionId
    if let start = transaction?.purchaseDate, let end = transaction?.expiresDate, start <= end { service = start...end }
  }
}
