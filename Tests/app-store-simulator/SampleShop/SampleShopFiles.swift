import Crypto
import Foundation
import Reconciliation
import SampleShops

struct SampleShopFiles {
  let shop: SampleShop
  let seed: UInt64

  private struct Expected: Encodable {
    struct Order: Encodable {
      var disposition: String
      var findings: [String] = []
    }

    var asOf: String
    var businessDay: String
    var since: String
    var until: String
    var dispositions: [String: Int]
    var findings: [String: Int]
    var orders: [String: Order]
    /// The finding kinds without an order, by transaction, receipt or delivery ID.
    var unowned: [String: String]
  }

  func write(to directory: URL) throws {
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    func write(_ data: Data, _ name: String) throws {
      try data.write(to: directory.appending(path: name), options: .atomic)
    }
    let key = try SampleReports.key(seed: seed)
    let quizKey = try QuizApp.key(seed: seed)
    var random = SampleRandom(seed: seed ^ 0x9A71_0AD5)
    let secret = random.bytes(16).map { String($0 >> 4, radix: 16) + String($0 & 0x0F, radix: 16) }.joined()
    let transactions = shop.appleTransactions
    let (payloads, receipts) = try self.receipts(of: transactions, &random)
    for table in shop.tables(payloads: payloads) { try write(Data(table.csv.utf8), table.name + ".csv") }
    let game: [String: Any] = [
      "bundleId": ShopFixture.bundle, "appAppleId": 1_234_567_890, "sku": SampleReports.sku, "sharedSecret": secret,
    ]
    let other: [String: Any] = ["bundleId": ShopFixture.otherBundle, "appAppleId": 1_234_567_891]
    var world: [String: Any] = [
      "apps": [game, other] + (shop.hasQuiz ? [QuizApp.app(key: quizKey)] : []),
      "transactions": transactions, "receipts": receipts,
      "connect": SampleReports.connect(key: key, rows: shop.reportRows),
    ]
    let options: JSONSerialization.WritingOptions = [.sortedKeys, .withoutEscapingSlashes]
    try write(JSONSerialization.data(withJSONObject: world, options: options), "world.json")
    if shop.hasQuiz {
      let (late, answered) = lateAnswers(receipts, payloads: payloads)
      (world["transactions"], world["receipts"]) = (transactions + late, answered)
      try write(JSONSerialization.data(withJSONObject: world, options: options), "world-answered.json")
    }
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    try write(encoder.encode(expected), "expected.json")
    try write(Data(shop.customers.testers.map { $0 + "\n" }.joined().utf8), "test-users.txt")
    var secrets = ["shared-secret": secret, "AuthKey_\(SampleReports.keyId).p8": key.pemRepresentation]
    if shop.hasQuiz { secrets["SubscriptionKey_\(QuizApp.keyId).p8"] = quizKey.pemRepresentation }
    for (name, text) in secrets { try writeSecret(text, to: directory.appending(path: name).path) }
  }
}

extension SampleShopFiles {
  /// Apple's answers after its outage: each receipt that had no answer contains the purchase of its order.
  private func lateAnswers(
    _ receipts: [[String: Any]], payloads: [Identifier: String]
  ) -> (transactions: [[String: Any]], receipts: [[String: Any]]) {
    var orders: [Identifier: Order] = [:]
    for case .valid(let order) in shop.known.world.orders { orders[order.orderId] = order }
    var purchases: [String: String] = [:]
    var transactions: [[String: Any]] = []
    for receipt in shop.known.world.receipts where receipt.state.outcome == .unanswered {
      guard let payload = payloads[receipt.receiptId], let order = receipt.orderId.flatMap({ orders[$0] }) else {
        continue
      }
      let id = String(2_000_000_600_000_000 + transactions.count * 7_919)
      let type = SampleProduct.all.first { $0.productId == order.productId }?.type ?? .consumable
      purchases[payload] = id
      transactions.append([
        "transactionId": id, "environment": AppleEnvironment.production.rawValue, "bundleId": ShopFixture.bundle,
        "productId": order.productId.text, "type": type.rawValue, "finished": false, "quantity": Int(order.quantity),
        "purchaseDate": (order.createdAt + .seconds(20)).milliseconds, "price": order.amount.milliunits,
        "currency": order.amount.currency.code,
      ])
    }
    let answered = receipts.map { receipt in
      guard let id = (receipt["payload"] as? String).flatMap({ purchases[$0] }) else { return receipt }
      return receipt.merging(["status": 0, "transactions": [id]]) { $1 }
    }
    return (transactions, answered)
  }

