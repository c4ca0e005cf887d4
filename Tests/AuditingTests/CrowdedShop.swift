import AppStore
import Foundation
import Postgres
import Reconciliation
import Reporting
import TestSupport

@testable import Asking
@testable import AuditStore
@testable import Run
@testable import SalesStore

/// A shop of few users and products in which everybody claims everything: names are shared, receipts bring what others
/// bought, proofs are forged, open or missing. Written as a night would have left it.
struct CrowdedShop {
  static let asOf = Instant(seconds: 1_795_132_800)
  static let bundle = "com.example.game"

  private static let second = "com.example.second"

  let orderIds: [String]
  private let transactionIds = (0..<70).map { "t\($0)" }
  private let seed: UInt64
  private let prefix: String
  private let isWide: Bool
  private var state: SeededGenerator

  init(seed: UInt64) { self.init(seed: seed, prefix: "", isWide: false) }

  /// - Parameters:
  ///   - prefix: of all ids.
  ///   - isWide: whether there are two apps, rows without one, restores, unreadable payloads, and ids that orders, receipts
  ///     and deliveries have in common.
  private init(seed: UInt64, prefix: String, isWide: Bool) {
    self.seed = seed
    self.prefix = prefix
    self.isWide = isWide
    state = SeededGenerator(seed: seed)
    orderIds = (0..<60).map { prefix + "order-\($0)" }
  }

  /// In which order answers come, and over how many nights.
  struct Arrival: Hashable, Sendable, CustomStringConvertible {
    var seed: UInt64
    var nights: Int
    var description: String { "order \(seed) over \(nights) nights" }
  }

  /// Fills a database of its own and returns the settings to audit it with.
  ///
  /// - Parameters:
  ///   - database: an empty one; nil makes one.
  ///   - arrival: nil: all answers at once.
  ///   - audit: what each night but the last one does when its answers have come.
  mutating func load(
    reports: String, database: String? = nil, arrival: Arrival? = nil,
    audit: (Settings, Instant) async throws -> Void = { _, _ in }
  ) async throws -> Settings {
    var shops = [self]
    return try await Self.load(&shops, reports: reports, database: database, arrival: arrival, audit: audit)
  }

  /// Several worlds that share nothing but a database, each wide.
  ///
  /// - Parameter seeds: of the worlds.
  static func load(
    wide seeds: Range<UInt64>, reports: String, arrival: Arrival, audit: (Settings, Instant) async throws -> Void
  ) async throws -> Settings {
    var shops = seeds.map { CrowdedShop(seed: $0, prefix: "w\($0)-", isWide: true) }
    return try await load(&shops, reports: reports, database: nil, arrival: arrival, audit: audit)
  }

  private static func load(
    _ shops: inout [CrowdedShop], reports: String, database: String?, arrival: Arrival?,
    audit: (Settings, Instant) async throws -> Void
  ) async throws -> Settings {
    var settings = Settings()
    if let database {
      settings.databaseURL = database
    } else {
      settings.databaseURL = try await PrivatePostgres.shared().createDatabase()
    }
    settings.apps = [Settings.App(name: "game", bundleId: Self.bundle)]
    settings.channel = .verifyReceipt
    if shops.contains(where: \.isWide) { settings.apps.append(Settings.App(name: "second", bundleId: second)) }
    settings.testUsers = shops.map { $0.prefix + "user-0" }
    // Half of the orders accuse somebody; nobody holds that here.
    settings.holdShare = 1
    settings.reportDirectory = reports
    settings.formats = [.csv]
    let session = try await PostgresSession.connect(settings.databaseURL, applicationName: "night-audit tests")
    try await session.withConnection { connection in
      try SalesSchema.create("sales", connection)
      _ = try Migrator.migrate(connection)
    }
    var (rows, results): ([String], [CheckResult]) = ([], [])
    for place in shops.indices { results += shops[place].fill(&rows) }
    try await session.executeScript(rows.joined(separator: "\n"))
    let connect: @Sendable () async throws -> PostgresSession = { [url = settings.databaseURL] in
      try await PostgresSession.connect(url, applicationName: "night-audit tests")
    }
    let queue = try await CheckQueue.open(
      settings: settings, asOf: Self.asOf, selection: Selection(), connect: connect, connectSales: connect)
    try await queue.enqueue()
    // What was never asked stays so.
    results.removeAll { $0.outcome == .pending }
    if let arrival {
      var chance = CrowdedShop(seed: arrival.seed)
      results.shuffle(using: &chance)
    }
    let nights = arrival?.nights ?? 1
    let store = OpenSession(open: connect)
    for night in 1...nights {
      let asOf = Self.asOf - .days(Int64(nights - night))
      let writer = AnswerWriter(session: store, asOf: asOf, runId: Self.runId, settings: settings)
      let share = results.prefix((results.count + nights - night) / (nights - night + 1))
      results.removeFirst(share.count)
      // Several batches: what is folded from two of them must be as from one.
      for start in stride(from: share.startIndex, to: share.endIndex, by: 20 * shops.count) {
        try await writer.write(Array(share[start..<min(start + 20 * shops.count, share.endIndex)]))
      }
      _ = try await store.withConnection { [settings] in
        try FirstAnswersTable.decide(asOf: asOf, settings: settings, on: $0)
      }
      if night < nights { try await audit(settings, asOf) }
    }
    await store.close()
    await queue.close()
    await session.close()
    return settings
  }

