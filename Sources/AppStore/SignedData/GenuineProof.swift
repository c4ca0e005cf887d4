import Reconciliation

/// The verified content of a proof.
package struct GenuineProof: Hashable, Sendable {
  /// Nil if the document names none, which only documents without purchases may do.
  package var environment: AppleEnvironment?
  package var bundleId: String?
  /// One fact per signed purchase; empty for documents without one.
  package var facts: [TransactionFact]
  /// The ID of the one purchase that was signed; nil for an app receipt, which lists many.
  package var signedTransactionId: String?
  /// Apple's creation date of the app receipt; the same in every look-up of it.
  package var creationDate: Instant?
}

extension GenuineProof {
  init(_ fact: TransactionFact) {
    self.init(
      environment: fact.environment, bundleId: fact.bundleId, facts: [fact], signedTransactionId: fact.transactionId)
  }
}
