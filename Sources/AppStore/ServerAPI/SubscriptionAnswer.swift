import Reconciliation

/// What Apple says about the subscriptions of one customer in one app (Get All Subscription Statuses).
package struct SubscriptionAnswer: Hashable, Sendable {
  /// The answer, sorted by what may be concluded from it.
  package enum Outcome: Hashable, Sendable {
    /// One for each subscription; none for a customer without any.
    case found([Subscription])
    /// This side does not know the id.
    case notFound
    /// It is no id of Apple's.
    case malformedId
    /// 4040001: the customer's account does not exist any more.
    case accountGone
    /// No answer, or none that says anything about the customer.
    case unanswered(Silence)
    /// Apple refuses our credential or our request: nothing follows about the customer.
    case fault(AppleFault)
  }

  /// Where one subscription stands.
  package struct Subscription: Hashable, Sendable {
    /// The subscription group; a customer has at most one running subscription of each.
    package var groupIdentifier: String?
    /// Apple's `status`; nil where there was none, one that is unknown here, or renewal information that is not believed.
    package var status: SubscriptionState?
    /// The latest transaction. Its fact tells besides how the subscription stands: Apple's status, the end of the grace
    /// period and the next renewal.
    package var transaction: AppleTransaction
    /// What is to become of the subscription; nil when it is missing or not believed.
    package var renewalInfo: SignedRenewalInfo?
  }

  package var outcome: Outcome
  /// How many subscriptions were left out because their transaction or renewal information is not believed.
  package var refused = 0
  package var trail: ServerAPITrail

  /// What the answer says about the health of Apple's side.
  package var health: CircuitBreaker.CallResult {
    guard case .unanswered(let silence) = outcome else { return .success }
    return CircuitBreaker.CallResult(silence)
  }

  /// Why nothing may be concluded from a subscription that is not among those found, or from its state: no answer came, or
  /// part of it is not believed. Nil for a whole answer.
  package var silence: Silence? {
    switch outcome {
    case .unanswered(let silence): silence
    case .found where refused > 0:
      Silence(reason: .appleError, detail: "\(refused) subscriptions in the answer are not believed")
    case .found, .notFound, .malformedId, .accountGone, .fault: nil
    }
  }
}

extension SubscriptionAnswer.Outcome {
  init(_ refusal: ServerAPIRefusal) {
    switch refusal {
    case .notFound: self = .notFound
    case .accountGone: self = .accountGone
    case .malformedId: self = .malformedId
    case .revisionRefused, .windowExpired:
      self = .unanswered(Silence(reason: .appleError, detail: "a paging error about an answer without pages"))
    case .unanswered(let silence): self = .unanswered(silence)
    case .fault(let fault): self = .fault(fault)
    }
  }
}

extension SubscriptionAnswer {
  /// Reads an answer, whose documents are verified one by one.
  static func read(_ fields: JSONFields, verifier: AnswerVerifier, host: AppleHost, trail: ServerAPITrail) -> Self {
    guard let groups = fields.objects("data") else {
      return Self(outcome: .unanswered(Silence(reason: .appleError, detail: "an answer without data")), trail: trail)
    }
    var answer = SubscriptionAnswer(outcome: .found([]), trail: trail)
    var found: [Subscription] = []
    for group in groups {
      guard let items = group.objects("lastTransactions") else {
        answer.refuse("a subscription group without lastTransactions")
        continue
      }
      for item in items {
        if let subscription = answer.subscription(item, group, verifier, host) { found.append(subscription) }
      }
    }
    // With nothing believed the customer must not look like one without subscriptions.
    answer.outcome =
      found.isEmpty && answer.refused > 0
      ? .unanswered(Silence(reason: .appleError, detail: "no subscription in the answer is believed"))
      : .found(found)
    return answer
  }

  private mutating func subscription(
    _ item: JSONFields, _ group: JSONFields, _ verifier: AnswerVerifier, _ host: AppleHost
  ) -> Subscription? {
    switch verifier.verify(item.document("signedTransactionInfo") ?? "", host: host) {
    case .failure(let refusal):
      refuse("a subscription in Apple's answer is not believed: \(refusal)")
      return nil
    case .success(var transaction):
      let renewalInfo = renewalInfo(of: item, transaction: transaction, verifier: verifier)
      var status = item.integer32("status").flatMap(SubscriptionState.init(rawValue:))
      if status == nil { trail.warn("a subscription in Apple's answer has a status that is unknown here, or none") }
      // Without the end of its grace and its next renewal nobody can tell since when it stands so.
      if renewalInfo == nil, item.document("signedRenewalInfo") != nil { status = nil }
      transaction.fact.subscriptionStatus = status
      transaction.fact.gracePeriodExpiresDate = renewalInfo?.gracePeriodExpiresDate
      transaction.fact.renewalDate = renewalInfo?.renewalDate
      return Subscription(
        groupIdentifier: group.text("subscriptionGroupIdentifier"), status: status, transaction: transaction,
        renewalInfo: renewalInfo)
    }
  }

  private mutating func renewalInfo(
    of item: JSONFields, transaction: AppleTransaction, verifier: AnswerVerifier
  ) -> SignedRenewalInfo? {
    guard let jws = item.document("signedRenewalInfo") else { return nil }
    switch verifier.verifier.verifyRenewalInfo(jws) {
    case .failure(let refusal):
      refuse("renewal information in Apple's answer is not believed: \(refusal)")
      return nil
    case .success(let info):
      let fact = transaction.fact
      guard info.environment == fact.environment, info.originalTransactionId == fact.originalTransactionId else {
        refuse("renewal information in Apple's answer is of another subscription")
        return nil
      }
      return info
    }
  }

  private mutating func refuse(_ reason: String) {
    refused += 1
    trail.warn(reason)
  }
}
