import AuditStore
import Foundation
import Reconciliation
import Reporting
import Run

/// One order for machines; the keys are listed in the README. Times are UTC, amounts are text with the currency's digits.
package struct DossierDocument: Encodable {
  fileprivate struct Order: Encodable {
    var orderId: String
    var userId: String
    var bundleId: String?
    var productId: String
    var quantity: Int32
    var amount: String
    var currency: String
    var status: String
    var transactionId: String?
    var appAccountToken: String?
    var createdAt: String
    var verifiedAt: String?
    var defect: String?
  }

  fileprivate struct Rule: Encodable {
    var rule: String
    var question: String
    var holds: Bool
    var because: String
  }

  fileprivate struct Event: Encodable {
    var asOf: String
    var event: String
    var actor: String?
    var detail: String?
  }

  fileprivate struct History: Encodable {
    var firstSeen: String
    var lastSeen: String
    var closedAt: String?
    var ageDays: Int64
    var status: String
    var owner: String?
    var remark: String?
    var events: [Event]
  }

  fileprivate struct Finding: Encodable {
    var findingId: String
    var kind: String
    var severity: String
    var subject: String
    var stands: Bool
    var reason: String
    var suggestedAction: String
    var currency: String?
    var amount: String?
    var atStake: String?
    var history: History?
  }

  fileprivate struct Consideration: Encodable {
    var kind: String
    var because: String
  }

  fileprivate struct Refund: Encodable {
    var date: String
    var percentage: String?
    var type: String?
    var reason: Int32?
  }

  fileprivate struct Statement: Encodable {
    var signedAt: String
    var channel: String
    var asOf: String
    var aboutKind: String?
    var aboutId: String?
    /// `yes`, `no`, or `silent` where the channel cannot tell.
    var refunded: String
    var refund: Refund?
    var price: String?
    var currency: String?
    var expiresAt: String?
    var isRenewal: Bool?
    var hasOffer: Bool?
  }

  fileprivate struct Competitor: Encodable {
    var orderId: String
    var userId: String
    var createdAt: String
    var names: Bool
    var owns: Bool
  }

  fileprivate struct Transaction: Encodable {
    var transactionId: String
    var environment: String
    var productId: String
    var quantity: Int32?
    var purchasedAt: String?
    var expiresAt: String?
    var bundleId: String?
    var price: String?
    var currency: String?
    var refund: Refund?
    var refundWithdrawnAt: String?
    var isOwned: Bool
    var standing: String
    var unclaimed: String?
    var competitors: [Competitor]
    var evidence: [Statement]
  }

  fileprivate struct Answer: Encodable {
    var asOf: String
    var channel: String
    var outcome: String
    var reason: String?
    var environment: String?
    var appleStatus: Int32?
    var transactions: Int
  }

  fileprivate struct Proof: Encodable {
    var subjectKind: String
    var subjectId: String
    var receivedAt: String?
    var userId: String?
    var kind: String?
    var claimedEnvironment: String?
    var environment: String?
    var outcome: String
    var reason: String?
    var attempts: Int32
    var lastAttempt: String?
    var nextAttempt: String?
    var defect: String?
    var transactions: [String]
    var answers: [Answer]
  }

  fileprivate struct Delivery: Encodable {
    var deliveryId: String
    var userId: String
    var productId: String
    var quantity: Int32
    var deliveredAt: String
    var revokedAt: String?
    var defect: String?
  }

  private let asOf: String
  private let isInLookback: Bool
  private let order: Order
  private let disposition: String
  private let dispositionBecause: String?
  private let payment: String?
  private let paymentReason: String?
  private let rules: [Rule]
  private let findings: [Finding]
  private let considered: [Consideration]
  private let transactions: [Transaction]
  private let proofs: [Proof]
  private let deliveries: [Delivery]

  package init(_ dossier: OrderDossier) {
    let judgement = dossier.judgement
    asOf = dossier.asOf.machineText
    isInLookback = dossier.isInLookback
    order = Order(judgement.row)
    disposition = judgement.disposition.rawValue
    dispositionBecause = dossier.reasoning?.disposition
    payment = judgement.verdict?.name
    paymentReason = judgement.verdict?.reason?.rawValue
    rules = (dossier.reasoning?.steps ?? []).map {
      Rule(rule: $0.rule.rawValue, question: $0.rule.question, holds: $0.verdict != nil, because: $0.because)
    }
    let standing = Set(dossier.findings.map(\.findingId))
    let gone = dossier.known.values.filter { !standing.contains($0.findingId) }.sorted { $0.findingId < $1.findingId }
    findings =
      dossier.findings.map { Finding($0, dossier.known[$0.findingId], asOf: dossier.asOf) }
      + gone.map { Finding($0, asOf: dossier.asOf) }
    considered = dossier.reasonsAgainst.map { Consideration(kind: $0.kind.rawValue, because: $0.because) }
    transactions = dossier.transactions.map { Transaction($0) }
    proofs = dossier.proofs.map { Proof($0) }
    deliveries = dossier.deliveries.map { Delivery($0) }
  }

  /// The document as `explain --json` prints it.
  package var json: String { get throws { try MachineText.json(self) } }
}

