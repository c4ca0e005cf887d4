/// The rules of the verdict, in sequence. The first rule that applies decides.
public enum VerdictRule: String, CaseIterable, Sendable {
  case ownsTransaction = "owns_transaction"
  case claimRefuted = "claim_refuted"
  case recordsContradict = "records_contradict"
  case claimsOwnedByOthers = "claims_owned_by_others"
  case lookedUp = "looked_up"
  case containsOtherPurchases = "brought_others"
  case proofsUnanswered = "proofs_open"
  case notInReceipt = "not_in_receipt"
  case proofsRejected = "proofs_false"
  case withoutProof = "nothing_to_go_by"

  public var question: String {
    switch self {
    case .ownsTransaction: "Does the order own a transaction that Apple signed?"
    case .claimRefuted: "Does the stated transaction prove that it cannot pay this order?"
    case .recordsContradict: "Do Apple's records about the claimed transaction contradict each other?"
    case .claimsOwnedByOthers: "Do other orders own every transaction that this order could claim?"
    case .lookedUp: "Was the stated transaction ID looked up, and with what result?"
    case .proofsUnanswered: "Is there a receipt that Apple has not answered for?"
    case .containsOtherPurchases: "Do its receipts contain only purchases that cannot be this one?"
    case .notInReceipt: "Is there a genuine receipt that does not list the purchase?"
    case .proofsRejected: "Was every proof of the order rejected?"
    case .withoutProof: "Is there no proof at all?"
    }
  }

  func verdict(_ facts: OrderFacts, _ rules: Rules, _ because: inout Because) -> Verdict? {
    switch self {
    case .ownsTransaction: ownsTransaction(facts, rules, &because)
    case .claimRefuted: claimRefuted(facts, &because)
    case .recordsContradict: recordsContradict(facts, rules, &because)
    case .claimsOwnedByOthers: claimsOwnedByOthers(facts, rules, &because)
    case .lookedUp: lookedUp(facts, rules, &because)
    case .proofsUnanswered: proofsUnanswered(facts, rules, &because)
    case .containsOtherPurchases: containsOtherPurchases(facts, rules, &because)
    case .notInReceipt: notInReceipt(facts, rules, &because)
    case .proofsRejected: proofsRejected(facts, &because)
    case .withoutProof: withoutProof(facts, rules, &because)
    }
  }

  private func ownsTransaction(_ facts: OrderFacts, _ rules: Rules, _ because: inout Because) -> Verdict? {
    guard let transaction = facts.claims.owned.first else {
      let count = facts.proven.count + facts.known.count
      return because.noting(nil, "It owns none of the \(count) transactions that are known for it.")
    }
    let id = transaction.shownId(stated: facts.order.transactionId)
    switch transaction.environment {
    case .production:
      if transaction.isReversed, let refunded = facts.payments.first(where: { facts.awaitsShare(of: $0) }) {
        let id = refunded.shownId(stated: facts.order.transactionId)
        return because.noting(
          .unconfirmed(.awaitingEvidence),
          "It owns \(id), which is refunded according to a receipt. Apple's answer about the refunded share is missing."
        )
      }
      // A live payment precedes a revoked one.
      if transaction.isReversed, facts.awaitsPayment(rules) {
        return because.noting(
          nil,
          "It owns \(id), which Apple has refunded in full; a missing answer could still show another payment."
        )
      }
      if transaction.isReversed {
        return because.noting(.reversed(transaction), "It owns \(id), which Apple has refunded in full.")
      }
      return because.noting(
        .paid(transaction),
        transaction.revocation == nil
          ? "It owns \(id), a genuine purchase. Apple has reported no refund."
          : "It owns \(id), a genuine purchase. Apple has refunded only a part of it.")
    case .sandbox:
      // A production payment may still be found. Until then the sandbox proves nothing.
      let mayBePaid = facts.hasUnansweredProofs || facts.isStatedIDPending || facts.mayGetLostPayment
      if mayBePaid {
        return because.noting(
          nil, "It owns \(id) from the sandbox; a missing answer could still show a payment.")
      }
      // A test purchase pays no order. Final ownership matters only for test users and after rejected proofs.
      let isUnpaidRegardless = facts.proofValidity == .notAllRejected && !rules.testUsers.contains(facts.order.userId)
      return isUnpaidRegardless || facts.isOwnershipFinal(rules)
        ? because.noting(.unpaid(.sandbox, transaction), "It owns \(id), a test purchase in the sandbox.")
        : because.noting(
          .unconfirmed(.awaitingEvidence), "It owns \(id) from the sandbox for now; a missing answer could change that."
        )
    case .xcode, .localTesting:
      return because.noting(.unpaid(.xcode, transaction), "It owns \(id), which was made in Xcode and not by Apple.")
    }
  }

