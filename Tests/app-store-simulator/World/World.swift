import Foundation

/// The simulated data of Apple: apps, transactions and receipts. Dates are milliseconds since the epoch.
struct World: Sendable {
  struct App: Decodable, Sendable {
    var bundleId: String
    var appAppleId: Int64?
    var sku: String?
    var sharedSecret: String?
    var issuerId: String?
    var keyId: String?
    /// A P-256 public key in PEM, to verify tokens.
    var publicKey: String?
    /// False if App Store Connect has no URL for version-2 notifications; the history is then empty.
    var sendsNotifications: Bool?
    private(set) var keys = ClientToken.Keys()

    private enum CodingKeys: CodingKey {
      case bundleId, appAppleId, sku, sharedSecret, issuerId, keyId, publicKey, sendsNotifications
    }

    fileprivate mutating func readKeys() throws {
      if let publicKey { try keys.add(pem: publicKey) }
    }
  }

  struct Transaction: Decodable, Hashable, Sendable {
    enum Kind: String, Decodable, Sendable {
      case consumable = "Consumable"
      case nonConsumable = "Non-Consumable"
      case autoRenewable = "Auto-Renewable Subscription"
      case nonRenewing = "Non-Renewing Subscription"
    }

    var transactionId: String
    var originalTransactionId: String?
    var environment: Environment
    var bundleId: String
    var productId: String
    var type: Kind
    var quantity: Int?
    var purchaseDate: Int64
    /// From then on answers and notifications contain the transaction, if this is later than its purchase.
    var knownFrom: Int64?
    /// False if no notification about the transaction was sent.
    var isNotified: Bool?
    var originalPurchaseDate: Int64?
    var expiresDate: Int64?
    var revocationDate: Int64?
    /// The date that answers state for the refund before `revocationRestatedDate`.
    var firstRevocationDate: Int64?
    var revocationRestatedDate: Int64?
    var revocationReason: Int?
    var revocationType: String?
    /// Milli-percent.
    var revocationPercentage: Int?
    /// When Apple reversed the refund.
    var refundReversedDate: Int64?
    /// A cancellation date that receipts alone state, as of an upgraded period, whose signed data has no revocation.
    var receiptCancellationDate: Int64?
    /// Milliunits of the currency, for the whole quantity.
    var price: Int64?
    var currency: String?
    var storefront: String?
    var transactionReason: String?
    var subscriptionGroupIdentifier: String?
    var gracePeriodExpiresDate: Int64?
    var isInBillingRetryPeriod: Bool?
    /// The customer; default: by account token, otherwise by original transaction.
    var customer: String?
    var appAccountToken: String?
    var inAppOwnershipType: String?
    var webOrderLineItemId: String?
    var isTrialPeriod: Bool?
    /// Apple's code: 1 introductory, 2 promotional, 3 offer code, 4 win-back.
    var offerType: Int?
    var offerIdentifier: String?
    var offerPeriod: String?
    var offerDiscountType: String?
    /// The report days of purchase and refund, if they differ from the dates.
    var reportedDate: Int64?
    var refundReportedDate: Int64?
    var reportedPrice: Int64?
    var isUnreported: Bool?
    /// True if the transaction is in reports only, and unknown to the other APIs.
    var isReportOnly: Bool?
    /// Finished consumables disappear from receipts.
    var finished: Bool?
    var orderId: String?
    /// True if the transaction replaced a running period of its group. Apple announces it as an upgrade.
    var isUpgrade: Bool?
    var isUpgraded: Bool?
    /// True if Apple announces the transaction as a redeemed offer instead of a subscription.
    var redeemsOffer: Bool?
    /// Apple's `status`, 1 to 5, overriding the dates.
    var subscriptionStatus: Int?
    var renewalDate: Int64?
    /// Milliunits of `currency`.
    var renewalPrice: Int64?
    /// When Apple sent a consumption request, and the customer's reason.
    var consumptionRequestDate: Int64?
    var consumptionRequestReason: String?
    /// When Apple declined the refund.
    var refundDeclinedDate: Int64?
    var storefrontId: String?
    var appTransactionId: String?
    var billingPlanType: String?
    var previousOriginalTransactionId: String?
    var commitmentInfo: JSONValue?
    /// Items with prices and refunds, in Apple's format.
    var advancedCommerceInfo: JSONValue?
    var bundleProductID: String?
    var bundleTransactionID: String?
    var bundleOriginalTransactionID: String?
    /// In the order of time.
    var changes: [Change]?
    /// Fields that signed data leaves out.
    var omit: [String]?