extension DossierDocument.Order {
  fileprivate init(_ row: OrderRow) {
    switch row {
    case .valid(let order):
      self.init(
        orderId: order.orderId.text, userId: order.userId.text, bundleId: order.bundleId,
        productId: order.productId.text, quantity: order.quantity, amount: order.amount.decimalText,
        currency: order.amount.currency.code, status: order.status.rawValue, transactionId: order.transactionId?.text,
        appAccountToken: order.appAccountToken, createdAt: order.createdAt.machineText,
        verifiedAt: order.verifiedAt?.machineText)
    case .bad(let bad):
      self.init(
        orderId: bad.orderId.text, userId: bad.userId.text, bundleId: bad.bundleId, productId: bad.productId.text,
        quantity: bad.quantity, amount: bad.amountText, currency: bad.currencyText, status: bad.statusText,
        transactionId: bad.transactionId?.text, createdAt: bad.createdAt.machineText, defect: bad.defect)
    }
  }
}

extension DossierDocument.Finding {
  fileprivate init(_ finding: Reconciliation.Finding, _ known: OrderDossier.Known?, asOf: Instant) {
    self.init(
      findingId: finding.findingId, kind: finding.kind.rawValue, severity: finding.severity.rawValue,
      subject: finding.subject.id.text, stands: true, reason: finding.reason,
      suggestedAction: finding.kind.suggestedAction, currency: (finding.amount ?? finding.atStake)?.currency.code,
      amount: finding.amount?.decimalText, atStake: finding.atStake?.decimalText,
      history: known.map { DossierDocument.History($0, asOf: asOf) })
  }

  /// One that stood once.
  fileprivate init(_ known: OrderDossier.Known, asOf: Instant) {
    self.init(
      findingId: known.findingId, kind: known.kind.rawValue, severity: known.kind.severity.rawValue,
      subject: known.subject.text, stands: false, reason: known.reason, suggestedAction: known.kind.suggestedAction,
      history: DossierDocument.History(known, asOf: asOf))
  }
}

extension DossierDocument.History {
  fileprivate init(_ known: OrderDossier.Known, asOf: Instant) {
    self.init(
      firstSeen: known.firstSeen.machineText, lastSeen: known.lastSeen.machineText,
      closedAt: known.closedAt?.machineText, ageDays: max(0, (asOf - known.firstSeen).wholeDays), status: known.status,
      owner: known.owner, remark: known.remark,
      events: known.events.map {
        DossierDocument.Event(asOf: $0.asOf.machineText, event: $0.event, actor: $0.actor, detail: $0.detail)
      })
  }
}