  private static let runId = "6f0e7a52-6f0d-4a3b-9c50-0e2a5b1c7d11"

  // MARK: - Rows

  /// Writes the world's rows and returns what asking about its receipts came to.
  private mutating func fill(_ rows: inout [String]) -> [CheckResult] {
    for id in orderIds { rows.append(order(id)) }
    for number in 0..<60 { rows.append(delivery(prefix + (isWide ? "order-" : "d") + "\(number)")) }
    return (0..<90).map { number in
      let (row, result) = receipt(number)
      rows.append(row)
      return result
    }
  }

  private static func insert(_ table: String, _ columns: String, _ values: String...) -> String {
    "INSERT INTO sales.\(table) (\(columns)) VALUES (\(values.joined(separator: ", ")));"
  }

  private static func sql(_ text: String?) -> String { text.map { "'\($0)'" } ?? "NULL" }

  private static func sql(_ time: Instant?) -> String {
    time.map { "timestamptz 'epoch' + \($0.microseconds) * interval '1 microsecond'" } ?? "NULL"
  }

  private mutating func order(_ id: String) -> String {
    let named = oneIn(2) ? nil : prefix + "t\(Int.random(in: 0..<12, using: &self))"
    let (user, product, quantity) = (user(), product(), pick([1, 1, 1, 2]))
    let amount = pick(["9.90", "9.90", "0.99", "9.999"])
    let status = pick(["pending", "verified", "verified", "failed", "cancelled", "refunded"])
    let (token, created) = (pick([nil, nil, "aaaa-1", "bbbb-2"]), time())
    // With two apps NULL is no app.
    let bundle: String? = isWide ? pick([nil] + Array(repeating: Self.bundle, count: 8) + [Self.second]) : nil
    return Self.insert(
      "orders",
      """
      order_id, user_id, bundle_id, product_id, quantity, amount, currency, status, transaction_id, app_account_token,
      created_at, updated_at
      """, Self.sql(id), Self.sql(user), Self.sql(bundle), Self.sql(product), "\(quantity)", amount, "'USD'",
      Self.sql(status), Self.sql(named), Self.sql(token), Self.sql(created), Self.sql(created))
  }

  private mutating func delivery(_ id: String) -> String {
    let (delivered, isRevoked) = (time(), oneIn(6))
    let order = oneIn(20) ? nil : orderIds.randomElement(using: &self)
    let (user, product, quantity) = (user(), product(), pick([1, 1, 1, 2, 0]))
    return Self.insert(
      "deliveries", "delivery_id, order_id, user_id, product_id, quantity, delivered_at, revoked_at", Self.sql(id),
      Self.sql(order), Self.sql(user), Self.sql(product), "\(quantity)", Self.sql(delivered),
      Self.sql(isRevoked ? delivered + .hours(2) : nil))
  }

  /// A receipt's row, and what asking about it came to.
  private mutating func receipt(_ number: Int) -> (row: String, result: CheckResult) {
    let id = prefix + (isWide ? "order-" : "r") + "\(number)"
    let order = oneIn(12) ? nil : orderIds.randomElement(using: &self)
    let (sender, claimed, receivedAt) = (user(), pick([nil, "Production", "Sandbox"]), time())
    let row = Self.insert(
      "receipts", "receipt_id, order_id, user_id, payload, environment, status, received_at", Self.sql(id),
      Self.sql(order), Self.sql(sender), "'payload'", Self.sql(claimed), "'unverified'", Self.sql(receivedAt))
    let due = DueCheck(
      subject: CheckSubject(kind: .receipt, id: Identifier(id)), matter: .receipt(payload: "payload"),
      orderId: order.map { Identifier($0) }, receivedAt: receivedAt)
    var result = CheckResult(context: due.context, kind: .app, outcome: .verified, channel: .verifyReceipt)
    result.environment = .production
    result.bundleId = Self.bundle
    switch Int.random(in: 0..<24, using: &self) {
    case 0: result.outcome = .pending
    case 1:
      result.outcome = .rejected
      result.reason = isWide ? pick([.signatureInvalid, .malformed]) : .signatureInvalid
      result.environment = nil
    case 2:
      result.outcome = .unanswered
      result.reason = .unreachable
      result.environment = nil
    case 3: break
    case 4...9:
      result.kind = .signed
      let known = fact(transaction(of: number))
      result.facts = [known]
      result.signedTransactionId = known.transactionId
      result.environment = known.environment
    default:
      let ids = (0..<Int.random(in: 1...4, using: &self)).map { _ in transaction(of: number) }
      result.facts = Set(ids).sorted().map { fact($0) }
    }
    result.broughtCount = result.facts.count
    return (row, result)
  }