    /// Fields that differ from an instant on. Further refunds replace the earlier ones.
    struct Change: Decodable, Hashable, Sendable {
      var from: Int64
      var isUpgraded: Bool?
      var expiresDate: Int64?
      var revocationDate: Int64?
      var revocationType: String?
      /// Milli-percent.
      var revocationPercentage: Int?
      var refundReversedDate: Int64?
    }

    var originalId: String { originalTransactionId ?? transactionId }
  }

  struct Receipt: Decodable, Sendable {
    enum Kind: String, Decodable, Sendable {
      case app
      case transaction
    }

    /// The forms of a date in answers.
    enum Dates: String, Decodable, Sendable {
      case all
      case text
      case milliseconds
    }

    var payload: String
    var kind: Kind
    var environment: Environment
    var bundleId: String
    var transactions: [String]
    var status: Int?
    var creationDate: Int64?
    /// The payload of another receipt, whose answer is returned, as by a faulty cache.
    var answeredAs: String?
    var dates: Dates?
    /// Fields that are left out.
    var omit: [String]?
    var isMinted = false

    private enum CodingKeys: CodingKey {
      case payload, kind, environment, bundleId, transactions, status, creationDate, answeredAs, dates, omit
    }
  }

  struct Connect: Decodable, Sendable {
    var vendor = "80012345"
    var issuerId: String?
    var keyId: String?
    /// Sales in a thousand that are never settled.
    var uncollectedPermille = 5
    /// Rows of sales reports by column; `Begin Date` is a day such as 2026-11-19.
    var rows: [[String: String]] = []
    private(set) var keys = ClientToken.Keys()

    private enum CodingKeys: CodingKey { case vendor, issuerId, keyId, publicKey, uncollectedPermille, rows }

    init() {}

    init(from decoder: any Decoder) throws {
      let container = try decoder.container(keyedBy: CodingKeys.self)
      vendor = try container.decodeIfPresent(String.self, forKey: .vendor) ?? vendor
      issuerId = try container.decodeIfPresent(String.self, forKey: .issuerId)
      keyId = try container.decodeIfPresent(String.self, forKey: .keyId)
      uncollectedPermille = try container.decodeIfPresent(Int.self, forKey: .uncollectedPermille) ?? uncollectedPermille
      rows = try container.decodeIfPresent([[String: String]].self, forKey: .rows) ?? rows
      if let pem = try container.decodeIfPresent(String.self, forKey: .publicKey) { try keys.add(pem: pem) }
    }
  }

  enum Environment: String, Decodable, Hashable, Sendable {
    case production = "Production"
    case sandbox = "Sandbox"
  }

  /// A forced answer of the App Store Server API.
  struct ForcedError: Decodable, Sendable {
    var errorCode: Int
    var httpStatus: Int?
  }

  private struct File: Decodable {
    var apps: [App]
    var transactions: [Transaction]
    var receipts: [Receipt]
    var notifications: [NotificationFeed.Entry]?
    var errors: [String: ForcedError]?
    var faults: [Disturbance]?
    var outages: [Disturbance]?
    var now: Int64?
    var connect: Connect?
  }

  private struct Key: Hashable {
    var environment: Environment
    var id: String
  }

  private struct Buyer: Hashable {
    var environment: Environment
    var bundleId: String
    var name: String

    init(_ transaction: Transaction) {
      environment = transaction.environment
      bundleId = transaction.bundleId
      name = transaction.customer ?? transaction.appAccountToken?.lowercased() ?? transaction.originalId
    }
  }

  private let apps: [String: App]
  private let transactions: [Key: Transaction]
  private let families: [Key: [Transaction]]
  private var receipts: [String: Receipt]
  private let customers: [Buyer: [Transaction]]
  let allTransactions: [Transaction]
  let connect: Connect
  /// The instants at which transactions changed because the world was replaced.
  private var changes: [Key: Int64] = [:]
  let feed: NotificationFeed
  let errors: [String: ForcedError]
  let faults: [Disturbance]
  private let orders: [String: [Transaction]]
  /// nil: the machine's time.
  let now: Int64?

