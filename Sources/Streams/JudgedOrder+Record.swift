import Reconciliation

extension JudgedOrder: FieldCoded {
  public static var blank: JudgedOrder {
    JudgedOrder(productId: .blank, amount: .blank, bookedAt: .blank, isBooked: false)
  }

  public mutating func code<Coder: FieldCoder & ~Copyable>(with coder: inout Coder) throws(Coder.Failure) {
    try coder.code(&bundleId)
    try coder.code(&productId)
    try coder.code(&quantity)
    try coder.code(&amount)
    try coder.code(&bookedAt)
    try coder.code(&isBooked)
    try coder.code(&isAwaited)
    try coder.code(&renewals)
  }
}

extension SettledSale {
  /// Writes the same bytes as the `JudgedOrder` of its judgement.
  public func writeJudgedOrder(to record: inout RecordBytes) {
    record.put(order.bundleId)
    record.put(order.productId)
    record.put(Int64(order.quantity))
    order.amount.write(to: &record)
    record.put((order.verifiedAt ?? order.createdAt).microseconds)
    record.put(true)
    record.put(false)
    // No renewals, because a later period of a subscription is not a settled sale.
    record.put(Int64(0))
  }
}
