import Reconciliation

/// A transaction out of an answer of Apple's: verified, and about what was asked.
package struct AppleTransaction: Hashable, Sendable {
  /// What it says, as evidence. In answers about subscriptions it has the end of the grace period besides, which comes
  /// from the renewal information.
  package var fact: TransactionFact
  /// The whole payload as far as it is understood, Apple's own words included.
  package let signed: SignedTransaction
  /// What Apple signed, unchanged: fields and words that are unknown today are in it.
  package let jws: String

  init(signed: SignedTransaction, jws: String) {
    fact = signed.fact
    self.signed = signed
    self.jws = jws
  }
}

/// Why a transaction in an answer of Apple's is not believed. It proves nothing about the transaction.
package enum AnswerRefusal: Error, Hashable, Sendable, CustomStringConvertible {
  /// It lacks a signature of Apple's that holds.
  case signature(SignedDataRefusal)
  /// It is of another app than the one that was asked about.
  case otherBundle
  /// It carries another number of the app, or none, than we know the app by.
  case otherApp(Int64?)
  /// It is of the other environment.
  case otherEnvironment(AppleEnvironment)
  /// It is another transaction than the one that was asked about.
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

/// Decides which transactions of an answer are believed.
struct AnswerVerifier: Sendable {
  var verifier: JWSVerifier
  var bundleId: String
  /// nil: not compared.
  var appAppleId: Int64?

  /// - Parameter id: the transaction that was asked for; nil where any of the customer's will do.
  func verify(
    _ jws: String, host: AppleHost, id: String? = nil
  ) -> Result<AppleTransaction, AnswerRefusal> {
    verifier.verifyTransaction(jws, channel: .serverApi).mapError(AnswerRefusal.signature)
      .flatMap { check($0, host: host, id: id) }
      .map { AppleTransaction(signed: $0, jws: jws) }
  }

  /// Judges a transaction whose signature holds.
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
