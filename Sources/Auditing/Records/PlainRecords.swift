import AuditStore
import Reconciliation
import Streams

// Views of encoded records, so that nine of ten orders are never decoded. The formats are those of `GroupFormats` and
// `RecordFormats`.

extension BorrowedOrder {
  /// Same format as a valid `OrderRow`.
  func write(to record: inout RecordBytes) {
    record.put(true)
    record.put(orderId)
    record.put(userId)
    record.put(bundleId)
    record.put(productId)
    record.put(Int64(quantity))
    record.put(Optional(amount))
    record.put(status.rawValue)
    record.put(transactionId)
    record.put(appAccountToken)
    record.put(createdAt.microseconds)
    record.put(verifiedAt)
    record.put(isChangedAfterAsOf)
    record.put(refundBookedBy)
  }

  @inline(__always)
  init?(_ record: inout RecordReader) throws(RecordReader.Mismatch) {
    guard try record.flag() else { return nil }
    let (orderId, userId) = (try record.borrowed(), try record.borrowed())
    let (bundleId, productId) = (try record.optionalBorrowed(), try record.borrowed())
    let quantity = Int32(clamping: try record.int())
    guard let amount = try record.optionalMoney(),
      let status = Vocabularies.orderStatus.word(try record.borrowed())
    else { throw RecordReader.Mismatch() }
    self.init(
      orderId: orderId, userId: userId, bundleId: bundleId, productId: productId, quantity: quantity, amount: amount,
      status: status, transactionId: try record.optionalBorrowed(), appAccountToken: try record.optionalBorrowed(),
      createdAt: Instant(microseconds: try record.int()), verifiedAt: try record.optionalInstant())
    isChangedAfterAsOf = try record.flag()
    refundBookedBy = try record.optionalInstant()
  }
}

extension OrderGroup {
  /// True if an encoded group is a further row of its ID.
  static func isRepeated(_ content: [UInt8]) throws -> Bool {
    try content.withUnsafeBytes { content in
      var reader = RecordReader(content)
      if try BorrowedOrder(&reader) == nil {
        reader = RecordReader(content)
        _ = try OrderRow(from: &reader)
      }
      return try reader.flag()
    }
  }
}

extension BorrowedOrder {
  /// Same format as the order in `TransactionReference.write`.
  func writeSide(to record: inout RecordBytes) {
    record.put(true)
    record.put(orderId)
    record.put(userId)
    record.put(productId)
    record.put(createdAt.microseconds)
    record.put(transactionId)
    record.put(appAccountToken)
    record.put(false)
  }
}

extension BorrowedDelivery {
  /// Same format as a `Delivery` without a defect.
  func write(to record: inout RecordBytes) {
    record.put(deliveryId)
    record.put(orderId)
    record.put(userId)
    record.put(productId)
    record.put(Optional(Int64(quantity)))
    record.put(deliveredAt.microseconds)
    record.put(revokedAt)
    record.put(false)
  }
}

extension BorrowedReceipt {
  /// Same format as `Receipt`.
  func write(to record: inout RecordBytes) {
    record.put(receiptId)
    record.put(orderId)
    record.put(userId)
    record.put(claimedEnvironment)
    record.put(Optional(receivedAt))
    record.put(false)
    record.put(CheckOutcome.verified, of: Vocabularies.outcome)
    record.put(state.reason, of: Vocabularies.reason)
    record.put(state.kind, of: Vocabularies.receiptKind)
    record.put(state.channel, of: Vocabularies.channel)
    record.put(state.environment, of: Vocabularies.environment)
    record.put(state.bundleId)
    record.put(state.appleStatus)
    record.put(Int64(state.attempts))
    record.put(state.lastAttempt)
    record.put(state.due?.from)
    record.put(state.due?.until)
    record.put(state.due.map { Int32($0.rank.rawValue) })
    record.put(state.unansweredSince)
    record.put(state.answeredAt)
    record.put(state.signedTransactionId)
    record.put(Int64(state.containedCount))
    record.put(false)
    record.put(String?.none)
  }

