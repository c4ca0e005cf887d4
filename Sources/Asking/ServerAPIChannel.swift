import AppStore
import Reconciliation
import Run

/// The App Store Server API for one app: a question is a transaction id. What a receipt is worth its signature says;
/// Apple is asked what became of the purchases in it.
package struct ServerAPIChannel: AppleChannel {
  /// How many purchases of one app receipt are asked about at most, the newest first.
  package static let mostQuestions = 100

  /// What decides which ids are asked about, and when again.
  package struct Policy: Sendable {
    package var asOf: Instant
    /// For how long a refund is likely.
    package var refundWindow: Span
    /// How long Apple may not know a transaction.
    package var notFoundGrace: Span

    package init(asOf: Instant, refundWindow: Span, notFoundGrace: Span) {
      self.asOf = asOf
      self.refundWindow = refundWindow
      self.notFoundGrace = notFoundGrace
    }
  }

  package let app: Settings.App
  package let client: ServerAPIClient
  private let policy: Policy

  package init(app: Settings.App, client: ServerAPIClient, policy: Policy) {
    self.app = app
    self.client = client
    self.policy = policy
  }

  /// The same app for the sweep: one client holds its token and keeps its limits.
  package var swept: SweptApp { SweptApp(app, client: client) }

  package func questions(about check: JudgedCheck) -> [Question] {
    Self.questions(about: check, bundleId: app.bundleId, policy: policy)
  }

  package func ask(
    _ question: Question, while isWanted: @escaping @Sendable () -> Bool
  ) async throws(CancellationError) -> ChannelAnswer {
    guard case .transaction(let id) = question.matter else { return ChannelAnswer(.review) }
    let found = try await client.transactionInfo(id, first: question.first, while: isWanted)
    var answer = ChannelAnswer(found)
    if case .found(let transaction) = found.outcome, transaction.fact.hasLapsed(by: policy.asOf) {
      // Only there Apple tells of a newer period, and of the grace that it gives while it collects the money.
      answer.add(try await client.subscriptionStatuses(id, on: found.trail.asked.last ?? question.first))
    }
    return answer
  }

  package func isHeldUp(on side: AppleHost) -> Bool { client.isHeldUp(on: side) }

  package func renewCredential() async { await client.renewToken() }

  package func result(of check: JudgedCheck, answers: [ChannelAnswer]) -> CheckResult {
    Self.result(of: check, answers: answers, policy: policy)
  }

  /// What the app is asked about a check.
  package static func questions(about check: JudgedCheck, bundleId: String, policy: Policy) -> [Question] {
    switch (check.due.matter, check.judgement) {
    case (.lookup(let id), _):
      return [Question(.transaction(id: id), first: Question.side(of: check.due.environment))]
    case (.receipt, .genuine(let proof)):
      // Apple tells us nothing about another app's purchases, and nothing about the sandbox's would be money.
      guard proof.bundleId == bundleId, proof.environment == .production else { return [] }
      return ids(of: proof, named: check.due.namedTransactionId, policy: policy).map {
        Question(.transaction(id: $0), first: .production)
      }
    case (.receipt, .claim(let claim)):
      // Nobody here can judge it; about what it names Apple can be asked all the same.
      guard claim.bundleId == nil || claim.bundleId == bundleId else { return [] }
      return claim.transactionIds.prefix(mostQuestions).map {
        Question(.transaction(id: $0), first: Question.side(of: check.due.environment))
      }
    case (.receipt, .refused), (.receipt, .noRoots), (.receipt, nil): return []
    }
  }

  /// The purchases in a genuine receipt that an order could claim or Apple could have refunded: the named one, then the
  /// newest of those within the refund window.
  private static func ids(of proof: GenuineProof, named: String?, policy: Policy) -> [String] {
    if let id = proof.signedTransactionId { return [id] }
    let start = policy.asOf - policy.refundWindow
    let likely = proof.facts.filter { $0.transactionId == named || $0.purchaseDate.map { $0 > start } ?? true }
    let sorted = likely.sorted { left, right in
      if (left.transactionId == named) != (right.transactionId == named) { return left.transactionId == named }
      let (leftDate, rightDate) = (left.purchaseDate ?? policy.asOf, right.purchaseDate ?? policy.asOf)
      return leftDate == rightDate ? left.transactionId < right.transactionId : leftDate > rightDate
    }
    var seen: Set<String> = []
    return Array(sorted.map(\.transactionId).filter { seen.insert($0).inserted }.prefix(mostQuestions))
  }

  /// What Apple's answers mean for a check: answered is what has every one of its questions answered.
  package static func result(of check: JudgedCheck, answers: [ChannelAnswer], policy: Policy) -> CheckResult {
    guard !answers.isEmpty else { return check.offlineResult }
    var result = conclusion(of: check, answers: answers, policy: policy)
    result.appleStatus = answers.lazy.compactMap(\.appleStatus).last
    var brought: Set<String> = Set(check.genuine?.facts.map(\.transactionId) ?? [])
    for answer in answers {
      result.told += answer.told
      guard case .genuine(let environment, let bundleId, let facts) = answer.meaning else { continue }
      // Until all that it names is known to be right, it is not known whose it is.
      if result.isUnproven, result.outcome != .verified {
        result.told += facts
        continue
      }
      result.environment = result.environment ?? environment
      result.bundleId = result.bundleId ?? bundleId
      result.facts += facts
      brought.formUnion(facts.map(\.transactionId))
      result.broughtIds = facts.reduce(into: result.broughtIds) { $0.formUnion($1.ids) }
    }
    result.broughtCount = brought.count
    return result
  }

  private static func conclusion(of check: JudgedCheck, answers: [ChannelAnswer], policy: Policy) -> CheckResult {
    // An answer in parts is as good as its worst part.
    if let silence = answers.lazy.compactMap(\.silence).first {
      return check.result(.unanswered, PaymentReason(silence), channel: .serverApi)
    }
    // Refused for what is ours, though other questions were not: of what is known to Apple nothing is said; of an id that a
    // client made up it may be all that Apple has to say.
    if answers.contains(where: \.isFault) {
      return check.result(check.isKnownToApple ? .unanswered : .review, .appleError, channel: .serverApi)
    }
    if answers.contains(where: { $0.meaning == .accountGone }) {
      return check.result(.review, .accountGone, channel: .serverApi)
    }
    if answers.contains(where: { $0.meaning == .unknown }) { return unknown(check, policy: policy) }
    let isClear = answers.allSatisfy { answer in
      if case .genuine = answer.meaning { return true }
      return false
    }
    guard isClear else { return check.result(.review, .appleError, channel: .serverApi) }
    var result = check.result(.verified, channel: .serverApi)
    result.answeredAt = answers.compactMap(\.toldAt).min()
    return result
  }

  /// Apple does not know the id in production or sandbox.
  private static func unknown(_ check: JudgedCheck, policy: Policy) -> CheckResult {
    // Apple signed it, and says that it does not know it.
    if check.isKnownToApple {
      var denied = check.result(.review, .contradiction, channel: .serverApi)
      denied.denial = .notFound
      return denied
    }
    // As the verdict counts: a shop may have written the order after its receipt came.
    let claimed = max(check.due.receivedAt, check.due.context.orderCreatedAt ?? check.due.receivedAt)
    let isYoung = policy.asOf - claimed <= policy.notFoundGrace
    return check.result(.notFound, isYoung ? .notFoundYet : .notFound, channel: .serverApi)
  }
}

extension TransactionFact {
  /// Whether it is a period of a subscription that has ended and was not taken back whole.
  fileprivate func hasLapsed(by asOf: Instant) -> Bool {
    guard productType == .autoRenewable, case .says(let revocation) = revocation, !(revocation?.isFull ?? false),
      let expiresDate
    else { return false }
    return expiresDate <= asOf
  }
}
