import Crypto
import Foundation

/// All notifications that Apple would have sent, in the order of signing.
struct NotificationFeed: Sendable {
  struct Entry: Decodable, Sendable {
    var type: String
    var subtype: String?
    var uuid: String?
    var transactionId: String?
    var environment: World.Environment?
    var bundleId: String?
    var signedDate: Int64
  }

  struct Item: Sendable {
    var type: String
    var subtype: String? = nil
    var givenUUID: String? = nil
    var transaction: World.Transaction?
    var environment: World.Environment
    var bundleId: String?
    var signedDate: Int64

    /// The given UUID, or a deterministic one.
    var uuid: String {
      if let givenUUID { return givenUUID }
      let name = "\(type)|\(environment.rawValue)|\(transaction?.transactionId ?? "")|\(signedDate)"
      let digits = SHA256.hash(data: Data(name.utf8)).prefix(16).map { String(format: "%02x", $0) }.joined()
      let groups = [(0, 8), (8, 4), (12, 4), (16, 4), (20, 12)]
      return groups.map { String(digits.dropFirst($0).prefix($1)) }.joined(separator: "-")
    }
  }

  /// 2025-05-27, the first day of ONE_TIME_CHARGE notifications in production.
  private static let firstOneTimeCharge: Int64 = 1_748_304_000_000

  let items: [Item]

  /// Creates the feed of the listed notifications and of further ones that follow from transactions.
  init(_ entries: [Entry], transactions: [World.Transaction]) {
    let named = Set(entries.compactMap(\.transactionId))
    let byId = Dictionary(transactions.filter { named.contains($0.transactionId) }.map { ($0.transactionId, [$0]) }) {
      $0 + $1
    }
    let listed = entries.map { entry in
      let candidates = entry.transactionId.flatMap { byId[$0] } ?? []
      let transaction = candidates.first { entry.environment == nil || $0.environment == entry.environment }
      return Item(
        type: entry.type, subtype: entry.subtype, givenUUID: entry.uuid, transaction: transaction,
        environment: entry.environment ?? transaction?.environment ?? .production,
        bundleId: entry.bundleId ?? transaction?.bundleId, signedDate: entry.signedDate)
    }
    let known = Set(listed.map(Self.name))
    let derived = transactions.flatMap(Self.derived).filter { !known.contains(Self.name($0)) }
    items = (listed + derived).sorted {
      ($0.signedDate, $0.type, $0.transaction?.transactionId ?? "")
        < ($1.signedDate, $1.type, $1.transaction?.transactionId ?? "")
    }
  }

  func position(at moment: Int64) -> Int {
    var (low, high) = (0, items.count)
    while low < high {
      let middle = (low + high) / 2
      if items[middle].signedDate < moment { low = middle + 1 } else { high = middle }
    }
    return low
  }

  private static func name(_ item: Item) -> String {
    "\(item.type)|\(item.environment.rawValue)|\(item.transaction?.transactionId ?? "")"
  }

  private static func derived(_ transaction: World.Transaction) -> [Item] {
    if transaction.isNotified == false { return [] }
    func item(_ type: String, _ subtype: String? = nil, at date: Int64) -> Item {
      Item(
        type: type, subtype: subtype, transaction: transaction, environment: transaction.environment,
        bundleId: transaction.bundleId, signedDate: max(date, transaction.knownFrom ?? date))
    }
    var items: [Item] = []
    if transaction.inAppOwnershipType != "FAMILY_SHARED" {
      switch transaction.type {
      case .autoRenewable:
        let date = transaction.purchaseDate
        if transaction.isUpgrade == true {
          items.append(item("DID_CHANGE_RENEWAL_PREF", "UPGRADE", at: date))
        } else if transaction.redeemsOffer == true {
          items.append(item("OFFER_REDEEMED", transaction.isRenewal ? nil : "INITIAL_BUY", at: date))
        } else {
          items.append(
            transaction.isRenewal ? item("DID_RENEW", at: date) : item("SUBSCRIBED", "INITIAL_BUY", at: date))
        }
      case .consumable, .nonConsumable, .nonRenewing:
        if transaction.purchaseDate >= firstOneTimeCharge {
          items.append(item("ONE_TIME_CHARGE", at: transaction.purchaseDate))
        }
      }
    }
    if let date = transaction.consumptionRequestDate { items.append(item("CONSUMPTION_REQUEST", at: date)) }
    if let date = transaction.refundDeclinedDate { items.append(item("REFUND_DECLINED", at: date)) }
    if let date = transaction.revokedFrom {
      items.append(item(transaction.isFamilyRevocation ? "REVOKE" : "REFUND", at: date))
      if let reversed = transaction.refundReversedDate { items.append(item("REFUND_REVERSED", at: reversed)) }
    }
    for change in transaction.changes ?? [] where change.revocationDate != nil {
      items.append(item("REFUND", at: change.from))
      if let reversed = change.refundReversedDate { items.append(item("REFUND_REVERSED", at: reversed)) }
    }
    return items
  }
}
