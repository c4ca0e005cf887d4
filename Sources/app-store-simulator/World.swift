import Foundation

/// What Apple knows in this rehearsal: apps, transactions and the receipts that show them. Dates are milliseconds since
/// the epoch.
struct World: Sendable {
  struct App: Decodable, Sendable {
    var bundleId: String
    var appAppleId: Int64?
    /// When present, requests must carry it.
    var sharedSecret: String?
  }

  struct Transaction: Decodable, Sendable {
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
    var appAccountToken: String?
    var inAppOwnershipType: String?
    var webOrderLineItemId: String?
    var isTrialPeriod: Bool?
    var isInIntroOfferPeriod: Bool?
    /// Apple's code: 1 introductory, 2 promotional, 3 offer code, 4 win-back.
    var offerType: Int?
    /// Whether the app has finished it; finished consumables disappear from receipts.
    var finished: Bool?

    var originalId: String { originalTransactionId ?? transactionId }
  }

  struct Receipt: Decodable, Sendable {
    enum Kind: String, Decodable, Sendable {
      case app
      case transaction
    }

    var payload: String
    var kind: Kind
    var environment: Environment
    var bundleId: String
    var transactions: [String]
    /// Forces this status for the receipt.
    var status: Int?
  }

  enum Environment: String, Decodable, Hashable, Sendable {
    case production = "Production"
    case sandbox = "Sandbox"
  }

  private struct File: Decodable {
    var apps: [App]
    var transactions: [Transaction]
    var receipts: [Receipt]
  }

  private struct Key: Hashable {
    var environment: Environment
    var id: String
  }

  private let apps: [String: App]
  private let transactions: [Key: Transaction]
  /// By original transaction id, in the order of the file.
  private let families: [Key: [Transaction]]
  private let receipts: [String: Receipt]

  /// How much there is, for people.
  var summary: [String: Int] {
    ["apps": apps.count, "transactions": transactions.count, "receipts": receipts.count]
  }

  /// Throws a decoding error that names the place when the JSON is not a world.
  init(json: Data) throws {
    let file = try JSONDecoder().decode(File.self, from: json)
    apps = Dictionary(file.apps.map { ($0.bundleId, $0) }) { $1 }
    let keyed = file.transactions.map { (Key(environment: $0.environment, id: $0.transactionId), $0) }
    transactions = Dictionary(keyed) { $1 }
    families = Dictionary(grouping: file.transactions) { Key(environment: $0.environment, id: $0.originalId) }
    receipts = Dictionary(file.receipts.map { (Self.canonical($0.payload), $0) }) { $1 }
  }

  func app(bundleId: String) -> App? { apps[bundleId] }

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

  private static func canonical(_ payload: String) -> String {
    payload.filter { !$0.isWhitespace && $0 != "=" }
  }
}
