import AppStore
import Reconciliation
import Run
import Settings

/// verifyReceipt for one app, where a question is a payload. It does not judge signed transactions.
package struct VerifyReceiptChannel: AppleChannel {
  /// After so many failures in a row (about a day), 21002 about a signed receipt becomes a review.
  package static let retryLimit = 4

  package let app: Settings.App
  let client: VerifyReceiptClient
  let sharedSecret: Secret?

  package func questions(about check: CheckInProgress) -> [Question] {
    guard let payload = check.payload else { return [] }
    switch check.kind {
    case .app, .transaction:
      // Our shared secret is not that of another app's developer, and Apple does not know receipts signed by Xcode.
      if let bundleId = check.genuine?.bundleId, bundleId != app.bundleId { return [] }
      if case .refused(.xcode, _) = check.judgement { return [] }
      // Apple can add later renewals, and refunds of everything but consumables.
      return [Question(.receipt(payload: payload), first: Question.side(of: check.row.environment))]
    case .signed, .malformed, nil: return []
    }
  }

  package func ask(
    _ question: Question, after failed: ChannelAnswer?, while isWanted: @escaping @Sendable () -> Bool
  ) async throws(CancellationError) -> ChannelAnswer {
    guard case .receipt(let payload) = question.matter else { return ChannelAnswer(.review) }
    return ChannelAnswer(
      try await client.verify(payload: payload, sharedSecret: sharedSecret, first: question.first, while: isWanted))
  }

  package func isRateLimited(on side: AppleHost) -> Bool { client.isRateLimited(on: side) }

  /// The shared secret comes from the configuration and cannot be renewed.
  package func renewCredential() async {}

  package func result(of check: CheckInProgress, answers: [ChannelAnswer]) -> CheckResult {
    guard let answer = answers.first else { return check.offlineResult }
    var result = result(of: check, answer: answer)
    result.appleStatus = answer.appleStatus
    return result
  }

  private func result(of check: CheckInProgress, answer: ChannelAnswer) -> CheckResult {
    switch answer.meaning {
    case .genuine(let environment, let bundleId, let facts):
      // An answer that contradicts the receipt belongs to another receipt, from a cache for instance.
      let contradictions = answer.receipt.map { receipt in
        receipt.contradictions + check.known.flatMap(receipt.contradictions(with:))
      }
      if let contradictions, !contradictions.isEmpty {
        var contradicted = check.result(.review, .contradiction, channel: .verifyReceipt)
        // If the receipt's signature states the app, the answer is the wrong one.
        if check.genuine == nil, contradictions.contains(.bundle) { contradicted.denial = .wrongBundle }
        return contradicted
      }
      var result = check.result(.verified, channel: .verifyReceipt)
      result.environment = environment
      result.bundleId = bundleId
      result.facts += facts
      result.containedCount = max(result.containedCount, facts.count)
      result.containedIds = facts.reduce(into: result.containedIds) { $0.formUnion($1.ids) }
      if check.kind == .transaction {
        result.signedTransactionId = facts.first?.transactionId
        result.provenProductId = facts.first?.productId
      }
      return result
    case .forged:
      // Apple rejects a receipt that it signed or accepted before. A wrong shared secret has that effect, too.
      guard check.isKnownToApple else { return check.result(.rejected, .signatureInvalid, channel: .verifyReceipt) }
      var denied = check.result(.review, .contradiction, channel: .verifyReceipt)
      denied.denial = .signatureInvalid
      return denied
    case .accountGone: return check.result(.review, .accountGone, channel: .verifyReceipt)
    case .silent(let silence):
      let isRetryExhausted = answer.isUnreadableReceiptStatus && check.row.history.attempts >= Self.retryLimit
      if isRetryExhausted, case .refused(.signatureInvalid, _) = check.judgement {
        return check.result(.rejected, .signatureInvalid, channel: .verifyReceipt)
      }
      let needsReview = isRetryExhausted && check.genuine != nil
      return check.result(needsReview ? .review : .unanswered, PaymentReason(silence), channel: .verifyReceipt)
    // A refused request proves nothing about a proof that Apple knows. For others, Apple may have no better answer.
    case .fault where check.isKnownToApple: return check.result(.unanswered, .appleError, channel: .verifyReceipt)
    case .review, .unknown, .fault: return check.result(.review, .appleError, channel: .verifyReceipt)
    }
  }
}

extension CheckInProgress {
  /// True if the receipt itself, or Apple's earlier acceptance, states another app.
  func statesOtherApp(to bundleId: String) -> Bool {
    known.contains { content in content.bundleId.map { $0 != bundleId } ?? false }
  }
}
