import Reconciliation

extension JudgedOrder {
  public func write(to record: inout RecordBytes) {
    record.put(bundleId)
    record.put(productId)
    record.put(Optional(quantity))
    record.put(Optional(amount))
    record.put(Optional(bookedAt))
    record.put(isBooked)
    record.put(isAwaited)
    record.put(renewals) { $1.put($0) }
  }

  public init(from record: inout RecordReader) throws(RecordReader.Mismatch) {
    let (bundleId, productId) = (try record.optionalText(), try record.id())
    guard let quantity = try record.optionalInt32(), let amount = try record.optionalMoney(),
      let bookedAt = try record.optionalInstant()
    else { throw RecordReader.Mismatch() }
    self.init(
      bundleId: bundleId, productId: productId, quantity: quantity, amount: amount, bookedAt: bookedAt,
      isBooked: try record.flag(), isAwaited: try record.flag(),
      renewals: try record.list { (reader) throws(RecordReader.Mismatch) in try reader.id() })
  }
}

extension SettledSale {
  /// Writes the same bytes as the `JudgedOrder` of its judgement.
  public func writeJudgedOrder(to record: inout RecordBytes) {
    record.put(order.bundleId)
    record.put(order.productId)
    record.put(Optional(order.quantity))
    record.put(Optional(order.amount))
    record.put(Optional(order.verifiedAt ?? order.createdAt))
    record.put(true)
    record.put(false)
    // No renewals, because a later period of a subscription is not a settled sale.
    record.put(Int64(0))
  }
}
