/// A receipt of the shop without its payload, with the state of its check.
public typealias Receipt = ReceiptFields<Identifier, String>

/// A receipt in the bytes of its row or record.
public typealias BorrowedReceipt = ReceiptFields<BorrowedText, BorrowedText>

public struct ReceiptFields<ID: FieldText, Text: FieldText>: Equatable {
  public var receiptId: ID
  public var orderId: ID?
  public var userId: ID?
  /// `Production` or `Sandbox` as the client claimed; never trusted.
  public var claimedEnvironment: Text?
  public var receivedAt: Instant
  public var state: ProofStateFields<ID, Text>
  /// True if the row has no usable date, which is a defect. Another date stands in for ``receivedAt``.
  public var isUndated = false
  /// Set if the row breaks the sales contract. Such a receipt counts for nothing else.
  public var defect: Text?

  public init(
    receiptId: ID, orderId: ID?, userId: ID?, claimedEnvironment: Text? = nil, receivedAt: Instant,
    state: ProofStateFields<ID, Text>, defect: Text? = nil
  ) {
    (self.receiptId, self.orderId, self.userId) = (receiptId, orderId, userId)
    (self.claimedEnvironment, self.receivedAt, self.state) = (claimedEnvironment, receivedAt, state)
    self.defect = defect
  }
}

extension ReceiptFields: FieldCoded {
  public static var blank: ReceiptFields {
    ReceiptFields(receiptId: .blank, orderId: nil, userId: nil, receivedAt: .blank, state: .blank)
  }

  public mutating func code<Coder: FieldCoder & ~Copyable>(with coder: inout Coder) throws(Coder.Failure) {
    try coder.code(&receiptId)
    try coder.code(&orderId)
    try coder.code(&userId)
    try coder.code(&claimedEnvironment)
    try coder.code(&receivedAt)
    try coder.code(&defect)
    if defect != nil { try coder.code(&isUndated) } else { isUndated = false }
    try coder.code(&state)
  }
}

extension ReceiptFields: Hashable where ID: Hashable, Text: Hashable {}
extension ReceiptFields: Sendable where ID: Sendable, Text: Sendable {}
