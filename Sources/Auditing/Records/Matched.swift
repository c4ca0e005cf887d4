import AuditStore
import Reconciliation
import Streams

/// The result of matching, for an order with contested claims.
struct Matched {
  var orderId: Identifier
  /// Empty for an order that owns a payment.
  var contested: [TransactionRecord]
  var claims: OrderClaims
  var newestProofs: [TransactionKey: CheckSubject] = [:]
}

extension Matched: FieldCoded {
  static var blank: Matched { Matched(orderId: .blank, contested: [], claims: .blank) }

  mutating func code<Coder: FieldCoder & ~Copyable>(with coder: inout Coder) throws(Coder.Failure) {
    try coder.code(&orderId)
    try coder.code(&contested)
    try coder.code(&claims)
    var proofs = newestProofs.sorted { $0.key < $1.key }.map { NewestProof(key: $0.key, subject: $0.value) }
    try coder.code(&proofs)
    if Coder.isReading { for proof in proofs { newestProofs[proof.key] = proof.subject } }
  }
}

/// The newest proof that contains a transaction.
private struct NewestProof: FieldCoded {
  var key: TransactionKey
  var subject: CheckSubject

  static var blank: NewestProof { NewestProof(key: .blank, subject: .blank) }

  mutating func code<Coder: FieldCoder & ~Copyable>(with coder: inout Coder) throws(Coder.Failure) {
    try coder.code(&key)
    try coder.code(&subject)
  }
}