  init(_ record: inout RecordReader) throws(RecordReader.Mismatch) {
    let (receiptId, orderId) = (try record.borrowed(), try record.optionalBorrowed())
    let (userId, claimedEnvironment) = (try record.optionalBorrowed(), try record.optionalBorrowed())
    guard let receivedAt = try record.optionalInstant(), try !record.flag(),
      try record.word(of: Vocabularies.outcome) == .verified
    else { throw RecordReader.Mismatch() }
    var state = State()
    state.reason = try record.word(of: Vocabularies.reason)
    state.kind = try record.word(of: Vocabularies.receiptKind)
    state.channel = try record.word(of: Vocabularies.channel)
    state.environment = try record.word(of: Vocabularies.environment)
    state.bundleId = try record.optionalBorrowed()
    state.appleStatus = try record.optionalInt32()
    state.attempts = Int32(clamping: try record.int())
    state.lastAttempt = try record.optionalInstant()
    state.due = try Dueness(from: &record)
    state.unansweredSince = try record.optionalInstant()
    state.answeredAt = try record.optionalInstant()
    state.signedTransactionId = try record.optionalBorrowed()
    state.containedCount = Int32(clamping: try record.int())
    if try record.flag() { throw RecordReader.Mismatch() }
    _ = try record.optionalBorrowed()
    self.init(
      receiptId: receiptId, orderId: orderId, userId: userId, claimedEnvironment: claimedEnvironment,
      receivedAt: receivedAt, state: state)
  }
}

/// A view of an encoded proof.
struct WaitingProof {
  let receiptId: BorrowedText
  let userId: BorrowedText?
  let receivedAt: Instant
  let proof: BorrowedProof
  let kind: ReceiptKind?
  private let contained: UnsafeRawBufferPointer

  @inline(__always)
  init(_ record: inout RecordReader) throws(RecordReader.Mismatch) {
    receiptId = try record.borrowed()
    _ = try record.optionalBorrowed()
    userId = try record.optionalBorrowed()
    let claimedEnvironment = try record.optionalBorrowed()
    receivedAt = try record.optionalInstant() ?? Instant(microseconds: 0)
    let hasDefect = try record.optionalBorrowed() != nil
    if hasDefect { _ = try record.byte() }
    let outcome = try record.word(of: Vocabularies.outcome) ?? .pending
    _ = try record.byte()
    kind = try record.word(of: Vocabularies.receiptKind)
    _ = try record.byte()
    let environment = try record.word(of: Vocabularies.environment)
    _ = try record.optionalBorrowed()
    _ = try record.optionalInt()
    _ = try record.int()
    let lastAttempt = try record.optionalInstant()
    for _ in 0..<5 { _ = try record.optionalInt() }
    _ = try record.optionalBorrowed()
    _ = try record.int()
    proof = BorrowedProof(
      hasDefect: hasDefect, outcome: outcome, claimedEnvironment: claimedEnvironment, environment: environment,
      lastAttempt: lastAttempt, isUnproven: try record.flag())
    _ = try record.optionalBorrowed()
    contained = record.rest
    for _ in 0..<(try record.int()) {
      _ = try record.byte()
      _ = try record.borrowed()
    }
  }

  func forEachContained(_ body: (AppleEnvironment, BorrowedText) throws -> Void) throws {
    var record = RecordReader(contained)
    for _ in 0..<(try record.int()) {
      guard let environment = try record.word(of: Vocabularies.environment) else { throw RecordReader.Mismatch() }
      try body(environment, try record.borrowed())
    }
  }

  func containsTransactionID(_ wanted: BorrowedText, in environment: AppleEnvironment) throws -> Bool {
    var isFound = false
    try forEachContained { isFound = isFound || ($0 == environment && $1 == wanted) }
    return isFound
  }