  private func claimRefuted(_ facts: OrderFacts, _ because: inout Because) -> Verdict? {
    if let refused = facts.claims.refused {
      let id = refused.transaction.shownId(stated: facts.order.transactionId)
      if facts.hasUnansweredProofs {
        return because.noting(nil, "It states \(id), but an unanswered receipt could contain another one.")
      }
      if facts.mayGetLostPayment {
        return because.noting(nil, "It states \(id), but a missing answer could still give it another purchase.")
      }
      if refused.reason == .restored, facts.awaitsDetails(of: refused.transaction) {
        return because.noting(
          nil, "It states \(id), which looks like a restore. Apple's answer may show a purchase.")
      }
      if facts.hasUnreadableProof {
        return because.noting(
          .unconfirmed(.unreadable),
          "It states \(id), which cannot pay it, but one of its proofs cannot be read.")
      }
      if refused.reason == .productMismatch, facts.awaitsUpgrade(from: refused.transaction) {
        return because.noting(
          .unconfirmed(.awaitingEvidence),
          "It states \(id), which was upgraded to a purchase that is not known yet.")
      }
      return because.noting(
        .unpaid(refused.reason, refused.transaction), "It states \(id), but \(facts.explanation(of: refused.reason)).")
    }
    return because.noting(
      nil,
      facts.order.transactionId.map { "It states \($0), and no evidence shows that this transaction cannot pay it." }
        ?? "It states no transaction ID.")
  }

  private func recordsContradict(_ facts: OrderFacts, _ rules: Rules, _ because: inout Because) -> Verdict? {
    let isAmongUnnamed =
      facts.order.transactionId == nil && facts.claimant(rules).proven.contains { $0.isContradictory }
    return facts.claims.contradictory != nil || isAmongUnnamed
      ? because.noting(.unconfirmed(.contradiction), "Apple named two products or apps for one transaction ID.")
      : because.noting(nil, "Apple's records about its purchases agree.")
  }

  private func claimsOwnedByOthers(_ facts: OrderFacts, _ rules: Rules, _ because: inout Because) -> Verdict? {
    guard let lost = facts.claims.lost.first else {
      return because.noting(nil, "No other order owns a transaction that it claims.")
    }
    let id = lost.transaction.shownId(stated: facts.order.transactionId)
    let whose = "\(id) belongs to order \(lost.ownerOrderId)"
    if facts.isFree { return because.noting(nil, "\(whose), but this order is free and needs no payment.") }
    // An unanswered proof may contain further transactions; `proofsUnanswered` gives the reason.
    if facts.hasUnansweredProofs {
      return because.noting(nil, "\(whose), but an unanswered proof could contain a transaction of its own.")
    }
    // A deleted account leaves the purchase of the stated ID unknown for good.
    let awaitsAnswer = facts.awaitsAnswer(rules) || facts.isStatedIDPending && facts.lookup?.isUnanswered ?? false
    let isFinal = facts.claims.lost.allSatisfy(\.isFinal)
    let isTest =
      facts.claims.lost.allSatisfy { $0.transaction.environment != .production }
      && !rules.testUsers.contains(facts.order.userId)
    // The same answer as for the owner of a test purchase.
    let isProven =
      facts.order.transactionId.map { id in facts.proven.contains { $0.isOf(id) } } ?? true
      && facts.proofValidity == .notAllRejected
    let isUnreadable = facts.order.transactionId != nil && facts.hasUnreadableProof
    let isKnown = !awaitsAnswer && !facts.isStatedIDPending && !isUnreadable
    if isTest, !isFinal && isKnown || (awaitsAnswer || !isFinal) && isProven {
      return because.noting(
        .unpaid(.sandbox, lost.transaction), "\(whose) for now. It is a test purchase, whichever order owns it.")
    }
    if awaitsAnswer {
      return because.noting(nil, "\(whose), but Apple has given no usable answer about its own claim.")
    }
    // An unreadable proof may contain a purchase of its own.
    if facts.order.transactionId != nil, facts.hasUnreadableProof {
      return because.noting(.unconfirmed(.unreadable), "\(whose), but one of its own proofs cannot be read.")
    }
    if isFinal {
      let claimant = facts.claimant(rules)
      if let named = facts.order.transactionId, claimant.contradictsOwnPayload {
        return because.noting(
          .unpaid(.idMismatch, claimant.proven.first { claimant.signedIds.contains($0.transactionId) }),
          "\(whose), it has no other to claim, and it states \(named) although its own signed proof contains another ID."
        )
      }
      return because.noting(.unpaid(.duplicate, lost.transaction), "\(whose), and it has no other to claim.")
    }
    return because.noting(
      .unconfirmed(.awaitingEvidence), "\(whose) for now; a missing answer could still change that.")
  }

