import Reconciliation

/// What Apple says about the subscriptions of one customer in one app (Get All Subscription Statuses).
package struct SubscriptionAnswer: Hashable, Sendable {
  /// The answer, sorted by what may be concluded from it.
  package enum Outcome: Hashable, Sendable {
    /// One for each subscription; none for a customer without any.
    case found([SubscriptionStatus])
    /// This side does not know the id.
    case notFound
    /// It is no id of Apple's.
    case malformedId
    /// 4040001: the customer's account does not exist any more.
    case accountGone
    /// No answer, or none that says anything about the customer.
    case unanswered(Silence)
    /// Our own fault, the same for every id of the app: stop asking, judge nothing.
    case systemicFault(ServerAPIFault)
  }

  package var outcome: Outcome
  /// How many subscriptions were left out because their transaction is not believed.
  package var refused = 0
  package var trail: ServerAPITrail

  /// What the answer says about the health of Apple's side.
  package var health: CircuitBreaker.CallResult {
    guard case .unanswered(let silence) = outcome else { return .success }
    return CircuitBreaker.CallResult(silence)
  }
}

/// Where one subscription stands.
package struct SubscriptionStatus: Hashable, Sendable {
  /// Apple's `status`.
  package enum State: Hashable, Sendable {
    case active
    case expired
    /// Apple still tries to collect the money; there is no access meanwhile.
    case billingRetry
    /// As `billingRetry`, but access continues until `gracePeriodExpiresDate`.
    case gracePeriod
    case revoked
    /// A code that is unknown here; nil where there was none.
    case other(Int64?)

    init(code: Int64?) {
      switch code {
      case 1: self = .active
      case 2: self = .expired
      case 3: self = .billingRetry
      case 4: self = .gracePeriod
      case 5: self = .revoked
      default: self = .other(code)
      }
    }
  }

  /// The subscription group; a customer has at most one running subscription of each.
  package var groupIdentifier: String?
  package var state: State
  /// The latest transaction, with the end of the grace period where Apple tells it.
  package var transaction: AppleTransaction
  /// What is to become of the subscription; nil when it is missing or not believed.
  package var renewalInfo: SignedRenewalInfo?
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
    case .systemicFault(let fault): self = .systemicFault(fault)
    }
  }
}

extension SubscriptionAnswer {
  /// Reads an answer, whose documents are verified one by one.
  static func read(_ fields: JSONFields, verifier: AnswerVerifier, host: AppleHost, trail: ServerAPITrail) -> Self {
    var answer = SubscriptionAnswer(outcome: .found([]), trail: trail)
    var statuses: [SubscriptionStatus] = []
    for group in fields.objects("data") {
      for item in group.objects("lastTransactions") {
        switch verifier.verify(item.document("signedTransactionInfo") ?? "", host: host) {
        case .failure(let refusal):
          answer.refused += 1
          answer.trail.warn("a subscription in Apple's answer is not believed: \(refusal)")
        case .success(var transaction):
          let renewalInfo = renewalInfo(of: item, transaction: transaction, verifier: verifier, trail: &answer.trail)
          transaction.fact.gracePeriodExpiresDate = renewalInfo?.gracePeriodExpiresDate
          statuses.append(
            SubscriptionStatus(
              groupIdentifier: group.text("subscriptionGroupIdentifier"),
              state: SubscriptionStatus.State(code: item.integer("status")), transaction: transaction,
              renewalInfo: renewalInfo))
        }
      }
    }
    // With nothing believed the customer must not look like one without subscriptions.
    answer.outcome =
      statuses.isEmpty && answer.refused > 0
      ? .unanswered(Silence(reason: .appleError, detail: "no signed transaction in the answer is believed"))
      : .found(statuses)
    return answer
  }

  private static func renewalInfo(
    of item: JSONFields, transaction: AppleTransaction, verifier: AnswerVerifier, trail: inout ServerAPITrail
  ) -> SignedRenewalInfo? {
    guard let jws = item.document("signedRenewalInfo") else { return nil }
    switch verifier.verifier.verifyRenewalInfo(jws) {
    case .failure(let refusal):
      trail.warn("renewal information in Apple's answer is not believed: \(refusal)")
      return nil
    case .success(let info):
      let fact = transaction.fact
      guard info.environment == fact.environment, info.originalTransactionId == fact.originalTransactionId else {
        trail.warn("renewal information in Apple's answer is of another subscription")
        return nil
      }
      return info
    }
  }
}
