import AppStore
import AuditStore
import Reconciliation
import Run
import Settings

/// The App Store Server API for one app, where a question is a transaction ID. The signature proves a receipt; Apple is
/// asked for the present state of its purchases.
package struct ServerAPIChannel: AppleChannel {
  /// The most purchases of one app receipt that are asked about, unless more matter for its order.
  package static let mostQuestions = 100

  package struct Policy: Sendable {
    package var asOf: Instant
    package var refundWindow: Span
    /// The greatest distance between an order and its purchase.
    package var matchWindow: Span
    /// How long Apple may not know a transaction.
    package var notFoundGrace: Span
  }

  package let app: Settings.App
  package let client: ServerAPIClient
  let policy: Policy

  package var swept: SweptApp { SweptApp(app, client: client) }

  package func questions(about check: CheckInProgress) -> [Question] {
    Self.questions(about: check, bundleId: app.bundleId, policy: policy)
  }

  package func ask(
    _ question: Question, after failed: ChannelAnswer?, while isWanted: @escaping @Sendable () -> Bool
  ) async throws(CancellationError) -> ChannelAnswer {
    guard case .transaction(let id) = question.matter else { return ChannelAnswer(.review) }
    if let received = failed?.received {
      var answer = received.answer
      answer.add(try await client.subscriptionStatuses(id, on: received.side))
      return answer
    }
    let found = try await client.transactionInfo(id, first: question.first, while: isWanted)
    var answer = ChannelAnswer(found)
    if case .found(let fact) = found.outcome, fact.leavesStatusOpen(at: policy.asOf) {
      // Only this interface returns a newer period, and the grace period while Apple collects the money.
      answer.add(try await client.subscriptionStatuses(id, on: found.trail.asked.last ?? question.first))
    }
    return answer
  }

  package func isRateLimited(on side: AppleHost) -> Bool { client.isRateLimited(on: side) }

  package func renewCredential() async { await client.renewToken() }

  package func result(of check: CheckInProgress, answers: [ChannelAnswer]) -> CheckResult {
    Self.result(of: check, answers: answers, policy: policy)
  }

  package static func questions(about check: CheckInProgress, bundleId: String, policy: Policy) -> [Question] {
    switch (check.subject.kind, check.judgement) {
    case (.lookup, _):
      let id = check.subject.lookedUp.transactionId
      return [Question(.transaction(id: id), first: Question.side(of: check.row.environment))]
    case (.receipt, .genuine(let proof)):
      // Apple does not answer about another app's purchases, and no money moves in the sandbox.
      guard proof.bundleId == bundleId, proof.environment == .production else { return [] }
      return ids(of: proof, for: check.shop, policy: policy).map {
        Question(.transaction(id: $0), first: .production)
      }
    case (.receipt, .claim(let claim)):
      // The receipt cannot be verified here, but Apple can be asked about the IDs in it.
      guard claim.bundleId == nil || claim.bundleId == bundleId else { return [] }
      return claim.transactionIds.prefix(mostQuestions).map {
        Question(.transaction(id: $0), first: Question.side(of: check.row.environment))
      }
    case (.receipt, .refused), (.receipt, .noRoots), (.receipt, nil): return []
    }
  }

  /// The purchases in a receipt that Apple is asked about: the stated one, those that matter for the receipt's order
  /// whatever their age, and then others within the refund window. In each group the newest come first.
  private static func ids(of proof: GenuineProof, for shop: ProofDescription, policy: Policy) -> [String] {
    if let id = proof.signedTransactionId { return [id] }
    let likely = policy.asOf - policy.refundWindow
    let ranked = proof.facts.compactMap { fact -> (rank: Int, date: Instant, id: String)? in
      let date = fact.purchaseDate ?? policy.asOf
      let isStated = fact.transactionId == shop.statedTransactionId
      let rank = isStated ? 0 : matters(fact, for: shop, policy: policy) ? 1 : 2
      guard rank < 2 || date > likely else { return nil }
      return (rank: rank, date: date, id: fact.transactionId)
    }
    let sorted = ranked.sorted { ($0.rank, $1.date, $0.id) < ($1.rank, $0.date, $1.id) }
    var ids: [String] = []
    var seen: Set<String> = []
    for (rank, _, id) in sorted where rank < 2 || ids.count < mostQuestions {
      if seen.insert(id).inserted { ids.append(id) }
    }
    return ids
  }

  /// True if the order may own the purchase, or if Apple has refunded it. A receipt shows neither Family Sharing nor the
  /// refunded share, nor a later refund.
  private static func matters(_ fact: TransactionFact, for shop: ProofDescription, policy: Policy) -> Bool {
    if case .stated(.some) = fact.revocation { return true }
    guard let created = shop.orderCreatedAt, fact.productId == shop.productId else { return false }
    let dates = [fact.purchaseDate, fact.originalPurchaseDate].compactMap(\.self)
    return dates.isEmpty || dates.contains { ($0 - created).magnitude <= policy.matchWindow }
  }

  /// The result of a check. It is answered only if each of its questions is.
  package static func result(of check: CheckInProgress, answers: [ChannelAnswer], policy: Policy) -> CheckResult {
    guard !answers.isEmpty else { return check.offlineResult }
    var result = conclusion(of: check, answers: answers, policy: policy)
    result.appleStatus = answers.lazy.compactMap(\.appleStatus).last
    var contained: Set<String> = Set(check.genuine?.facts.map(\.transactionId) ?? [])
    for answer in answers {
      result.furtherFacts += answer.furtherFacts
      guard case .genuine(let environment, let bundleId, let facts) = answer.meaning else { continue }
      // An unsigned receipt is assigned to its order only after Apple has confirmed every ID in it.
      if result.isUnproven, result.outcome != .verified {
        result.furtherFacts += facts
        continue
      }
      result.environment = result.environment ?? environment
      result.bundleId = result.bundleId ?? bundleId
      result.facts += facts
      contained.formUnion(facts.map(\.transactionId))
      result.containedIds = facts.reduce(into: result.containedIds) { $0.formUnion($1.ids) }
    }
    result.containedCount = contained.count
    return result
  }

  private static func conclusion(of check: CheckInProgress, answers: [ChannelAnswer], policy: Policy) -> CheckResult {
    if let silence = answers.lazy.compactMap(\.silence).first {
      return check.result(.unanswered, PaymentReason(silence), channel: .serverApi)
    }
    // A refused request proves nothing about a transaction that Apple knows. For an ID that a client made up, Apple may
    // have no better answer.
    if answers.contains(where: \.isFault) {
      return check.result(check.isKnownToApple ? .unanswered : .review, .appleError, channel: .serverApi)
    }
    if answers.contains(where: { $0.meaning == .accountGone }) {
      return check.result(.review, .accountGone, channel: .serverApi)
    }
    if answers.contains(where: { $0.meaning == .unknown }) { return unknown(check, policy: policy) }
    let isClear = answers.allSatisfy { if case .genuine = $0.meaning { true } else { false } }
    guard isClear else { return check.result(.review, .appleError, channel: .serverApi) }
    var result = check.result(.verified, channel: .serverApi)
    result.answeredAt = answers.compactMap(\.statedAt).min()
    return result
  }

  private static func unknown(_ check: CheckInProgress, policy: Policy) -> CheckResult {
    // Apple denies an ID that it has signed or accepted before.
    if check.isKnownToApple {
      var denied = check.result(.review, .contradiction, channel: .serverApi)
      denied.denial = .notFound
      return denied
    }
    // As in the verdict, because a shop may have written the order after its receipt came.
    let claimed = max(check.row.history.dated, check.shop.orderCreatedAt ?? check.row.history.dated)
    let isYoung = policy.asOf - claimed <= policy.notFoundGrace
    return check.result(.notFound, isYoung ? .notFoundYet : .notFound, channel: .serverApi)
  }
}

extension TransactionFact {
  /// True for a subscription period that has ended, or that the family has lost. Another period may give access.
  func leavesStatusOpen(at asOf: Instant) -> Bool {
    guard productType == .autoRenewable, case .stated(let revocation) = revocation, let expiresDate else {
      return false
    }
    let isLost = ownership == .familyShared && revocation?.isFull ?? false
    return isLost || expiresDate <= asOf
  }
}
