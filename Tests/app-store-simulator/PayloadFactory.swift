import Foundation

/// Makes signed payloads of clients, for receipts in a shop.
struct PayloadFactory: Sendable {
  struct Order: Decodable, Sendable {
    enum Form: String, Decodable, Sendable {
      case signed
      case app
      case transaction
      case notification
      case renewalInfo
      /// Proof of the app's download, without purchases.
      case appTransaction
    }

    var form: Form
    var transactions: [String]
    var environment: World.Environment?
    var bundleId: String?
    var signedDate: Int64?
    var type: String?
    var damage: TransportDamage?
  }

  /// A payload, and its receipt for verifyReceipt.
  struct Product: Sendable {
    var payload: String
    var receipt: World.Receipt?
  }

  struct Failure: Error, CustomStringConvertible { var description: String }

  var authority: SigningAuthority
  var receipts: ReceiptAuthority
  var world: World
  var time: SimulatedClock.Reading

  func make(_ order: Order) throws -> Product {
    let environment = order.environment ?? .production
    let listed = try order.transactions.map { id in
      guard let transaction = world.transaction(id: id, environment: environment) else {
        throw Failure(description: "the world has no transaction \(id) in \(environment.rawValue)")
      }
      return transaction
    }
    let signedDate = order.signedDate ?? time.now
    let payloads = SignedPayloads(authority: authority, signedDate: signedDate, horizon: signedDate)
    let bundleId = try order.bundleId ?? listed.first?.bundleId ?? { throw Failure(description: "no bundleId") }()
    let first = { () throws -> World.Transaction in
      guard let first = listed.first else { throw Failure(description: "no transactions") }
      return first
    }
    var receipt: World.Receipt?
    let payload: String
    switch order.form {
    case .signed: payload = try payloads.transaction(first())
    case .renewalInfo: payload = try payloads.renewalInfo(first())
    case .notification:
      payload = try payloads.notification(
        NotificationFeed.Item(
          type: order.type ?? "ONE_TIME_CHARGE", transaction: first(), environment: environment, bundleId: bundleId,
          signedDate: signedDate), in: world)
    case .appTransaction:
      payload = try authority.sign([
        "receiptType": environment.rawValue, "bundleId": bundleId, "receiptCreationDate": signedDate,
        "appAppleId": world.app(bundleId: bundleId)?.appAppleId ?? 0, "originalApplicationVersion": "1.0",
      ])
    case .app:
      let content = AppReceiptContent(
        environment: environment, bundleId: bundleId, creationDate: signedDate,
        transactions: listed.map { $0.changed(by: signedDate) })
      payload = Data(try receipts.appReceipt(content: content.bytes)).base64EncodedString()
      receipt = World.Receipt(
        payload: payload, kind: .app, environment: environment, bundleId: bundleId,
        transactions: listed.map(\.transactionId), creationDate: signedDate)
    case .transaction:
      payload = ReceiptPayload.transaction(try first())
      receipt = World.Receipt(
        payload: payload, kind: .transaction, environment: environment, bundleId: bundleId,
        transactions: [try first().transactionId])
    }
    return Product(payload: order.damage?.applied(to: payload) ?? payload, receipt: receipt)
  }
}

/// The attributes of an app receipt (Apple: Receipt Fields).
private struct AppReceiptContent {
  var environment: World.Environment
  var bundleId: String
  var creationDate: Int64
  var transactions: [World.Transaction]

  var bytes: [UInt8] {
    let attributes = [
      Self.attribute(0, DER.utf8(environment == .production ? "Production" : "ProductionSandbox")),
      Self.attribute(2, DER.utf8(bundleId)), Self.attribute(3, DER.utf8("1")),
      Self.attribute(12, DER.ia5(Self.date(creationDate))), Self.attribute(19, DER.utf8("1.0")),
    ]
    return DER.set(attributes + transactions.map { Self.attribute(17, DER.set(purchase($0))) })
  }

  private func purchase(_ transaction: World.Transaction) -> [[UInt8]] {
    let type: Int64 =
      switch transaction.type {
      case .nonConsumable: 0
      case .consumable: 1
      case .nonRenewing: 2
      case .autoRenewable: 3
      }
    let cancellationDate = transaction.cancellationDate(at: creationDate)
    return [
      Self.attribute(1701, DER.integer(Int64(transaction.quantity ?? 1))),
      Self.attribute(1702, DER.utf8(transaction.productId)),
      Self.attribute(1703, DER.utf8(transaction.transactionId)),
      Self.attribute(1704, DER.ia5(Self.date(transaction.purchaseDate))),
      Self.attribute(1705, DER.utf8(transaction.originalId)),
      Self.attribute(1706, DER.ia5(Self.date(transaction.originalPurchaseDate ?? transaction.purchaseDate))),
      Self.attribute(1707, DER.integer(type)),
      Self.attribute(1708, DER.ia5(transaction.expiresDate.map(Self.date) ?? "")),
      Self.attribute(1711, DER.integer(transaction.webOrderLineItemId.flatMap { Int64($0) } ?? 0)),
      Self.attribute(1712, DER.ia5(cancellationDate.map(Self.date) ?? "")),
    ]
  }

  private static func attribute(_ type: Int64, _ value: [UInt8]) -> [UInt8] {
    DER.sequence(DER.integer(type), DER.integer(1), DER.octets(value))
  }

  private static func date(_ milliseconds: Int64) -> String {
    Date(timeIntervalSince1970: Double(milliseconds) / 1_000).formatted(.iso8601)
  }
}
