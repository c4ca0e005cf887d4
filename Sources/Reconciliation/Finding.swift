/// What a finding stands on. Ids are unique within their own kind only: order `17` and delivery `17` are two subjects.
public struct Subject: Hashable, Comparable, Sendable {
  /// The raw value is the word in the database and in the stable id.
  public enum Kind: String, Hashable, CaseIterable, Sendable {
    case order, delivery, receipt, transaction
    /// A product in a week of Apple's sales reports.
    case productWeek = "product_week"

    fileprivate var rank: Int {
      switch self {
      case .order: 0
      case .delivery: 1
      case .receipt: 2
      case .transaction: 3
      case .productWeek: 4
      }
    }
  }

  public var kind: Kind
  public var id: Identifier

  public init(_ kind: Kind, _ id: Identifier) {
    self.kind = kind
    self.id = id
  }

  public static func order(_ id: Identifier) -> Subject { Subject(.order, id) }
  public static func delivery(_ id: Identifier) -> Subject { Subject(.delivery, id) }
  public static func receipt(_ id: Identifier) -> Subject { Subject(.receipt, id) }
  public static func transaction(_ id: Identifier) -> Subject { Subject(.transaction, id) }

  /// A product in a week, told by the day that it begins on: `2026-11-16`.
  public static func product(_ id: Identifier, weekOf day: String) -> Subject {
    Subject(.productWeek, Identifier("\(id.text) \(day)"))
  }

  /// A row of the shop's: by its id, and without one by whom and what it is about, which is the same from night to night.
  static func row(
    _ kind: Kind, _ id: Identifier, orderId: Identifier? = nil, userId: Identifier?, productId: Identifier? = nil
  ) -> Subject {
    guard id.isEmpty else { return Subject(kind, id) }
    let words = [("order", orderId), ("user", userId), ("product", productId)].compactMap { word, id in
      id.flatMap { $0.isEmpty ? nil : ", \(word) \($0.text)" }
    }
    return Subject(kind, words.isEmpty ? id : Identifier("without an id" + words.joined()))
  }

  public static func < (left: Subject, right: Subject) -> Bool {
    (left.id, left.kind.rank) < (right.id, right.kind.rank)
  }
}

/// Units of an order: what is missing is to be delivered, and of what is too much only the surplus taken back.
public struct Units: Hashable, Sendable {
  public var ordered: Int64
  /// Delivered and not taken back; where goods are to be given, with access that ended with the period paid for.
  public var held: Int64

  public init(ordered: Int64, held: Int64) {
    self.ordered = ordered
    self.held = held
  }
}

/// A discrepancy that a person must look at.
public struct Finding: Hashable, Sendable {
  public var kind: FindingKind
  /// How urgent this one is: as a rule what its kind is.
  public var severity: Severity
  /// What the shop's own jobs may do about this one: as a rule what its kind says.
  public var action: FindingAction
  /// With the kind it makes the stable id.
  public var subject: Subject
  public var orderId: Identifier?
  public var userId: Identifier?
  public var productId: Identifier?
  public var transactionId: Identifier?
  public var receiptId: Identifier?
  public var deliveryId: Identifier?
  /// Who has the goods that it is about, where that is neither its user nor an alias of theirs.
  public var heldBy: Identifier?
  public var environment: AppleEnvironment?
  /// The app, where it is known.
  public var bundleId: String?
  /// Of the App Store behind its transaction; nil when Apple has not said.
  public var country: Country?
  /// Amount of the order, or Apple's price where there is no order.
  public var amount: Money?
  /// The money that this finding, and no other finding on the same order, puts at stake.
  public var atStake: Money?
  /// Whether it puts money at stake of which nobody knows how much; then `atStake` is nil.
  public var isStakeUnknown = false
  /// When the deal happened: Apple's purchase date, else the order's, delivery's or receipt's own.
  public var occurredAt: Instant?
  public var paidAt: Instant?
  public var deliveredAt: Instant?
  /// What was ordered and what is with a user, where ``action`` is about units.
  public var units: Units?
  /// Why, in words that need no programmer.
  public var reason: Reason
  /// Whether Apple was asked about the facts behind it before this run; such evidence is renewed before a critical report.
  public var evidenceCheckedAt: Instant?

  /// The currency wherever one column heads both amounts: that of what is at stake.
  public var currency: Currency? { (atStake ?? amount)?.currency }

  /// The amount, where it is in ``currency``. A second charge in another currency than the order's is what is at stake; the
  /// order's own amount is on its row.
  public var amountBesideStake: Money? { amount?.currency == currency ? amount : nil }

  /// What a person should do about it, as one sentence: as a rule what its kind says.
  public var suggestedAction: String {
    if kind == .cancelledButPaid, deliveredAt != nil {
      return
        "Reopen the order, as goods of it are delivered, or take them back and ask the customer to request a refund."
    }
    return kind.action.givesGoods && action == .look
      ? "Look at the reason and the order's other findings before goods are given: they could be given twice, or unpaid."
      : kind.suggestedAction
  }

  public init(kind: FindingKind, subject: Subject, reason: Reason) {
    self.kind = kind
    severity = kind.severity
    action = kind.action
    self.subject = subject
    self.reason = reason
  }

  /// What the stable id is a hash of: kind, kind of subject and subject, a line feed between them.
  ///
  /// Stored ids are the first 32 hexadecimal digits of its SHA-256. In Postgres:
  /// ```sql
  /// left(encode(sha256(convert_to(f.kind || E'\n' || subject_kind || E'\n' || f.subject, 'UTF8')), 'hex'), 32)
  /// ```
  public var identity: String { "\(kind.rawValue)\n\(subject.kind.rawValue)\n\(subject.id.text)" }
}