  /// Client payloads by receipt ID, and Apple's answers in the format of the world file.
  private func receipts(
    of transactions: [[String: Any]], _ random: inout SampleRandom
  ) throws -> (payloads: [Identifier: String], answered: [[String: Any]]) {
    let world = shop.known.world
    let byId = Dictionary(transactions.map { ($0["transactionId"] as? String ?? "", $0) }) { first, _ in first }
    var payloads: [Identifier: String] = [:]
    var answered: [[String: Any]] = []
    for receipt in world.receipts {
      let contained = world.contained[receipt.receiptId, default: []].map { shop.name($0.transactionId) }.sorted()
      let isOld = receipt.state.kind == .signed
      let payload =
        switch receipt.state.outcome {
        // The payload of a client that sends the text of a missing value.
        case .rejected where receipt.state.reason != .signatureInvalid: "(null)"
        case _ where isOld:
          ReceiptPayload.transaction(
            try JSONDecoder().decode(
              World.Transaction.self, from: JSONSerialization.data(withJSONObject: byId[contained.first ?? ""] ?? [:])),
            signature: Array(random.bytes(96)))
        case .rejected, .verified, .pending, .unanswered, .review, .notFound:
          ReceiptPayload.app(content: random.bytes(64 + 12 * contained.count))
        }
      payloads[receipt.receiptId] = payload
      let isGenuine = receipt.state.outcome != .rejected && receipt.defect == nil
      guard isGenuine, world.copies[receipt.receiptId] == nil else { continue }
      var answer: [String: Any] = [
        "payload": payload, "kind": isOld ? "transaction" : "app", "transactions": contained,
        "environment": (receipt.state.environment ?? .production).rawValue,
        "bundleId": receipt.state.bundleId ?? ShopFixture.bundle,
      ]
      switch receipt.state.outcome {
      case .review: answer["status"] = 21_010
      case .unanswered: answer["status"] = random.pick(21_002, 21_005, 21_009)
      case .pending, .verified, .rejected, .notFound: break
      }
      answered.append(answer)
    }
    for (copy, original) in world.copies { payloads[copy] = payloads[original] }
    return (payloads, answered)
  }

  private var expected: Expected {
    let known = shop.known
    var orders = known.dispositions.mapValues { Expected.Order(disposition: $0.rawValue) }
    var unowned: [String: String] = [:]
    // Reports show findings about a receipt or delivery with its order.
    var owners: [Identifier: Identifier] = [:]
    for receipt in known.world.receipts { owners[receipt.receiptId] = receipt.orderId }
    for delivery in known.world.deliveries { owners[delivery.deliveryId] = delivery.orderId }
    // A lapsed subscription has one finding for each user, which reports show with an order of the subscription.
    var subscribers: [Identifier: Identifier] = [:]
    for (receipt, keys) in known.world.contained {
      for key in keys { subscribers[key.transactionId] = owners[receipt] }
    }
    for case .valid(let order) in known.world.orders {
      if let stated = order.transactionId { subscribers[stated] = order.orderId }
    }
    for finding in known.findings {
      let subscription = finding.subject.text.split(separator: " ").first.map { Identifier(String($0)) }
      let subscriber = finding.kind == .lapsedStillServed ? subscription.flatMap { subscribers[$0] } : nil
      let owner = subscriber ?? owners[finding.subject] ?? finding.subject
      if orders[owner] == nil { unowned[shop.name(finding.subject)] = finding.kind.rawValue }
      orders[owner]?.findings.append(finding.kind.rawValue)
      orders[owner]?.findings.sort()
    }
    return Expected(
      asOf: shop.timeline.asOf.preciseText, businessDay: shop.timeline.businessDay, since: shop.timeline.firstDay,
      until: shop.timeline.lastDay,
      dispositions: Dictionary(known.dispositions.values.map { ($0.rawValue, 1) }, uniquingKeysWith: +),
      findings: Dictionary(known.findings.map { ($0.kind.rawValue, 1) }, uniquingKeysWith: +),
      orders: Dictionary(orders.map { (shop.name($0), $1) }) { first, _ in first }, unowned: unowned)
  }

  /// Creates the file with mode 0600, so that it is never readable by others.
  private func writeSecret(_ secret: String, to path: String) throws {
    try? FileManager.default.removeItem(atPath: path)
    let isWritten = FileManager.default.createFile(
      atPath: path, contents: Data(secret.utf8), attributes: [.posixPermissions: 0o600])
    guard isWritten else { throw CocoaError(.fileWriteUnknown, userInfo: [NSFilePathErrorKey: path]) }
  }
}
