/// The rules of the verdict on payment, in the order in which they are considered. The first that holds decides.
package enum VerdictRule: CaseIterable, Sendable {
  case ownsTransaction
  case claimRefuted
  case recordsContradict
  case claimsOwnedByOthers
  case lookedUp
  case broughtOthers
  case proofsOpen
  case notInReceipt
  case proofsFalse
  case nothingToGoBy

  /// What the rule asks, for people.
  package var question: String {
    switch self {
    case .ownsTransaction: "Does the order own a transaction that Apple signed?"
    case .claimRefuted: "Does the transaction that the order names prove that it cannot pay this order?"
    case .recordsContradict: "Do Apple's records about the claimed transaction contradict each other?"
    case .claimsOwnedByOthers: "Do other orders own every transaction that this order could claim?"
    case .lookedUp: "Was the transaction id looked up, and with what result?"
    case .proofsOpen: "Is there a receipt that Apple has not answered for?"
    case .broughtOthers: "Do its receipts bring only purchases that cannot be this one?"
    case .notInReceipt: "Is there a genuine receipt that does not list the purchase?"
    case .proofsFalse: "Are all its proofs false?"
    case .nothingToGoBy: "Is there no proof at all?"
    }
  }

  /// The verdict, if this rule holds.
  package func verdict(_ facts: OrderFacts, rules: Rules) -> Verdict? {
    switch self {
    case .ownsTransaction: ownsTransaction(facts)
    case .claimRefuted: facts.claims.refused.map { .unpaid($0.reason, $0.transaction) }
    case .recordsContradict: recordsContradict(facts)
    case .claimsOwnedByOthers: claimsOwnedByOthers(facts)
    case .lookedUp: lookedUp(facts, rules)
    case .proofsOpen: proofsOpen(facts, rules)
    case .broughtOthers: broughtOthers(facts, rules)
    case .notInReceipt: notInReceipt(facts, rules)
    case .proofsFalse: proofsFalse(facts)
    case .nothingToGoBy: nothingToGoBy(facts, rules)
    }
  }

  private func ownsTransaction(_ facts: OrderFacts) -> Verdict? {
    guard let transaction = facts.claims.owned.first else { return nil }
    switch transaction.environment {
    case .production: return transaction.isReversed ? .reversed(transaction) : .paid(transaction)
    case .sandbox:
      // A production payment may still come to light; until then the sandbox proves nothing.
      let mayBePaid = facts.hasOpenProofs || facts.claims.lost.contains { !$0.isFinal }
      return mayBePaid ? nil : .unpaid(.sandbox, transaction)
    case .xcode, .localTesting: return .unpaid(.xcode, transaction)
    }
  }

  private func recordsContradict(_ facts: OrderFacts) -> Verdict? {
    let isAmongUnnamed = facts.order.transactionId == nil && facts.brought.contains(where: \.isContradictory)
    return facts.claims.contradictory != nil || isAmongUnnamed ? .unconfirmed(.contradiction) : nil
  }

  private func claimsOwnedByOthers(_ facts: OrderFacts) -> Verdict? {
    // With a proof unanswered nobody knows every transaction that the order could claim; that rule says why.
    guard let lost = facts.claims.lost.first, !facts.hasOpenProofs else { return nil }
    return facts.claims.lost.allSatisfy(\.isFinal)
      ? .unpaid(.duplicate, lost.transaction) : .unconfirmed(.awaitingEvidence)
  }

  private func lookedUp(_ facts: OrderFacts, _ rules: Rules) -> Verdict? {
    guard let lookup = facts.lookup else { return nil }
    switch lookup.outcome {
    case .pending: return .unconfirmed(.neverChecked)
    case .notFound:
      return isTooOldToBeUnknown(facts, lookup, rules) ? .unpaid(.notFound, nil) : .unconfirmed(.notFoundYet)
    case .rejected, .unanswered, .review: return .unconfirmed(lookup.reason.flatMap(asSilence) ?? .appleError)
    case .verified: return nil
    }
  }

  /// Whether the order had outlived the grace when Apple said that it does not know the transaction. Time that passes
  /// without another answer proves nothing.
  private func isTooOldToBeUnknown(_ facts: OrderFacts, _ proof: ProofState, _ rules: Rules) -> Bool {
    min(proof.answeredAt ?? rules.asOf, rules.asOf) - facts.order.createdAt > rules.notFoundGrace
  }

  private func proofsOpen(_ facts: OrderFacts, _ rules: Rules) -> Verdict? {
    if facts.receipts.isEmpty { return nil }
    let reasons = facts.soundReceipts.compactMap { receipt -> PaymentReason? in
      switch receipt.state.outcome {
      case .pending: .neverChecked
      case .unanswered, .review: receipt.state.reason.flatMap(asSilence) ?? .appleError
      case .notFound: isTooOldToBeUnknown(facts, receipt.state, rules) ? nil : .notFoundYet
      case .verified, .rejected: nil
      }
    }
    // Several open proofs: the reason that says most about what to do next.
    let telling: [PaymentReason] = [
      .contradiction, .accountGone, .noRoots, .appleError, .rateLimited, .unreachable, .neverChecked,
    ]
    return (telling.first(where: reasons.contains) ?? reasons.first).map { .unconfirmed($0) }
  }

  /// A reason that proves something has no place in `unconfirmed`.
  private func asSilence(_ reason: PaymentReason) -> PaymentReason? { reason.provesUnpaid ? nil : reason }

  private func broughtOthers(_ facts: OrderFacts, _ rules: Rules) -> Verdict? {
    // What is signed speaks before Apple answers; what could still bring a payment has to speak first.
    let isComplete = facts.soundReceipts.allSatisfy {
      !$0.state.mayBringPayment
        && ($0.state.outcome != .notFound || isTooOldToBeUnknown(facts, $0.state, rules))
    }
    guard isComplete else { return nil }
    let order = facts.order
    if order.transactionId != nil {
      let claimant = facts.claimant
      guard claimant.contradictsOwnPayload else { return nil }
      return .unpaid(.idMismatch, facts.brought.first { claimant.signedIds.contains($0.transactionId) })
    }
    guard let first = facts.brought.first else { return nil }
    if let wanted = rules.bundleId(of: order), facts.brought.allSatisfy({ $0.bundleId != nil && $0.bundleId != wanted })
    {
      return .unpaid(.wrongBundle, first)
    }
    if facts.brought.allSatisfy({ $0.productId != order.productId }) { return .unpaid(.productMismatch, first) }
    if facts.brought.allSatisfy({ $0.environment == .xcode || $0.environment == .localTesting }) {
      return .unpaid(.xcode, first)
    }
    let claimant = facts.claimant
    let shared = facts.brought.first {
      $0.isFamilyShared && $0.productId == order.productId && claimant.isInWindow($0, rules: rules)
    }
    return shared.map { .unpaid(.familyShared, $0) }
  }

  private func notInReceipt(_ facts: OrderFacts, _ rules: Rules) -> Verdict? {
    let genuine = facts.soundReceipts.filter { $0.state.outcome == .verified }
    guard !genuine.isEmpty || !facts.brought.isEmpty else { return nil }
    if !genuine.isEmpty, let wanted = rules.bundleId(of: facts.order),
      genuine.allSatisfy({ $0.state.bundleId != nil && $0.state.bundleId != wanted }),
      facts.brought.allSatisfy({ $0.bundleId != nil && $0.bundleId != wanted })
    {
      return .unpaid(.wrongBundle, facts.brought.first)
    }
    return .unconfirmed(.notInReceipt)
  }

  private func proofsFalse(_ facts: OrderFacts) -> Verdict? {
    let reasons = facts.soundReceipts.compactMap(\.state.reason)
    let proven: [PaymentReason] = [.signatureInvalid, .idMismatch, .xcode, .wrongBundle, .malformed]
    if let reason = proven.first(where: reasons.contains) { return .unpaid(reason, nil) }
    return facts.soundReceipts.contains { $0.state.outcome == .notFound } ? .unpaid(.notFound, nil) : nil
  }

  private func nothingToGoBy(_ facts: OrderFacts, _ rules: Rules) -> Verdict? {
    if facts.order.transactionId != nil || !facts.soundReceipts.isEmpty { return .unconfirmed(.neverChecked) }
    if rules.asOf - facts.order.createdAt <= rules.evidenceGrace { return .unconfirmed(.awaitingEvidence) }
    return .unpaid(facts.order.status == .verified ? .noEvidence : .neverPaid, nil)
  }
}