extension DossierDocument.Refund {
  fileprivate init(_ revocation: Revocation) {
    self.init(
      date: revocation.date.machineText,
      percentage: revocation.percentage.map { Money.decimalText(Int128($0), digits: 3) }, type: revocation.type,
      reason: revocation.reason)
  }
}

extension DossierDocument.Transaction {
  fileprivate init(_ transaction: OrderDossier.Transaction) {
    let record = transaction.record
    self.init(
      transactionId: record.transactionId.text, environment: record.environment.rawValue,
      productId: record.productId.text, quantity: record.quantity, purchasedAt: record.purchaseDate?.machineText,
      expiresAt: (record.subscriptionExpiresDate ?? record.expiresDate)?.machineText, bundleId: record.bundleId,
      price: record.price?.decimalText, currency: record.currency,
      refund: record.revocation.map { DossierDocument.Refund($0) },
      refundWithdrawnAt: record.revocationWithdrawnDate?.machineText, isOwned: transaction.isOwned,
      standing: transaction.standing, unclaimed: transaction.leftOver?.reason,
      competitors: transaction.competitors.map {
        DossierDocument.Competitor(
          orderId: $0.order.orderId.text, userId: $0.order.userId.text, createdAt: $0.order.createdAt.machineText,
          names: $0.names, owns: $0.owns)
      }, evidence: transaction.evidence.map { DossierDocument.Statement($0) })
  }
}

extension DossierDocument.Statement {
  fileprivate init(_ statement: OrderDossier.Statement) {
    let fact = statement.fact
    let (refunded, refund): (String, Revocation?) =
      switch fact.revocation {
      case .silent: ("silent", nil)
      case .says(.none): ("no", nil)
      case .says(.some(let revocation)): ("yes", revocation)
      }
    self.init(
      signedAt: fact.signedDate.machineText, channel: fact.channel.rawValue, asOf: statement.asOf.machineText,
      aboutKind: statement.subject?.kind.rawValue, aboutId: statement.subject?.id.text, refunded: refunded,
      refund: refund.map { DossierDocument.Refund($0) },
      price: fact.priceMilliunits.map { Money.decimalText(Int128($0), digits: 3) }, currency: fact.currency,
      expiresAt: fact.expiresDate?.machineText, isRenewal: fact.isRenewal, hasOffer: fact.hasOffer)
  }
}

extension DossierDocument.Proof {
  fileprivate init(_ proof: OrderDossier.Proof) {
    let state = proof.state
    self.init(
      subjectKind: proof.subject.kind.rawValue, subjectId: proof.subject.id.text,
      receivedAt: proof.receipt?.receivedAt.machineText, userId: proof.receipt?.userId?.text,
      kind: state.kind?.rawValue, claimedEnvironment: proof.receipt?.claimedEnvironment,
      environment: state.environment?.rawValue, outcome: state.outcome.rawValue, reason: state.reason?.rawValue,
      attempts: state.attempts, lastAttempt: state.lastAttempt?.machineText,
      nextAttempt: state.nextAttempt?.machineText, defect: proof.receipt?.defect,
      transactions: proof.brought.map(\.transactionId.text),
      answers: proof.answers.map {
        DossierDocument.Answer(
          asOf: $0.asOf.machineText, channel: $0.channel, outcome: $0.outcome.rawValue, reason: $0.reason?.rawValue,
          environment: $0.environment, appleStatus: $0.appleStatus, transactions: $0.facts)
      })
  }
}

extension DossierDocument.Delivery {
  fileprivate init(_ delivery: Reconciliation.Delivery) {
    self.init(
      deliveryId: delivery.deliveryId.text, userId: delivery.userId.text, productId: delivery.productId.text,
      quantity: delivery.quantity, deliveredAt: delivery.deliveredAt.machineText,
      revokedAt: delivery.revokedAt?.machineText, defect: delivery.defect)
  }
}

extension Instant {
  /// `2026-11-19T22:14:03Z`
  fileprivate var machineText: String { Date(timeIntervalSince1970: Double(seconds)).ISO8601Format() }
}
