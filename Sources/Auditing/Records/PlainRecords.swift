import AuditStore
import Reconciliation
import Streams

// Views of encoded records, so that nine of ten orders are never decoded.

extension OrderGroup {
  /// True if an encoded group is a further row of its ID.
  static func isRepeated(_ content: [UInt8]) throws -> Bool {
    try content.withUnsafeBytes { content in
      var reader = RecordReader(content)
      if try BorrowedOrder?(from: &reader) == nil { _ = try BadOrder(from: &reader) }
      return try reader.flag()
    }
  }
}

/// A view of an encoded proof.
struct WaitingProof {
  private(set) var receipt = BorrowedReceipt.blank
  private var contained = UnsafeRawBufferPointer(start: nil, count: 0)

  /// A view to be read into.
  init() {}

  init(_ record: inout RecordReader) throws(RecordReader.Mismatch) { try read(&record) }

  @inline(__always)
  mutating func read(_ record: inout RecordReader) throws(RecordReader.Mismatch) {
    try receipt.code(with: &record)
    contained = record.rest
    for _ in 0..<(try record.int()) { _ = try Self.transaction(&record) }
  }

  // The fields of a `TransactionKey`.
  @inline(__always)
  private static func transaction(
    _ record: inout RecordReader
  ) throws(RecordReader.Mismatch) -> (environment: AppleEnvironment?, id: BorrowedText) {
    (try record.word(of: Vocabularies.environment), try record.borrowed())
  }

  func forEachContained(_ body: (AppleEnvironment, BorrowedText) throws -> Void) throws {
    var record = RecordReader(contained)
    for _ in 0..<(try record.int()) {
      let transaction = try Self.transaction(&record)
      guard let environment = transaction.environment else { throw RecordReader.Mismatch() }
      try body(environment, transaction.id)
    }
  }

  func containsTransactionID(_ wanted: BorrowedText, in environment: AppleEnvironment) throws -> Bool {
    var isFound = false
    try forEachContained { isFound = isFound || ($0 == environment && $1 == wanted) }
    return isFound
  }

  /// True if the row is valid, and the receipt contains the transaction ID, in any environment.
  func isSound(containing transactionId: BorrowedText) throws -> Bool {
    if receipt.defect != nil { return false }
    var isFound = false
    try forEachContained { isFound = isFound || $1 == transactionId }
    return isFound
  }

  /// True if no answer is missing. For the other outcomes the caller decides whether they could still prove a payment.
  var isAnswered: Bool {
    switch receipt.state.outcome {
    case .verified, .rejected, .notFound: true
    case .pending, .unanswered, .review: false
    }
  }
}

extension BorrowedTransaction {
  /// Writes the bytes of an `OrderTransaction` with one possible owner. False, perhaps after a partial write, if
  /// `Candidates` has to decide. Mutating, because a copy for the coder would cost more than the writing.
  mutating func writeOrderTransaction(
    of order: BorrowedTransactionReference.OrderSide, _ reference: BorrowedTransactionReference,
    matchWindow: Span, to record: inout RecordBytes
  ) -> Bool {
    // Orders of other periods matter for a subscription.
    if expiresDate != nil { return false }
    let source = reference.referenceSource.flatMap { $0.environment == environment ? $0 : nil }
    // The same ID in another environment is another purchase.
    guard reference.isNamed || source != nil else { return false }
    if case .stated(let token?) = appAccountToken {
      // Otherwise other orders with the token may be linked to it.
      guard order.appAccountToken == token, productId == order.productId,
        let sold = originalPurchaseDate ?? purchaseDate,
        (sold - order.createdAt).magnitude <= matchWindow
      else { return false }
    }
    record.put(.transaction, of: OrderTransaction.kinds)
    code(with: &record)
    record.put(true)
    record.put(source != nil)
    if let source {
      record.put(source.kind == .lookup)
      record.put(source.subjectId)
    }
    return true
  }

  /// - Parameter record: an encoded `OrderTransaction`.
  /// - Returns: false if it is not a transaction, other orders could own it, or it has a refund request.
  @inline(__always)
  mutating func read(orderTransaction record: inout RecordReader) throws(RecordReader.Mismatch) -> Bool {
    guard try record.word(of: OrderTransaction.kinds) == .transaction else { return false }
    try code(with: &record)
    guard refundRequest == nil else { return false }
    return try record.flag()
  }

  /// True if this is a restore of the payment that the rules of ownership rank below it, and that differs from it in no
  /// field of the judgement.
  func isPlainRestore(of payment: BorrowedTransaction) -> Bool {
    restoresAnotherID && originalTransactionId == payment.transactionId && payment.transactionId < transactionId
      && environment == payment.environment && productId == payment.productId && bundleId == payment.bundleId
      && originalPurchaseDate == payment.purchaseDate && appAccountToken == payment.appAccountToken
      && revocation == nil && !isContradictory && ownership != .familyShared
  }
}
