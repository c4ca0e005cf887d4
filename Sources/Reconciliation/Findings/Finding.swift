/// The record that a finding is about. IDs are unique within one kind only.
public struct Subject: Hashable, Comparable, Sendable {
  public enum Kind: String, OrderedCases, Sendable {
    case order, delivery, receipt, transaction
    case productWeek = "product_week"
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

  /// A product in the week that begins on a day, `2026-11-16`.
  public static func product(_ id: Identifier, weekOf day: String) -> Subject {
    Subject(.productWeek, Identifier("\(id.text) \(day)"))
  }

  /// A row of the shop. Without an ID, its other IDs name it, which stay the same from night to night.
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
    (left.id, left.kind) < (right.id, right.kind)
  }
}

/// The units of an order. Missing units are delivered, and only surplus units are taken back.
public struct Units: Hashable, Sendable {
  public var ordered: Int64
  /// Delivered and not taken back. For goods to be given, access that ended with its paid period counts.
  public var delivered: Int64

  public init(ordered: Int64, delivered: Int64) {
    self.ordered = ordered
    self.delivered = delivered
  }
}

/// A discrepancy that a person must look at.
public struct Finding: Hashable, Sendable {
  public var kind: FindingKind
  /// The kind's severity, unless a rule has changed it.
  public var severity: Severity
  public var action: FindingAction
  public var subject: Subject
  public var orderId: Identifier?
  public var userId: Identifier?
  public var productId: Identifier?
  public var transactionId: Identifier?
  public var receiptId: Identifier?
  public var deliveryId: Identifier?
  /// The holder of the goods, if neither the user nor an alias has them.
  public var goodsHolder: Identifier?
  public var environment: AppleEnvironment?
  public var bundleId: String?
  public var country: Country?
  public var amount: Money?
  public var atStake: Money?
  /// True if the amount at risk is unknown. `atStake` is nil then.
  public var isAmountAtRiskUnknown = false
  /// Apple's date of the refund, of its reversal, or of the purchase, else the date of the order, delivery or receipt.
  public var occurredAt: Instant?
  /// The creation of the order; nil: the finding is about no order.
  public var orderedAt: Instant?
  public var paidAt: Instant?
  public var deliveredAt: Instant?
  public var units: Units?
  /// The end of the newest period of the subscription.
  public var subscriptionExpiresDate: Instant?
  public var subscriptionStatus: SubscriptionState?
  public var reason: Reason
  /// Apple's oldest answer behind the finding. If older than the run, it is renewed before a critical report.
  public var evidenceCheckedAt: Instant?

  /// The currency of a column with both amounts: that of the amount at risk first.
  public var currency: Currency? { (atStake ?? amount)?.currency }

  /// The amount if it is in ``currency``. A second charge may be in another one.
  public var amountInRiskCurrency: Money? { amount?.currency == currency ? amount : nil }

  /// The suggestion for a person as one sentence: the kind's, unless a rule left it to people.
  public var suggestedAction: String {
    if kind == .cancelledButPaid, deliveredAt != nil {
      return
        "Reopen the order, because its goods are delivered. Or take them back and ask the customer to request a refund "
        + "from Apple (reportaproblem.apple.com)."
    }
    if kind.action == .takeBack, action == .bookRefund {
      return "Book the refund of this period and leave the access: the subscription goes on."
    }
    if kind.has(.isAboutRefund), kind.action == .takeBack, action == .look, subscriptionExpiresDate != nil {
      return "Read the reason and the subscription's status before you take anything back."
    }
    if kind == .renewalWithoutOrder, severity == .major {
      return "End the access: Apple refunded this renewal, and no other period pays for it."
    }
    guard kind.action.deliversGoods, action == .look else { return kind.suggestedAction }
    return
      "Ask Apple again (night-audit recheck --order ID), and read the reason and the order's other findings. "
      + "\(kind.suggestedAction)"
  }

  public init(kind: FindingKind, subject: Subject, reason: Reason) {
    self.kind = kind
    severity = kind.severity
    action = kind.action
    self.subject = subject
    self.reason = reason
  }

  /// The text under the stable ID: kind, kind of subject and subject, with line feeds between.
  /// A stored ID is the first 32 hexadecimal digits of its SHA-256. In Postgres:
  /// `left(encode(sha256(convert_to(f.kind || E'\n' || subject_kind || E'\n' || f.subject, 'UTF8')), 'hex'), 32)`
  public var identity: String { "\(kind.rawValue)\n\(subject.kind.rawValue)\n\(subject.id.text)" }
}
