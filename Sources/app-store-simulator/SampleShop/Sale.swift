/// One purchase with all its traces: as it should be, until a scenario spoils it.
struct Sale {
  /// The position of the user among the customers.
  var user: Int
  var order: OrderRow
  /// What Apple charged; nil when nothing was bought.
  var transaction: SampleTransaction?
  var proof: Proof?
  var deliveries: [DeliveryRow]
  var expected = Expectation.settled

  /// What the client sent.
  struct Proof {
    var kind = SampleReceipt.Kind.app
    /// A payload that was sent before; nil: one of its own.
    var payload: String?
    /// Whether Apple made it.
    var isGenuine = true
    /// Purchases that it lists besides the sale's own.
    var others: [SampleTransaction] = []
    var forcedStatus: Int?
    var claimedEnvironment = SampleTransaction.Environment.production
    /// What became of the shop's own first attempt to check it.
    var shopStatus = "verified"
  }

  /// Nothing was delivered, and the shop knows that it failed.
  mutating func block(status: String = "failed") {
    deliveries = []
    order.status = status
    order.verifiedAt = nil
  }

  /// Apple never charged anything, and no receipt was sent.
  mutating func removePayment() {
    transaction = nil
    proof = nil
    order.transactionId = nil
  }

  mutating func moveToSandbox() {
    transaction?.environment = .sandbox
    proof?.claimedEnvironment = .sandbox
  }

  /// Apple gives the money back at this instant, because the customer asked for it.
  mutating func refund(at instant: Int64) {
    transaction?.revocationDate = instant
    transaction?.revocationReason = 0
  }

  mutating func takeBack(at instant: Int64) {
    for index in deliveries.indices { deliveries[index].revokedAt = instant }
  }

  /// The order is paid by a purchase that another sale made.
  mutating func lean(on other: Sale) {
    order.transactionId = other.transaction?.transactionId
    transaction = nil
    if let purchase = other.transaction { proof?.others = [purchase] }
  }
}
