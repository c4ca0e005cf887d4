import AuditStore
import Reconciliation
import Streams

// The fields of records on disk, in the order in which they are written and read.

extension TransactionKey: FieldCoded {
  public static var blank: TransactionKey { TransactionKey(environment: .production, transactionId: .blank) }

  public mutating func code<Coder: FieldCoder & ~Copyable>(with coder: inout Coder) throws(Coder.Failure) {
    try coder.code(word: &environment, of: Vocabularies.environment)
    try coder.code(&transactionId)
  }
}

extension CheckSubject: FieldCoded {
  package static var blank: CheckSubject { CheckSubject(kind: .receipt, id: .blank) }

  package mutating func code<Coder: FieldCoder & ~Copyable>(with coder: inout Coder) throws(Coder.Failure) {
    try kind.code(with: &coder)
    try coder.code(&id)
  }
}

extension CheckSubject.Kind {
  mutating func code<Coder: FieldCoder & ~Copyable>(with coder: inout Coder) throws(Coder.Failure) {
    var isLookup = self == .lookup
    try coder.code(&isLookup)
    self = isLookup ? .lookup : .receipt
  }
}

extension Proof: FieldCoded {
  static var blank: Proof { Proof(receipt: .blank, contained: []) }

  mutating func code<Coder: FieldCoder & ~Copyable>(with coder: inout Coder) throws(Coder.Failure) {
    try coder.code(&receipt)
    try coder.code(&contained)
  }
}

extension LookedUp: FieldCoded {
  static var blank: LookedUp { LookedUp(subjectId: .blank, state: .blank, contained: []) }

  mutating func code<Coder: FieldCoder & ~Copyable>(with coder: inout Coder) throws(Coder.Failure) {
    try coder.code(&subjectId)
    try coder.code(&state)
    try coder.code(&contained)
  }
}

extension OrderGroup: FieldCoded {
  static var blank: OrderGroup { OrderGroup(row: .blank) }

  mutating func code<Coder: FieldCoder & ~Copyable>(with coder: inout Coder) throws(Coder.Failure) {
    try coder.code(&row)
    try coder.code(&isRepeated)
    try coder.code(&proofs)
    try coder.code(&lookup)
  }
}

extension TransactionReferenceFields: FieldCoded {
  static var blank: TransactionReferenceFields { TransactionReferenceFields(transactionId: .blank) }

  /// Leaves out the transaction ID, which is the sorting key.
  mutating func code<Coder: FieldCoder & ~Copyable>(with coder: inout Coder) throws(Coder.Failure) {
    try coder.code(&order)
    try coder.code(&isNamed)
    try coder.code(&referenceSource)
  }

  init(_ transactionId: ID, from record: inout RecordReader) throws(RecordReader.Mismatch) {
    try self.init(from: &record)
    self.transactionId = transactionId
  }
}

extension TransactionReferenceFields.OrderSide: FieldCoded {
  static var blank: Self {
    Self(orderId: .blank, userId: .blank, productId: .blank, createdAt: .blank, named: nil, isBad: false)
  }

  mutating func code<Coder: FieldCoder & ~Copyable>(with coder: inout Coder) throws(Coder.Failure) {
    try coder.code(&orderId)
    try coder.code(&userId)
    try coder.code(&productId)
    try coder.code(&createdAt)
    try coder.code(&named)
    try coder.code(&appAccountToken)
    try coder.code(&isBad)
  }
}

extension TransactionReferenceFields.ReferenceSource: FieldCoded {
  static var blank: Self {
    Self(
      environment: .production, kind: .receipt, subjectId: .blank, userId: nil, receivedAt: .blank,
      isAboutSinglePurchase: false, isGenuine: false)
  }

  mutating func code<Coder: FieldCoder & ~Copyable>(with coder: inout Coder) throws(Coder.Failure) {
    try coder.code(word: &environment, of: Vocabularies.environment)
    try kind.code(with: &coder)
    try coder.code(&subjectId)
    try coder.code(&userId)
    try coder.code(&receivedAt)
    try coder.code(&isAboutSinglePurchase)
    try coder.code(&isGenuine)
    try coder.code(&awaitsDetails)
  }
}
