/// The urgency of a finding.
public enum Severity: String, OrderedCases, Sendable {
  /// Money or a customer is wrong now.
  case critical
  case major
  case minor
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
  /// The amount to book with the action `book_refund`, whichever finding of the order has an amount at risk.
  public var refundToBook: Money?
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
    if kind == .duplicateClaim, deliveredAt == nil {
      return "Keep the order that owns the payment and correct the status of this one, whose goods no user has."
    }
    guard action == .look, let first = kind.action.stepBeforePersonActs else { return kind.suggestedAction }
    return "\(first) \(kind.suggestedAction)"
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