  private func lookedUp(_ facts: OrderFacts, _ rules: Rules, _ because: inout Because) -> Verdict? {
    guard let lookup = facts.lookup, let outcome = facts.lookupOutcome else {
      return because.noting(nil, "No transaction ID needed a look-up of its own.")
    }
    switch outcome {
    case .pending:
      return because.noting(
        .unconfirmed(.neverChecked),
        facts.isLookupImpossible(rules: rules)
          ? VerdictRule.lookupImpossible : "Apple has not been asked about the transaction ID yet.")
    case .notFound:
      let known = "Apple does not know the transaction ID"
      if facts.hasUnansweredProofs {
        return because.noting(nil, "\(known), but an unanswered receipt could contain another one.")
      }
      if facts.claimant(rules).contradictsOwnPayload {
        return because.noting(nil, "\(known), and its own signed proof contains another one.")
      }
      if facts.proofValidity != .notAllRejected, facts.validReceipts.contains(where: { $0.state.reason != .malformed })
      {
        return because.noting(nil, "\(known), and the rejection of its own proof gives the reason.")
      }
      if !facts.claims.isFinal {
        return because.noting(
          .unconfirmed(.awaitingEvidence),
          "\(known), and a missing answer could still give it a purchase that its receipts contain.")
      }
      return isTooOldToBeUnknown(facts, lookup, rules)
        ? because.noting(
          .unpaid(.notFound, nil),
          "Apple does not know the transaction ID, and the order was older than \(rules.notFoundGrace.words) then.")
        : because.noting(
          .unconfirmed(.notFoundYet),
          "\(known), but the order was not older than \(rules.notFoundGrace.words) then.")
    case .rejected, .unanswered, .review:
      let reason = lookup.unconfirmedReason
      return because.noting(.unconfirmed(reason), "The look-up has no usable answer: \(reason.explanation).")
    case .verified: return because.noting(nil, "Apple knows the transaction ID; other rules decide what follows.")
    }
  }

  /// True if the order was older than the grace when Apple answered. Later silence proves nothing.
  private func isTooOldToBeUnknown(_ facts: OrderFacts, _ proof: ProofState, _ rules: Rules) -> Bool {
    min(proof.answeredAt ?? rules.asOf, rules.asOf) - facts.order.createdAt > rules.notFoundGrace
  }

  private func proofsUnanswered(_ facts: OrderFacts, _ rules: Rules, _ because: inout Because) -> Verdict? {
    if facts.receipts.isEmpty { return because.noting(nil, "The order has no receipt.") }
    let reasons = facts.validReceipts.compactMap { receipt -> PaymentReason? in
      switch receipt.state.outcome {
      case .pending: .neverChecked
      case .unanswered, .review: receipt.state.unconfirmedReason
      case .notFound: isTooOldToBeUnknown(facts, receipt.state, rules) ? nil : .notFoundYet
      case .verified, .rejected: nil
      }
    }
    // Of several open proofs, the reason that is most useful for the next step.
    let byUsefulness: [PaymentReason] = [
      .contradiction, .systemic, .accountGone, .noRoots, .certificateExpired, .appleError, .rateLimited, .unreachable,
      .neverChecked,
    ]
    guard let reason = byUsefulness.first(where: reasons.contains) ?? reasons.first else {
      return because.noting(nil, "Apple has answered about every receipt.")
    }
    return because.noting(.unconfirmed(reason), "A receipt has no answer: \(reason.explanation).")
  }

