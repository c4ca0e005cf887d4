import AppStore
import Foundation
import Reconciliation

/// What a receipt says by itself, without asking anybody.
package enum OfflineJudgement: Hashable, Sendable {
  /// Apple signed it.
  case genuine(GenuineProof)
  /// It proves that it is worth nothing: `signature_invalid`, `malformed` or `xcode`.
  case refused(PaymentReason)
  /// An old transaction receipt: its signature cannot be checked here, so what it names is a claim.
  case claim(transactionId: String)
  /// There are no root certificates to judge it by.
  case noRoots
  /// Signed in a way, or in an environment, that is unknown here.
  case undecided
}

/// A receipt whose signature leads to one of Apple's roots.
package struct GenuineProof: Hashable, Sendable {
  package var environment: AppleEnvironment
  package var bundleId: String?
  /// What Apple signed, one fact a purchase, with the channel `offline`.
  package var facts: [TransactionFact]
  /// The id of a signed transaction; nil for an app receipt, which lists many.
  package var signedTransactionId: String?

  package init(
    environment: AppleEnvironment, bundleId: String?, facts: [TransactionFact], signedTransactionId: String? = nil
  ) {
    self.environment = environment
    self.bundleId = bundleId
    self.facts = facts
    self.signedTransactionId = signedTransactionId
  }
}

/// Judges receipts without asking anybody. Works while Apple is down.
package struct OfflineJudge: Sendable {
  /// Whether any signature can be checked.
  package let hasRoots: Bool
  /// What a payload is, and what it says by itself.
  package let judge: @Sendable (_ payload: String) -> (kind: ReceiptKind, judgement: OfflineJudgement)

  package init(
    hasRoots: Bool, judge: @escaping @Sendable (String) -> (kind: ReceiptKind, judgement: OfflineJudgement)
  ) {
    self.hasRoots = hasRoots
    self.judge = judge
  }

  /// Judges against Apple's root certificates.
  ///
  /// - Parameter roots: nil where none are installed: nothing signed can be judged then.
  package init(roots: TrustedRoots?) {
    let verifiers = Verifiers(
      transactions: roots.map { JWSVerifier(roots: $0) }, receipts: roots.map { AppReceiptVerifier(roots: $0) })
    self.init(hasRoots: roots != nil) { verifiers.judge($0) }
  }
}

private struct Verifiers: Sendable {
  let transactions: JWSVerifier?
  let receipts: AppReceiptVerifier?

  func judge(_ payload: String) -> (kind: ReceiptKind, judgement: OfflineJudgement) {
    let kind = ReceiptKind.detect(payload: payload)
    let judgement: OfflineJudgement =
      switch kind {
      case .malformed: .refused(.malformed)
      case .transaction: judge(transactionReceipt: payload)
      // A line break at the end is the client's, not the signer's.
      case .signed: judge(signed: payload.trimmingCharacters(in: .whitespacesAndNewlines))
      case .app: judge(appReceipt: payload)
      }
    return (kind, judgement)
  }

  private func judge(signed jws: String) -> OfflineJudgement {
    guard let transactions else { return .noRoots }
    switch transactions.verifyTransaction(jws, channel: .offline) {
    case .success(let transaction):
      let fact = transaction.fact
      return .genuine(
        GenuineProof(
          environment: fact.environment, bundleId: fact.bundleId, facts: [fact],
          signedTransactionId: fact.transactionId))
    case .failure(let refusal): return OfflineJudgement(refusal)
    }
  }

  private func judge(appReceipt payload: String) -> OfflineJudgement {
    guard let receipts else { return .noRoots }
    switch receipts.verify(base64: payload) {
    case .success(let receipt):
      return .genuine(
        GenuineProof(environment: receipt.environment, bundleId: receipt.bundleId, facts: receipt.transactions))
    case .failure(let refusal): return OfflineJudgement(refusal)
    }
  }

  private func judge(transactionReceipt payload: String) -> OfflineJudgement {
    switch OldTransactionReceipt.parse(base64: payload) {
    case .success(let receipt): .claim(transactionId: receipt.transactionId)
    case .failure(let refusal): OfflineJudgement(refusal)
    }
  }
}

extension OfflineJudgement {
  fileprivate init(_ refusal: SignedDataRefusal) {
    switch refusal.meaning {
    case .signatureInvalid: self = .refused(.signatureInvalid)
    case .malformed: self = .refused(.malformed)
    case .xcode: self = .refused(.xcode)
    case .noRoots: self = .noRoots
    case .undecided: self = .undecided
    }
  }
}
