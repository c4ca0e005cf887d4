extension Disposition {
  /// The name for people.
  public var title: String {
    switch self {
    case .settled: "Settled"
    case .paidNotDelivered: FindingKind.paidNotDelivered.title
    case .deliveredNotPaid: FindingKind.deliveredNotPaid.title
    case .partlyDelivered: FindingKind.partlyDelivered.title
    case .refunded: "Refunded"
    case .refundedStillDelivered: FindingKind.refundedStillDelivered.title
    case .inFlight: "Delivery pending"
    case .unconfirmed: "Unconfirmed"
    case .void: "Not paid, nothing delivered"
    case .sandbox: "Sandbox"
    case .badRow: FindingKind.badRow.title
    }
  }
}