  /// Same format as the proof in `TransactionReference.write`, for a transaction of `environment`.
  func writeReferenceSource(of environment: AppleEnvironment, to record: inout RecordBytes) {
    record.put(true)
    record.put(environment, of: Vocabularies.environment)
    record.put(false)
    record.put(receiptId)
    record.put(userId)
    record.put(receivedAt.microseconds)
    record.put(kind != .app)
    record.put(proof.outcome != .rejected && !proof.isUnproven)
    // False because only answered proofs are written this way.
    record.put(false)
  }

  /// True if no answer is missing. For the other outcomes the caller decides whether they could still prove a payment.
  var isAnswered: Bool {
    switch proof.outcome {
    case .verified, .rejected, .notFound: true
    case .pending, .unanswered, .review: false
    }
  }
}

/// A view of the only reference of a transaction ID, by a valid order.
struct BorrowedTransactionReference {
  let orderId: BorrowedText
  let appAccountToken: BorrowedText?
  let isNamed: Bool
  /// The environment of the contained transaction; nil if the order only states the ID.
  let containedIn: AppleEnvironment?
  let referenceSource: UnsafeRawBufferPointer

  init?(_ content: UnsafeRawBufferPointer) throws(RecordReader.Mismatch) {
    var record = RecordReader(content)
    guard try record.flag() else { return nil }
    orderId = try record.borrowed()
    _ = try record.borrowed()
    _ = try record.borrowed()
    _ = try record.int()
    _ = try record.optionalBorrowed()
    appAccountToken = try record.optionalBorrowed()
    if try record.flag() { return nil }
    isNamed = try record.flag()
    guard try record.flag() else {
      containedIn = nil
      referenceSource = UnsafeRawBufferPointer(start: nil, count: 0)
      return
    }
    containedIn = try record.word(of: Vocabularies.environment)
    let subject = record.rest
    _ = try record.byte()
    _ = try record.borrowed()
    referenceSource = UnsafeRawBufferPointer(rebasing: subject[..<(subject.count - record.rest.count)])
  }
}

extension BorrowedTransaction {
  /// Same format as an `OrderTransaction` with one possible owner. False, perhaps after a partial write, if
  /// `Candidates` has to decide.
  func writeOrderTransaction(of reference: BorrowedTransactionReference, to record: inout RecordBytes) -> Bool {
    // Orders of other periods matter for a subscription.
    if payment.expiresDate != nil { return false }
    let isContained = reference.containedIn == payment.environment
    // The same ID in another environment is another purchase.
    guard reference.isNamed || isContained else { return false }
    if let token = payment.appAccountToken, reference.appAccountToken != token { return false }
    record.put(true)
    write(to: &record)
    record.put(true)
    record.put(isContained)
    if isContained { record.append(reference.referenceSource) }
    return true
  }

  /// Same format as a `TransactionRecord`.
  private func write(to record: inout RecordBytes) {
    let nothing: Int64? = nil
    record.put(payment.environment, of: Vocabularies.environment)
    record.put(payment.transactionId)
    record.put(payment.originalTransactionId)
    record.put(payment.webOrderLineItemId)
    record.put(payment.bundleId)
    record.put(payment.productId)
    record.put(false)
    record.put(payment.quantity)
    record.put(payment.purchaseDate)
    record.put(payment.originalPurchaseDate)
    record.put(payment.expiresDate)
    record.put(subscriptionExpiresDate)
    record.put(nothing)
    record.put(subscriptionStatusDate)
    record.put(renewalDate)
    record.put(nothing)
    record.put(nothing)
    record.put(false)
    record.put(nothing)
    record.put(Bool?.none)
    record.put(revocationStatedDate)
    record.put(revocationWithdrawnDate)
    record.put(payment.priceMilliunits)
    record.put(payment.currency)
    record.put(payment.statesToken)
    if payment.statesToken { record.put(payment.appAccountToken) }
    record.put(payment.ownership, of: Vocabularies.ownership)
    record.put(payment.isRenewal)
    record.put(payment.hasOffer)
    record.put(isUpgraded)
    // No refund request: date, reason, date of refusal.
    record.put(nothing)
    record.put(false)
    record.put(nothing)
    record.put(payment.storefront)
    // The remaining details, which no rule uses.
    for _ in 0..<7 { record.put(false) }
    record.put(payment.isContradictory)
    record.put(channel, of: Vocabularies.channel)
    record.put(signedDate.microseconds)
    record.put(firstSignedDate)
    // No audit reads when it was notified.
    record.put(nothing)
    record.put(payment.checkedAt)
    // Further IDs of the purchase.
    record.put(Int64(0))
  }
}

