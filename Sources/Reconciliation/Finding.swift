/// A discrepancy that a person must look at.
package struct Finding: Hashable, Sendable {
  package var kind: FindingKind
  /// The order, or else the transaction, receipt or delivery that it stands on. With the kind it makes the stable id.
  package var subject: Identifier
  package var orderId: Identifier?
  package var userId: Identifier?
  package var productId: Identifier?
  package var transactionId: Identifier?
  package var receiptId: Identifier?
  package var deliveryId: Identifier?
  package var environment: AppleEnvironment?
  /// The app, where it is known.
  package var bundleId: String?
  /// Amount of the order, or Apple's price where there is no order.
  package var amount: Money?
  /// The money that this finding, and no other finding on the same order, puts at stake.
  package var atStake: Money?
  package var paidAt: Instant?
  package var deliveredAt: Instant?
  /// Why, in words that need no programmer.
  package var reason: String
  /// Whether Apple was asked about the facts behind it before this run; such evidence is renewed before a critical report.
  package var evidenceCheckedAt: Instant?

  package init(kind: FindingKind, subject: Identifier, reason: String) {
    self.kind = kind
    self.subject = subject
    self.reason = reason
  }

  /// What the stable id is a hash of.
  package var identity: String { kind.rawValue + "\n" + subject.text }
}