  var hasKeys: Bool { apps.values.contains { !$0.keys.isEmpty } }

  var summary: [String: Int] {
    ["apps": apps.count, "transactions": transactions.count, "receipts": receipts.count]
  }

  init(json: Data) throws {
    let file = try JSONDecoder().decode(File.self, from: json)
    let apps = try file.apps.map { app in
      var app = app
      try app.readKeys()
      return (app.bundleId, app)
    }
    self.apps = Dictionary(apps) { $1 }
    allTransactions = file.transactions
    connect = file.connect ?? Connect()
    let known = file.transactions.filter { $0.isReportOnly != true }
    let keyed = known.map { (Key(environment: $0.environment, id: $0.transactionId), $0) }
    transactions = Dictionary(keyed) { $1 }
    families = Dictionary(grouping: known) { Key(environment: $0.environment, id: $0.originalId) }
    receipts = Dictionary(file.receipts.map { (Self.canonical($0.payload), $0) }) { $1 }
    customers = Dictionary(grouping: known) { Buyer($0) }
    feed = NotificationFeed(file.notifications ?? [], transactions: known)
    errors = file.errors ?? [:]
    let outages = (file.outages ?? []).map { outage in
      var outage = outage
      outage.httpStatus = 503
      return outage
    }
    faults = outages + (file.faults ?? [])
    orders = Dictionary(grouping: file.transactions.filter { $0.orderId != nil }) { $0.orderId ?? "" }
    now = file.now
  }

  /// This world as the successor of an older one: new and changed transactions are dated `moment`.
  func following(_ older: World, at moment: Int64) -> World {
    var world = self
    world.changes = older.changes
    // Receipts created at run time are kept.
    world.receipts.merge(older.receipts.filter { $0.value.isMinted }) { current, _ in current }
    let latest = older.transactions.values.map { older.lastModified($0, by: .max) }.max() ?? 0
    let changeDate = max(moment, latest + 1)
    for (key, transaction) in transactions where older.transactions[key] != transaction {
      world.changes[key] = changeDate
    }
    return world
  }

  func transaction(id: String, environment: Environment) -> Transaction? {
    transactions[Key(environment: environment, id: id)]
  }

  /// All transactions of the same customer and app.
  func customer(of transaction: Transaction) -> [Transaction] { customers[Buyer(transaction)] ?? [transaction] }

  func lastModified(_ transaction: Transaction, by horizon: Int64) -> Int64 {
    let change = changes[Key(environment: transaction.environment, id: transaction.transactionId)] ?? 0
    return max(transaction.lastModified(by: horizon), change)
  }

  func app(bundleId: String) -> App? { apps[bundleId] }

  func order(id: String) -> [Transaction] { orders[id] ?? [] }
  func sku(bundleId: String) -> String { apps[bundleId]?.sku ?? bundleId }

  /// Line breaks and padding of the base64 are ignored.
  func receipt(payload: String) -> Receipt? { receipts[Self.canonical(payload)] }

  func transactions(of receipt: Receipt) -> [Transaction] {
    receipt.transactions.compactMap { transactions[Key(environment: receipt.environment, id: $0)] }
  }

  func family(of transaction: Transaction) -> [Transaction] {
    families[Key(environment: transaction.environment, id: transaction.originalId)] ?? [transaction]
  }

  /// The newest period of a transaction's subscription.
  func newestPeriod(of transaction: Transaction, by horizon: Int64) -> Transaction {
    let known = family(of: transaction).filter { $0.exists(by: horizon) }
    return (known.max { $0.purchaseDate < $1.purchaseDate } ?? transaction).changed(by: horizon)
  }

  func adding(_ receipt: Receipt) -> World {
    var world = self
    world.receipts[Self.canonical(receipt.payload)] = receipt
    return world
  }

  private static func canonical(_ payload: String) -> String {
    payload.filter { !$0.isWhitespace && $0 != "=" }
  }
}
