import Reconciliation

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

/// Verifies the transactions in answers of the App Store Server API about one app.
struct AnswerVerifier: Sendable {
  var verifier: JWSVerifier
  var bundleId: String
  var appAppleId: Int64?

  /// - Parameter id: the requested transaction ID; nil if any of the customer's is accepted.
  func verify(_ jws: String, host: AppleHost, id: String? = nil) -> Result<TransactionFact, AnswerRefusal> {
    verifier.verifyTransaction(jws, channel: .serverApi).mapError(AnswerRefusal.signature)
      .flatMap { check($0, host: host, id: id) }
  }

  func check(_ fact: TransactionFact, host: AppleHost, id: String? = nil) -> Result<TransactionFact, AnswerRefusal> {
    guard fact.bundleId == bundleId else { return .failure(.otherBundle) }
    guard fact.environment == host.environment else { return .failure(.otherEnvironment(fact.environment)) }
    guard id == nil || fact.transactionId == id else { return .failure(.otherTransaction) }
    return .success(fact)
  }
}