  private func containsOtherPurchases(_ facts: OrderFacts, _ rules: Rules, _ because: inout Because) -> Verdict? {
    // Signed data decides before Apple answers, but not while an answer could reveal the payment.
    let isComplete = facts.validReceipts.allSatisfy {
      !$0.state.mayRevealPayment
        && ($0.state.outcome != .notFound || isTooOldToBeUnknown(facts, $0.state, rules))
    }
    guard isComplete else { return because.noting(nil, "An unanswered receipt could still contain the purchase.") }
    let order = facts.order
    let claimant = facts.claimant(rules)
    if let named = order.transactionId {
      guard claimant.contradictsOwnPayload else {
        return because.noting(nil, "The IDs in its proofs do not contradict the stated ID.")
      }
      guard !facts.awaitsAnswer(rules), facts.claims.isFinal else {
        return because.noting(nil, "A missing answer could still show which purchase pays it.")
      }
      return because.noting(
        .unpaid(.idMismatch, claimant.proven.first { claimant.signedIds.contains($0.transactionId) }),
        "It states \(named), but its own signed proof contains another ID.")
    }
    let contained = claimant.proven
    guard let first = contained.first else { return because.noting(nil, "Its receipts contain no purchase.") }
    let wanted = rules.bundleId(of: order)
    if contained.allSatisfy({ $0.bundleId != wanted }),
      listsAgree(facts, { $0.bundleId.map { $0 != wanted } ?? false })
    {
      return because.noting(.unpaid(.wrongBundle, first), "Every purchase in its receipts was made in another app.")
    }
    if !contained.contains(where: { $0.isPurchase(of: order.productId) }) {
      // App receipts lack finished consumables, so that the other products in them prove nothing.
      return facts.areProofsOfOnePurchase
        ? because.noting(.unpaid(.productMismatch, first), "Its proof is about another product.")
        : because.noting(nil, "Its app receipts list only other products, which proves nothing.")
    }
    if contained.allSatisfy({ $0.environment == .xcode || $0.environment == .localTesting }),
      listsAgree(facts, { $0.environment == .xcode || $0.environment == .localTesting })
    {
      return because.noting(.unpaid(.xcode, first), "Every purchase in its receipts was made in Xcode.")
    }
    let ofProduct = contained.filter { $0.isPurchase(of: order.productId) && $0.bundleId == wanted }
    if let restored = ofProduct.first, !ofProduct.contains(where: facts.awaitsDetails),
      Set(ofProduct.map(\.purchaseKey)).count == 1,
      ofProduct.allSatisfy({ claimant.isOutdatedRestore($0, rules: rules) })
    {
      return because.noting(
        .unpaid(.restored, restored), "Every transaction of the product in its receipts restores an earlier purchase.")
    }
    let isShared = { (record: TransactionRecord) in
      record.isFamilyShared
        && (claimant.proofIds.contains(record.transactionId) || claimant.isInWindow(record, rules: rules))
    }
    guard let shared = ofProduct.first(where: isShared) else {
      return because.noting(nil, "Its receipts contain the ordered product, but no purchase that this order owns.")
    }
    return because.noting(
      .unpaid(.familyShared, shared), "Its receipts contain access through a family member's purchase.")
  }

  /// True if every proof that may list several purchases meets the condition itself.
  /// The order's part of a list depends on its competitors, and a list without the product proves nothing.
  private func listsAgree(_ facts: OrderFacts, _ isConfirmed: (ProofState) -> Bool) -> Bool {
    facts.validReceipts.allSatisfy { receipt -> Bool in
      switch receipt.state.outcome {
      case .rejected, .notFound: true
      case .verified, .pending, .unanswered, .review:
        switch receipt.state.kind {
        case .signed, .transaction: true
        case .app, .malformed, .none: isConfirmed(receipt.state)
        }
      }
    }
  }

