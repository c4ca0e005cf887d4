import Reconciliation

/// A verified transaction from an answer of the App Store Server API.
package struct AppleTransaction: Hashable, Sendable {
  /// The evidence. In subscription answers it also contains the end of the grace period from the renewal information.
  package var fact: TransactionFact
  package let signed: SignedTransaction
  /// The signed data, unchanged, so that fields and values unknown today are kept.
  package let jws: String

  init(signed: SignedTransaction, jws: String) {
    fact = signed.fact
    (self.signed, self.jws) = (signed, jws)
  }
}

/// A reason why a transaction in an answer is rejected. It proves nothing about the transaction.
package enum AnswerRefusal: Error, Hashable, Sendable, CustomStringConvertible {
  case signature(SignedDataRefusal)
  case otherBundle
  /// The app's Apple ID in the answer differs from the configured one, or is missing.
  case otherApp(Int64?)
  case otherEnvironment(AppleEnvironment)
  case otherTransaction

  package var description: String {
    switch self {
    case .signature(let refusal): refusal.description
    case .otherBundle: "it is about another app"
    case .otherApp(let number):
      "it is about the app with the Apple ID \(number.map(String.init) ?? "(none)"); compare appAppleId in the configuration"
    case .otherEnvironment(let environment): "it is from the environment \(environment.rawValue)"
    case .otherTransaction: "it is about another transaction"
    }
  }
}

struct AnswerVerifier: Sendable {
  var verifier: JWSVerifier
  var bundleId: String
  var appAppleId: Int64?

  /// - Parameter id: the requested transaction ID; nil if any of the customer's is accepted.
  func verify(
    _ jws: String, host: AppleHost, id: String? = nil
  ) -> Result<AppleTransaction, AnswerRefusal> {
    verifier.verifyTransaction(jws, channel: .serverApi).mapError(AnswerRefusal.signature)
      .flatMap { check($0, host: host, id: id) }
      .map { AppleTransaction(signed: $0, jws: jws) }
  }

  func check(
    _ signed: SignedTransaction, host: AppleHost, id: String? = nil
  ) -> Result<SignedTransaction, AnswerRefusal> {
    let fact = signed.fact
    guard fact.bundleId == bundleId else { return .failure(.otherBundle) }
    guard fact.environment == host.environment else { return .failure(.otherEnvironment(fact.environment)) }
    guard id == nil || fact.transactionId == id else { return .failure(.otherTransaction) }
    return .success(signed)
  }
}
