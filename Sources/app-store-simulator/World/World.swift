import Foundation

/// What Apple knows in this rehearsal: apps, transactions and the receipts that show them. Dates are milliseconds since
/// the epoch.
struct World: Sendable {
  struct App: Decodable, Sendable {
    var bundleId: String
    var appAppleId: Int64?
    /// What reports call the app; the bundle id when it is absent.
    var sku: String?
    /// When present, requests must carry it.
    var sharedSecret: String?
    /// When present, tokens for the App Store Server API must name them.
    var issuerId: String?
    var keyId: String?
    /// A P-256 public key in PEM, and a file with one, that tokens are checked against.
    var publicKey: String?
    var publicKeyFile: String?
    private(set) var keys = ClientToken.Keys()

    private enum CodingKeys: CodingKey {
      case bundleId, appAppleId, sku, sharedSecret, issuerId, keyId, publicKey, publicKeyFile
    }

    fileprivate mutating func readKeys() throws {
      if let publicKey { try keys.add(pem: publicKey) }
      if let publicKeyFile { try keys.add(pem: String(contentsOfFile: publicKeyFile, encoding: .utf8)) }
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
    var originalPurchaseDate: Int64?
    var expiresDate: Int64?
    var revocationDate: Int64?
    var revocationReason: Int?
    /// `REFUND_FULL`, `REFUND_PRORATED` or `FAMILY_REVOKE`.
    var revocationType: String?
    /// Milli-percent.
    var revocationPercentage: Int?
    /// When Apple took the refund back.
    var refundReversedDate: Int64?
    /// Milliunits of the currency, for the whole quantity.
    var price: Int64?
    var currency: String?
    var storefront: String?
    /// `PURCHASE` or `RENEWAL`.
    var transactionReason: String?
    var subscriptionGroupIdentifier: String?
    var gracePeriodExpiresDate: Int64?
    var isInBillingRetryPeriod: Bool?
    /// Names who bought it; else the account token does, else the original transaction.
    var customer: String?
    var appAccountToken: String?
    var inAppOwnershipType: String?
    var webOrderLineItemId: String?
    var isTrialPeriod: Bool?
    var isInIntroOfferPeriod: Bool?
    /// Apple's code: 1 introductory, 2 promotional, 3 offer code, 4 win-back.
    var offerType: Int?
    var offerIdentifier: String?
    /// `FREE_TRIAL`, `PAY_AS_YOU_GO`, `PAY_UP_FRONT` or `ONE_TIME`.
    var offerDiscountType: String?
    /// When Apple's reports count it, if on another day than that of the purchase, and its refund.
    var reportedDate: Int64?
    var refundReportedDate: Int64?
    /// Milliunits that reports tell instead of the price.
    var reportedPrice: Int64?
    /// Whether reports do not count it.
    var isUnreported: Bool?
    /// Whether reports alone know of it: nobody can be asked about it.
    var isReportOnly: Bool?
    /// Whether the app has finished it; finished consumables disappear from receipts.
    var finished: Bool?
    /// The order id of Apple's mail to the customer, by which invoices are looked up.
    var orderId: String?
    /// Whether it replaced a running period of the same group: announced as an upgrade, not as a subscription.
    var isUpgrade: Bool?
    /// Whether it was replaced by one.
    var isUpgraded: Bool?
    /// Whether it was bought by an offer that Apple announces as redeemed, not as a subscription.
    var redeemsOffer: Bool?
    /// Apple's `status` of the subscription, 1 to 5, whatever its dates say.
    var subscriptionStatus: Int?
    /// When it renews next; else its expiry.
    var renewalDate: Int64?
    /// When Apple asked what the customer had consumed, and why the customer wants the money back.
    var consumptionRequestDate: Int64?
    var consumptionRequestReason: String?
    var storefrontId: String?
    var appTransactionId: String?
    var billingPlanType: String?
    var previousOriginalTransactionId: String?
    /// In Apple's own form.
    var commitmentInfo: JSONValue?
    /// In Apple's own form: items with their prices and refunds.
    var advancedCommerceInfo: JSONValue?

    var originalId: String { originalTransactionId ?? transactionId }
  }

  struct Receipt: Decodable, Sendable {
    enum Kind: String, Decodable, Sendable {
      case app
      case transaction
    }

    /// Which forms of a date an answer has.
    enum Dates: String, Decodable, Sendable {
      /// All three.
      case all
      /// For people alone.
      case text
      case milliseconds
    }

    var payload: String
    var kind: Kind
    var environment: Environment
    var bundleId: String
    var transactions: [String]
    /// Forces this status for the receipt.
    var status: Int?
    /// When it was made; else at its latest purchase. Milliseconds since the epoch.
    var creationDate: Int64?
    /// The payload of another receipt, whose answer this one gets, as a cache would give it.
    var answeredAs: String?
    var dates: Dates?
    /// Fields that the answer lacks wherever they occur.
    var omit: [String]?
    /// Whether it was made at run time.
    var isMinted = false