  private func notInReceipt(_ facts: OrderFacts, _ rules: Rules, _ because: inout Because) -> Verdict? {
    let genuine = facts.validReceipts.filter { $0.state.outcome == .verified }
    let contained = facts.claimant(rules).proven
    guard !genuine.isEmpty || !contained.isEmpty else {
      return because.noting(nil, "The order has no genuine receipt.")
    }
    let wanted = rules.bundleId(of: facts.order)
    // A receipt of another app proves nothing about a stated ID.
    if facts.order.transactionId == nil, !genuine.isEmpty,
      genuine.allSatisfy({ $0.state.bundleId != nil && $0.state.bundleId != wanted }),
      contained.allSatisfy({ $0.bundleId != wanted })
    {
      return because.noting(.unpaid(.wrongBundle, contained.first), "Its receipts are genuine, but of another app.")
    }
    if contained.isEmpty, genuine.allSatisfy({ $0.state.isUnproven }) {
      return because.noting(
        .unconfirmed(.unreadable),
        "The signer of its receipt is not proven. The IDs in it are also another order's, or cannot pay this order."
      )
    }
    return because.noting(
      .unconfirmed(.notInReceipt),
      "Its genuine receipts do not list the purchase. That proves nothing: finished and refunded purchases leave receipts."
    )
  }

  private func proofsRejected(_ facts: OrderFacts, _ because: inout Because) -> Verdict? {
    let unknown = facts.validReceipts.filter { $0.state.outcome == .notFound }
    // Apple was not asked about any ID but the one inside the proof.
    if let named = facts.order.transactionId, !unknown.isEmpty,
      !unknown.contains(where: { $0.state.signedTransactionId == named })
    {
      return because.noting(nil, "Apple does not know the purchase inside its proof, and was not asked about \(named).")
    }
    let isUnread = facts.hasUnreadableProof
    // The content of an unreadable payload is unknown. Other rules decide if Apple was asked about the stated ID.
    if isUnread, facts.order.transactionId != nil, unknown.isEmpty, facts.lookup == nil {
      return because.noting(
        .unconfirmed(.unreadable), "A payload of it cannot be read, and Apple has not answered about the stated ID.")
    }
    let reasons = facts.validReceipts.compactMap { $0.state.reason }
    let proven: [PaymentReason] = [.signatureInvalid, .idMismatch, .xcode, .wrongBundle]
    if let reason = proven.first(where: reasons.contains) {
      return because.noting(.unpaid(reason, nil), "No proof is valid: \(reason.explanation).")
    }
    if !unknown.isEmpty {
      return because.noting(.unpaid(.notFound, nil), "Apple does not know the purchase in its proof.")
    }
    guard isUnread else { return because.noting(nil, "No proof of the order was rejected.") }
    return facts.order.transactionId == nil
      ? because.noting(.unpaid(.malformed, nil), "None of its payloads is a receipt, and it states no transaction ID.")
      : because.noting(.unconfirmed(.unreadable), "None of its payloads can be read. Its stated ID decides nothing.")
  }

  private static let lookupImpossible =
    "It states an ID that its app's channel cannot look up, and it has no receipt to ask Apple about."

  private func withoutProof(_ facts: OrderFacts, _ rules: Rules, _ because: inout Because) -> Verdict? {
    if facts.lookup?.outcome == .verified, facts.known.isEmpty {
      return because.noting(
        .unconfirmed(.awaitingEvidence), "Apple knows the stated ID, but no purchase under it up to the as-of.")
    }
    if facts.order.transactionId != nil || !facts.validReceipts.isEmpty {
      return because.noting(
        .unconfirmed(.neverChecked),
        facts.isLookupImpossible(rules: rules)
          ? VerdictRule.lookupImpossible : "Apple has not been asked yet about its receipts or its stated ID.")
    }
    if facts.isFree {
      return because.noting(.nothingToPay, "Its amount is 0, and it has neither a receipt nor a transaction ID.")
    }
    let age = rules.asOf - facts.order.createdAt
    if age <= rules.evidenceGrace {
      return because.noting(
        .unconfirmed(.awaitingEvidence),
        "It has neither a receipt nor a transaction ID, but it is not older than \(rules.evidenceGrace.words) yet.")
    }
    return because.noting(
      .unpaid(facts.order.status == .verified ? .noEvidence : .neverPaid, nil),
      "It has neither a receipt nor a transaction ID \(rules.evidenceGrace.words) after its creation.")
  }
}
