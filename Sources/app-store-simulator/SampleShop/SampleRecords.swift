/// A row of the sales schema's `orders`. Instants are milliseconds since the epoch.
struct OrderRow {
  var orderId: String
  var userId: String
  /// nil: the only app's.
  var bundleId: String?
  var productId: String
  var quantity: Int64
  /// As the shop prints it, wrong ones included.
  var amount: String
  var currency: String
  var status: String
  var transactionId: String?
  var accountToken: String?
  var createdAt: Int64
  var verifiedAt: Int64?
  var updatedAt: Int64
}

/// A row of `receipts`.
struct ReceiptRow {
  var receiptId: String
  var orderId: String?
  var userId: String?
  var payload: String
  /// What the client claims.
  var environment: String?
  var status: String
  var checkedAt: Int64?
  var receivedAt: Int64
}

/// A row of `deliveries`.
struct DeliveryRow {
  var deliveryId: String
  var orderId: String?
  var userId: String
  var productId: String
  var quantity: Int64
  var deliveredAt: Int64
  var revokedAt: Int64?
}

/// A transaction of the world file: what Apple knows.
struct SampleTransaction: Encodable {
  enum Environment: String, Encodable {
    case production = "Production"
    case sandbox = "Sandbox"
  }

  enum Ownership: String, Encodable {
    case purchased = "PURCHASED"
    case familyShared = "FAMILY_SHARED"
  }

  enum Reason: String, Encodable {
    case purchase = "PURCHASE"
    case renewal = "RENEWAL"
  }

  var transactionId: String
  var originalTransactionId: String
  var environment = Environment.production
  var bundleId = Catalogue.bundleId
  var productId: String
  var type: SampleProduct.Kind
  var quantity: Int64
  var purchaseDate: Int64
  var originalPurchaseDate: Int64
  var expiresDate: Int64?
  var revocationDate: Int64?
  var revocationReason: Int?
  /// Milliunits of `currency`, for the whole quantity.
  var price: Int64
  var currency: String
  var appAccountToken: String?
  var inAppOwnershipType = Ownership.purchased
  var transactionReason = Reason.purchase
  var webOrderLineItemId: String?
  /// Finished consumables disappear from receipts.
  var finished = false
  /// When sales reports count it and its refund, if on another day.
  var reportedDate: Int64?
  var refundReportedDate: Int64?
  /// Milliunits that sales reports tell instead of the price.
  var reportedPrice: Int64?
  /// Apple's alpha-3 code.
  var storefront: String?
  var subscriptionGroupIdentifier: String?
  /// Whether it replaced a running period, or was replaced.
  var isUpgrade: Bool?
  var isUpgraded: Bool?
  /// Whether sales reports do not count it, or they alone do.
  var isUnreported: Bool?
  var isReportOnly: Bool?
}

/// A receipt of the world file: what Apple answers about one payload.
struct SampleReceipt: Encodable {
  enum Kind: String, Encodable {
    case app, transaction
  }

  var payload: String
  var kind: Kind
  var environment: SampleTransaction.Environment
  var bundleId: String
  var transactions: [String]
  /// The status that Apple is made to answer, whatever the receipt holds.
  var status: Int?
}

/// The world file of the simulator.
struct SampleWorld: Encodable {
  struct App: Encodable {
    var bundleId: String
    var appAppleId: Int64
    var sharedSecret: String?
    var sku: String?
    /// Of the key for the App Store Server API.
    var issuerId: String?
    var keyId: String?
    var publicKey: String?
  }

  var apps: [App]
  var transactions: [SampleTransaction] = []
  var receipts: [SampleReceipt] = []
  var connect: SampleReports?
}

/// What the audit ought to say about one order when Apple is asked through verifyReceipt.
struct Expectation: Encodable {
  var disposition: String
  /// The word of `payment_reason`; nil for paid and reversed orders and for rows that break the contract.
  var reason: String?
  var findings: [String] = []

  static let settled = Expectation(disposition: "settled")

  static func settled(_ findings: String...) -> Expectation {
    Expectation(disposition: "settled", findings: findings)
  }

  static func paidNotDelivered(_ findings: String...) -> Expectation {
    Expectation(disposition: "paid_not_delivered", findings: ["paid_not_delivered"] + findings)
  }

  static func deliveredNotPaid(_ reason: String, _ findings: String...) -> Expectation {
    Expectation(disposition: "delivered_not_paid", reason: reason, findings: ["delivered_not_paid"] + findings)
  }

  static func refundedStillDelivered(_ findings: String...) -> Expectation {
    Expectation(disposition: "refunded_still_delivered", findings: ["refunded_still_delivered"] + findings)
  }

  static func void(_ reason: String, _ findings: String...) -> Expectation {
    Expectation(disposition: "void", reason: reason, findings: findings)
  }

  static func unconfirmed(_ reason: String) -> Expectation {
    Expectation(disposition: "unconfirmed", reason: reason)
  }
}