extension OrderFacts {
  /// The verdict on payment: the first rule that holds. The last rule always does.
  package func verdict(rules: Rules) -> Verdict {
    for rule in VerdictRule.allCases {
      if let verdict = rule.verdict(self, rules: rules) { return verdict }
    }
    return .unconfirmed(.neverChecked)
  }

  /// How much of the order its user holds: units not taken back, whoever got them.
  package var goods: Goods {
    let units = deliveredUnits
    return units >= Int64(order.quantity) ? .inFull : (units > 0 ? .partly : .none)
  }

  /// Units that are with a user now.
  package var heldUnits: Int64 { soundDeliveries.reduce(0) { $0 + ($1.stands ? Int64($1.quantity) : 0) } }

  /// Units delivered and not taken back. Access to a subscription that was taken back once the period paid for was over
  /// was delivered; after a refund only what the user still holds counts.
  package var deliveredUnits: Int64 {
    let periodEnd = claims.owned.first.flatMap { $0.isLive ? $0.expiresDate : nil }
    return soundDeliveries.reduce(0) { units, delivery in
      var isDelivered = delivery.stands
      if let end = periodEnd, let revoked = delivery.revokedAt, revoked >= end { isDelivered = true }
      return units + (isDelivered ? Int64(delivery.quantity) : 0)
    }
  }

  /// The bucket that payment and goods put the order in.
  package func disposition(of verdict: Verdict, rules: Rules) -> Disposition {
    switch (verdict, goods) {
    case (.paid, .inFull): return .settled
    case (.paid, .partly): return .partlyDelivered
    case (.paid(let transaction), .none):
      let paidAt = transaction.purchaseDate ?? order.verifiedAt ?? order.createdAt
      return rules.asOf - paidAt <= rules.deliveryGrace ? .inFlight : .paidNotDelivered
    case (.reversed, .inFull), (.reversed, .partly): return .refundedStillDelivered
    case (.reversed, .none): return .refunded
    case (.unpaid(.familyShared, _), _): return .void
    case (.unpaid(.sandbox, _), _) where rules.testUsers.contains(order.userId): return .sandbox
    case (.unpaid, .inFull), (.unpaid, .partly): return .deliveredNotPaid
    case (.unpaid, .none): return .void
    case (.unconfirmed, _): return .unconfirmed
    }
  }
}