extension BorrowedPayment {
  /// As that of a `TransactionRecord`.
  /// As that of the transaction's record.
  var subscriptionKey: PurchaseKey? {
    guard expiresDate != nil, let original = originalTransactionId else { return nil }
    return PurchaseKey(environment: environment, transactionId: original.id)
  }

  var purchaseKey: PurchaseKey {
    guard expiresDate == nil else {
      guard let originalTransactionId else {
        return PurchaseKey(environment: environment, transactionId: transactionId.id)
      }
      return PurchaseKey(
        environment: environment, transactionId: originalTransactionId.id,
        period: (webOrderLineItemId ?? productId).id, purchasedAt: webOrderLineItemId == nil ? purchaseDate : nil)
    }
    let restored = isRenewal != true ? originalTransactionId : nil
    return PurchaseKey(environment: environment, transactionId: (restored ?? transactionId).id)
  }

  /// - Parameter record: an encoded `OrderTransaction`.
  /// - Returns: nil if it is not a transaction, other orders could own it, or it has a refund request.
  @inline(__always)
  init?(orderTransaction record: inout RecordReader) throws(RecordReader.Mismatch) {
    guard try record.flag() else { return nil }
    guard let environment = try record.word(of: Vocabularies.environment) else { throw RecordReader.Mismatch() }
    let transactionId = try record.borrowed()
    let originalTransactionId = try record.optionalBorrowed()
    let webOrderLineItemId = try record.optionalBorrowed()
    let bundleId = try record.optionalBorrowed()
    self.init(environment: environment, transactionId: transactionId, productId: try record.borrowed())
    (self.originalTransactionId, self.bundleId) = (originalTransactionId, bundleId)
    self.webOrderLineItemId = webOrderLineItemId
    _ = try record.optionalBorrowed()
    quantity = try record.optionalInt32()
    purchaseDate = try record.optionalInstant()
    originalPurchaseDate = try record.optionalInstant()
    expiresDate = try record.optionalInstant()
    for _ in 0..<4 { _ = try record.optionalInt() }
    isRevoked = try record.optionalInt() != nil
    _ = try record.optionalInt()
    _ = try record.optionalBorrowed()
    _ = try record.optionalInt()
    _ = try record.byte()
    _ = try record.optionalInt()
    _ = try record.optionalInt()
    priceMilliunits = try record.optionalInt()
    currency = try record.optionalBorrowed()
    statesToken = try record.flag()
    if statesToken { appAccountToken = try record.optionalBorrowed() }
    ownership = try record.word(of: Vocabularies.ownership)
    isRenewal = try record.optionalFlag()
    hasOffer = try record.optionalFlag()
    _ = try record.byte()
    let isRefundRequested = try record.optionalInt() != nil
    _ = try record.optionalBorrowed()
    _ = try record.optionalInt()
    storefront = try record.optionalBorrowed()
    _ = try record.optionalBorrowed()
    _ = try record.optionalInt()
    for _ in 0..<5 { _ = try record.optionalBorrowed() }
    isContradictory = try record.flag()
    _ = try record.byte()
    _ = try record.int()
    for _ in 0..<2 { _ = try record.optionalInt() }
    checkedAt = try record.optionalInstant()
    // A purchase with several IDs is left to the rules.
    guard try record.int() == 0, try record.flag(), !isRefundRequested else { return nil }
  }
}
