import AppStore
import Reconciliation
import Run

/// verifyReceipt for one app: a question is a payload. It knows nothing of signed transactions, for which their signature
/// has to do.
package struct VerifyReceiptChannel: AppleChannel {
  /// After so many failures in a row, which the retry schedule spreads over a day, Apple's 21002 about a receipt that
  /// Apple signed is for a person to look at.
  package static let patience = 4

  package let app: Settings.App
  private let client: VerifyReceiptClient
  private let sharedSecret: Secret?

  package init(app: Settings.App, client: VerifyReceiptClient, sharedSecret: Secret?) {
    self.app = app
    self.client = client
    self.sharedSecret = sharedSecret
  }

  package func questions(about check: JudgedCheck) -> [Question] {
    guard case .receipt(let payload) = check.due.matter else { return [] }
    switch check.kind {
    case .app, .transaction:
      // Apple signed whose it is, and our secret is not that developer's; of what Xcode signed Apple knows nothing.
      if let bundleId = check.genuine?.bundleId, bundleId != app.bundleId { return [] }
      if case .refused(.xcode, _) = check.judgement { return [] }
      // Whatever else the local check says, Apple can say more: renewals since, and refunds of what is no consumable.
      return [Question(.receipt(payload: payload), first: Question.side(of: check.due.environment))]
    case .signed, .malformed, nil: return []
    }
  }

  package func ask(
    _ question: Question, while isWanted: @escaping @Sendable () -> Bool
  ) async throws(CancellationError) -> ChannelAnswer {
    guard case .receipt(let payload) = question.matter else { return ChannelAnswer(.review) }
    return ChannelAnswer(
      try await client.verify(payload: payload, sharedSecret: sharedSecret, first: question.first, while: isWanted))
  }

  package func isHeldUp(on side: AppleHost) -> Bool { client.isHeldUp(on: side) }

  /// The secret is what the configuration says it is.
  package func renewCredential() async {}

  package func result(of check: JudgedCheck, answers: [ChannelAnswer]) -> CheckResult {
    guard let answer = answers.first else { return check.offlineResult }
    var result = result(of: check, answer: answer)
    result.appleStatus = answer.appleStatus
    return result
  }

  private func result(of check: JudgedCheck, answer: ChannelAnswer) -> CheckResult {
    switch answer.meaning {
    case .genuine(let environment, let bundleId, let facts):
      // The answer to another receipt, from a cache for instance, is none to this one.
      let contradictions = answer.receipt.map { receipt in
        receipt.contradictions + check.known.flatMap(receipt.contradictions(with:))
      }
      if let contradictions, !contradictions.isEmpty {
        var contradicted = check.result(.review, .contradiction, channel: .verifyReceipt)
        // Of what says itself which app it is from, it is the answer that is another one's.
        if check.genuine == nil, contradictions.contains(.bundle) { contradicted.denial = .wrongBundle }
        return contradicted
      }
      var result = check.result(.verified, channel: .verifyReceipt)
      result.environment = environment
      result.bundleId = bundleId
      result.facts += facts
      result.broughtCount = max(result.broughtCount, facts.count)
      result.broughtIds = facts.reduce(into: result.broughtIds) { $0.formUnion($1.ids) }
      if check.kind == .transaction {
        result.signedTransactionId = facts.first?.transactionId
        result.provenProductId = facts.first?.productId
      }
      return result
    case .forged:
      // Apple says that what it has signed, or accepted before, is none: a wrong shared secret has that effect, too.
      guard check.isKnownToApple else { return check.result(.rejected, .signatureInvalid, channel: .verifyReceipt) }
      var denied = check.result(.review, .contradiction, channel: .verifyReceipt)
      denied.denial = .signatureInvalid
      return denied
    case .accountGone: return check.result(.review, .accountGone, channel: .verifyReceipt)
    case .silent(let silence):
      let isHopeless = answer.isMadeNothingOf && check.due.attempts >= Self.patience
      if isHopeless, case .refused(.signatureInvalid, _) = check.judgement {
        return check.result(.rejected, .signatureInvalid, channel: .verifyReceipt)
      }
      let isForAPerson = isHopeless && check.genuine != nil
      return check.result(isForAPerson ? .review : .unanswered, PaymentReason(silence), channel: .verifyReceipt)
    // Refused for what is ours nothing is said of a proof that is known for one; of others it may be all that Apple has to say.
    case .fault where check.isKnownToApple: return check.result(.unanswered, .appleError, channel: .verifyReceipt)
    case .review, .unknown, .fault: return check.result(.review, .appleError, channel: .verifyReceipt)
    }
  }
}

extension JudgedCheck {
  /// Whether it says itself, or Apple has said when it accepted it, that it is of another app.
  func isForeign(to bundleId: String) -> Bool {
    known.contains { content in content.bundleId.map { $0 != bundleId } ?? false }
  }
}
