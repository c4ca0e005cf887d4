import Reconciliation

/// The answer to Get All Subscription Statuses: the latest transaction of each subscription of a customer in one app.
/// Each has Apple's `status`, the end of the grace period and the next renewal. The status is nil if it is missing or
/// unknown, or if the renewal information is rejected.
package typealias SubscriptionAnswer = LookupAnswer<[TransactionFact]>

extension SubscriptionAnswer {
  /// The reason why a missing subscription proves nothing: no answer, or rejected parts. Nil for a complete answer.
  package var silence: Silence? {
    guard case .found = outcome, refused > 0 else { return outcome.silence }
    return Silence(reason: .appleError, detail: "\(refused) subscriptions in the answer could not be verified")
  }

  static func subscriptions(
    _ fields: JSONFields, verifier: AnswerVerifier, host: AppleHost, trail: ServerAPITrail
  ) -> Self {
    guard let groups = fields.objects("data") else {
      return Self(outcome: .unanswered(.appleError("an answer without data")), trail: trail)
    }
    var answer = SubscriptionAnswer(outcome: .found([]), trail: trail)
    var found: [TransactionFact] = []
    for group in groups {
      guard let items = group.objects("lastTransactions") else {
        answer.refuse("a subscription group without lastTransactions")
        continue
      }
      for item in items {
        if let subscription = answer.subscription(item, verifier, host) { found.append(subscription) }
      }
    }
    // If everything is rejected, the customer must not look like one without subscriptions.
    answer.outcome =
      found.isEmpty && answer.refused > 0
      ? .unanswered(.appleError("no subscription in the answer could be verified"))
      : .found(found)
    return answer
  }

  private mutating func subscription(
    _ item: JSONFields, _ verifier: AnswerVerifier, _ host: AppleHost
  ) -> TransactionFact? {
    switch verifier.verify(item.document("signedTransactionInfo") ?? "", host: host) {
    case .failure(let refusal):
      refuse("a subscription in Apple's answer could not be verified: \(refusal)")
      return nil
    case .success(var fact):
      let renewalInfo = renewalInfo(of: item, fact: fact, verifier: verifier)
      var status = item.integer32("status").flatMap(SubscriptionState.init(rawValue:))
      if status == nil { trail.warn("a subscription in Apple's answer has a status that is unknown here, or none") }
      // A status needs the end of the grace period and the next renewal, which show since when it applies.
      if renewalInfo == nil, item.document("signedRenewalInfo") != nil { status = nil }
      fact.subscriptionStatus = status
      if let renewalInfo { fact.take(renewalInfo) }
      return fact
    }
  }

  private mutating func renewalInfo(
    of item: JSONFields, fact: TransactionFact, verifier: AnswerVerifier
  ) -> SignedRenewalInfo? {
    guard let jws = item.document("signedRenewalInfo") else { return nil }
    switch verifier.verifier.verifyRenewalInfo(jws) {
    case .failure(let refusal):
      refuse("renewal information in Apple's answer could not be verified: \(refusal)")
      return nil
    case .success(let info):
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
