import AuditStore
import Reconciliation
import Streams

// Formats of records on disk. Each `write(to:)` must match the `init(from:)` next to it.

extension TransactionKey {
  func write(to record: inout RecordBytes) {
    record.put(environment, of: Vocabularies.environment)
    record.put(transactionId)
  }

  init(from record: inout RecordReader) throws(RecordReader.Mismatch) {
    guard let environment = try record.word(of: Vocabularies.environment) else { throw RecordReader.Mismatch() }
    self.init(environment: environment, transactionId: try record.id())
  }
}

extension CheckSubject {
  func write(to record: inout RecordBytes) {
    record.put(kind == .lookup)
    record.put(id)
  }

  init(from record: inout RecordReader) throws(RecordReader.Mismatch) {
    self.init(kind: try record.flag() ? .lookup : .receipt, id: try record.id())
  }
}

extension Proof {
  func write(to record: inout RecordBytes) { Proof.write(receipt, containing: contained, to: &record) }

  static func write(_ receipt: borrowing Receipt, containing contained: [TransactionKey], to record: inout RecordBytes)
  {
    receipt.write(to: &record)
    record.put(contained) { $0.write(to: &$1) }
  }

  init(from record: inout RecordReader) throws(RecordReader.Mismatch) {
    self.init(
      receipt: try Receipt(from: &record),
      contained: try record.list { (record) throws(RecordReader.Mismatch) in try TransactionKey(from: &record) })
  }
}

extension LookedUp {
  func write(to record: inout RecordBytes) {
    record.put(subjectId)
    state.write(to: &record)
    record.put(contained) { $0.write(to: &$1) }
  }

  init(from record: inout RecordReader) throws(RecordReader.Mismatch) {
    self.init(
      subjectId: try record.id(), state: try ProofState(from: &record),
      contained: try record.list { (record) throws(RecordReader.Mismatch) in try TransactionKey(from: &record) })
  }
}

extension OrderRow {
  func write(to record: inout RecordBytes) {
    switch self {
    case .valid(let order):
      record.put(true)
      record.put(order.orderId)
      record.put(order.userId)
      record.put(order.bundleId)
      record.put(order.productId)
      record.put(Int64(order.quantity))
      record.put(Optional(order.amount))
      record.put(order.status.rawValue)
      record.put(order.transactionId)
      record.put(order.appAccountToken)
      record.put(order.createdAt.microseconds)
      record.put(order.verifiedAt)
      record.put(order.isChangedAfterAsOf)
      record.put(order.refundBookedBy)
    case .bad(let bad):
      record.put(false)
      record.put(bad.orderId)
      record.put(bad.userId)
      record.put(bad.bundleId)
      record.put(bad.productId)
      record.put(bad.quantity)
      record.put(bad.amountText)
      record.put(bad.currencyText)
      record.put(bad.statusText)
      record.put(bad.transactionId)
      record.put(bad.createdAt.microseconds)
      record.put(bad.defect)
      record.put(bad.isUndated)
    }
  }

  init(from record: inout RecordReader) throws(RecordReader.Mismatch) {
    let isValid = try record.flag()
    let orderId = try record.id()
    let userId = try record.id()
    let bundleId = try record.optionalText()
    let productId = try record.id()
    guard isValid else {
      let quantity = try record.optionalInt()
      var bad = BadOrder(
        orderId: orderId, userId: userId, bundleId: bundleId, productId: productId, quantity: quantity,
        amountText: try record.text(), currencyText: try record.text(), statusText: try record.text(),
        transactionId: try record.optionalId(), createdAt: Instant(microseconds: try record.int()),
        defect: try record.text())
      bad.isUndated = try record.flag()
      self = .bad(bad)
      return
    }
    let quantity = Int32(clamping: try record.int())
    guard let amount = try record.optionalMoney(), let status = OrderStatus(rawValue: try record.text())
    else { throw RecordReader.Mismatch() }
    let transactionId = try record.optionalId()
    let appAccountToken = try record.optionalText()
    var order = Order(
      orderId: orderId, userId: userId, productId: productId, quantity: quantity, amount: amount, status: status,
      createdAt: Instant(microseconds: try record.int()))
    order.bundleId = bundleId
    order.transactionId = transactionId
    order.appAccountToken = appAccountToken
    order.verifiedAt = try record.optionalInstant()
    order.isChangedAfterAsOf = try record.flag()
    order.refundBookedBy = try record.optionalInstant()
    self = .valid(order)
  }
}

extension OrderGroup {
  func write(to record: inout RecordBytes) {
    row.write(to: &record)
    record.put(isRepeated)
    record.put(proofs) { $0.write(to: &$1) }
    record.put(lookup != nil)
    lookup?.write(to: &record)
  }

  init(from record: inout RecordReader) throws(RecordReader.Mismatch) {
    self.init(row: try OrderRow(from: &record))
    isRepeated = try record.flag()
    proofs = try record.list { (record) throws(RecordReader.Mismatch) in try Proof(from: &record) }
    if try record.flag() { lookup = try LookedUp(from: &record) }
  }
}

extension TransactionReference {
  /// Leaves out the transaction ID, which is the sorting key.
  func write(to record: inout RecordBytes) {
    record.put(order != nil)
    if let order {
      record.put(order.orderId)
      record.put(order.userId)
      record.put(order.productId)
      record.put(order.createdAt.microseconds)
      record.put(order.named)
      record.put(order.appAccountToken)
      record.put(order.isBad)
    }
    record.put(isNamed)
    record.put(referenceSource != nil)
    if let referenceSource {
      record.put(referenceSource.environment, of: Vocabularies.environment)
      referenceSource.subject.write(to: &record)
      record.put(referenceSource.userId)
      record.put(referenceSource.receivedAt.microseconds)
      record.put(referenceSource.isAboutSinglePurchase)
      record.put(referenceSource.isGenuine)
      record.put(referenceSource.awaitsDetails)
    }
  }

  init(_ transactionId: Identifier, from record: inout RecordReader) throws(RecordReader.Mismatch) {
    self.init(transactionId: transactionId, order: nil)
    if try record.flag() {
      order = OrderSide(
        orderId: try record.id(), userId: try record.id(), productId: try record.id(),
        createdAt: Instant(microseconds: try record.int()), named: try record.optionalId(),
        appAccountToken: try record.optionalText(), isBad: try record.flag())
    }
    isNamed = try record.flag()
    if try record.flag() {
      guard let environment = try record.word(of: Vocabularies.environment) else { throw RecordReader.Mismatch() }
      referenceSource = ReferenceSource(
        environment: environment, subject: try CheckSubject(from: &record), userId: try record.optionalId(),
        receivedAt: Instant(microseconds: try record.int()), isAboutSinglePurchase: try record.flag(),
        isGenuine: try record.flag(), awaitsDetails: try record.flag())
    }
  }
}