  /// One that nobody else has, or one that many want.
  private mutating func transaction(of number: Int) -> String {
    prefix + (oneIn(2) ? "t\(1_000 + number)" : transactionIds.randomElement(using: &self) ?? "t0")
  }

  /// What Apple says about a transaction is the same whoever asks.
  private func fact(_ id: String) -> TransactionFact {
    let number = UInt64(id.dropFirst(prefix.count + 1)) ?? 0
    var own = CrowdedShop(seed: number &+ seed &* (isWide ? 10_007 : 0))
    var fact = TransactionFact(
      environment: own.pick([.production, .production, .production, .production, .sandbox]), transactionId: id,
      productId: own.product(), channel: own.pick([.verifyReceipt, .serverApi]), signedDate: Self.asOf - .hours(1))
    fact.bundleId = own.oneIn(15) ? (isWide ? Self.second : "com.example.other") : Self.bundle
    fact.quantity = own.pick([1, 1, 2])
    fact.purchaseDate = own.time()
    fact.originalPurchaseDate = fact.purchaseDate
    fact.isRenewal = own.oneIn(10)
    fact.ownership = own.oneIn(15) ? .familyShared : .purchased
    fact.appAccountToken = own.pick([.silent, .silent, .says("AAAA1"), .says("bbbb-2")])
    if own.oneIn(5) { fact.revocation = .says(Revocation(date: own.time())) } else { fact.revocation = .says(nil) }
    // A restore: another id for what was bought before.
    if isWide, own.oneIn(8) {
      fact.isRenewal = nil
      fact.originalTransactionId = prefix + "t\(Int.random(in: 0..<12, using: &own))"
      fact.originalPurchaseDate = own.time() - .days(own.pick([0, 9]))
    }
    return fact
  }

  // MARK: - Chance

  /// So many that some of them have no open receipt, or nothing would be compared.
  private mutating func user() -> String { prefix + "user-\(Int.random(in: 0..<25, using: &self))" }
  private mutating func product() -> String { pick(["gems", "gems", "coins"]) }
  private mutating func time() -> Instant {
    Self.asOf - .minutes(Int64.random(in: 10...(6 * 24 * 60), using: &self))
  }
  private mutating func oneIn(_ times: Int) -> Bool { Int.random(in: 1...times, using: &self) == 1 }
  private mutating func pick<Choice>(_ choices: [Choice]) -> Choice {
    choices[Int.random(in: 0..<choices.count, using: &self)]
  }
}

extension CrowdedShop {
  /// Rows of somebody of whom everything is known, and who bought the same twice.
  static let buyerOfTwo = """
    INSERT INTO sales.orders (order_id, user_id, product_id, quantity, amount, currency, status, transaction_id, created_at,
        updated_at)
      SELECT 'order-8' || number, 'buyer of two', 'gems', 1, 9.90, 'USD', 'verified', 'buyer-' || number, bought, bought
      FROM (SELECT number, timestamptz 'epoch' + (\((asOf - .days(2)).microseconds) + number)
        * interval '1 microsecond' AS bought FROM generate_series(1, 2) number) two;
    INSERT INTO night_audit.transactions (environment, transaction_id, original_transaction_id, bundle_id, product_id,
        quantity, purchased_at, tells_revocation, tells_account_token, is_contradictory, channel, signed_at, checked_at)
      SELECT 'Production', transaction_id, transaction_id, '\(bundle)', product_id, 1, created_at, true, false, false,
        'serverApi', created_at, created_at
      FROM sales.orders WHERE user_id = 'buyer of two';
    """
}

extension CrowdedShop: RandomNumberGenerator {
  mutating func next() -> UInt64 { state.next() }
}