    private enum CodingKeys: CodingKey {
      case payload, kind, environment, bundleId, transactions, status, creationDate, answeredAs, dates, omit
    }
  }

  /// The side of the App Store Connect API.
  struct Connect: Decodable, Sendable {
    var vendor = "80012345"
    var issuerId: String?
    var keyId: String?
    /// Of a thousand sales so many are never collected.
    var uncollectedPermille = 5
    /// Rows of sales reports as they are, by column; `Begin Date` is a day such as 2026-11-19.
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

  /// What the App Store Server API answers about an id instead of the truth.
  struct ForcedError: Decodable, Sendable {
    var errorCode: Int
    /// The first three digits of the code unless told otherwise.
    var httpStatus: Int?
  }

  /// A time in which one or all interfaces are down.
  struct Outage: Decodable, Sendable {
    /// Milliseconds since the epoch by the simulated clock; `until` itself is outside.
    var from: Int64
    var until: Int64
    var path: String?
    /// Milliseconds from now, in Apple's form.
    var retryAfter: Int64?
  }

  private struct File: Decodable {
    var apps: [App]
    var transactions: [Transaction]
    var receipts: [Receipt]
    var notifications: [NotificationFeed.Entry]?
    var errors: [String: ForcedError]?
    var faults: [Disturbance]?
    var outages: [Outage]?
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
  /// By original transaction id, in the order of the file.
  private let families: [Key: [Transaction]]
  private var receipts: [String: Receipt]
  private let customers: [Buyer: [Transaction]]
  /// With those that reports alone know of.
  let allTransactions: [Transaction]
  let connect: Connect
  /// When transactions changed because the world was replaced.
  private var changes: [Key: Int64] = [:]
  /// What Apple would have notified the apps of.
  let feed: NotificationFeed
  /// By transaction id.
  let errors: [String: ForcedError]
  /// What goes wrong in this world, outages included.
  let faults: [Disturbance]
  private let orders: [String: [Transaction]]
  /// The time of day in this world; nil: the machine's.
  let now: Int64?

  /// Whether any app brings a key to check tokens with.
  var hasKeys: Bool { apps.values.contains { !$0.keys.isEmpty } }

  /// How much there is, for people.
  var summary: [String: Int] {
    ["apps": apps.count, "transactions": transactions.count, "receipts": receipts.count]
  }

  /// Throws a decoding error that names the place when the JSON is not a world.
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
    let outages = (file.outages ?? []).map {
      Disturbance(path: $0.path, httpStatus: 503, retryAfter: $0.retryAfter, from: $0.from, until: $0.until)
    }
    faults = outages + (file.faults ?? [])
    orders = Dictionary(grouping: file.transactions.filter { $0.orderId != nil }) { $0.orderId ?? "" }
    now = file.now
  }

  /// This world as what becomes of the older one at that moment: what is new or different is changed then.
  func following(_ older: World, at moment: Int64) -> World {
    var world = self
    world.changes = older.changes
    // What was made for clients stays known to Apple.
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

  /// Everything that the customer of a transaction has in the same app.
  func customer(of transaction: Transaction) -> [Transaction] { customers[Buyer(transaction)] ?? [transaction] }

  /// When Apple's record of a transaction last changed, in milliseconds since the epoch.
  func lastModified(_ transaction: Transaction, by horizon: Int64) -> Int64 {
    let change = changes[Key(environment: transaction.environment, id: transaction.transactionId)] ?? 0
    return max(transaction.lastModified(by: horizon), change)
  }

  func app(bundleId: String) -> App? { apps[bundleId] }

  /// The transactions of an invoice, in the order of the file.
  func order(id: String) -> [Transaction] { orders[id] ?? [] }
  /// What reports call an app.
  func sku(bundleId: String) -> String { apps[bundleId]?.sku ?? bundleId }

  /// The receipt with that payload; line breaks and padding of the base64 make no difference.
  func receipt(payload: String) -> Receipt? { receipts[Self.canonical(payload)] }

  /// The receipt's own transactions; ids that the world does not know are left out.
  func transactions(of receipt: Receipt) -> [Transaction] {
    receipt.transactions.compactMap { transactions[Key(environment: receipt.environment, id: $0)] }
  }

  /// A transaction with all others of the same original one.
  func family(of transaction: Transaction) -> [Transaction] {
    families[Key(environment: transaction.environment, id: transaction.originalId)] ?? [transaction]
  }

  /// This world with one more receipt.
  func adding(_ receipt: Receipt) -> World {
    var world = self
    world.receipts[Self.canonical(receipt.payload)] = receipt
    return world
  }

  private static func canonical(_ payload: String) -> String {
    payload.filter { !$0.isWhitespace && $0 != "=" }
  }
}
