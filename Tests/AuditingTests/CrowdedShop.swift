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

  let orderIds = (0..<60).map { "order-\($0)" }
  private let transactionIds = (0..<70).map { "t\($0)" }
  private var state: UInt64

  init(seed: UInt64) { state = seed }

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
    var settings = Settings()
    if let database {
      settings.databaseURL = database
    } else {
      settings.databaseURL = try await PrivatePostgres.shared().createDatabase()
    }
    settings.apps = [Settings.App(name: "game", bundleId: Self.bundle)]
    settings.channel = .verifyReceipt
    settings.testUsers = ["user-0"]
    // Half of the orders accuse somebody; nobody holds that here.
    settings.holdShare = 1
    settings.reportDirectory = reports
    settings.formats = [.csv]
    let session = try await PostgresSession.connect(settings.databaseURL, applicationName: "night-audit tests")
    try await session.withConnection { connection in
      try SalesSchema.create("sales", connection)
      _ = try Migrator.migrate(connection)
    }
    for id in orderIds { try await insert(order: id, session) }
    for number in 0..<60 { try await insert(delivery: "d\(number)", session) }
    let connect: @Sendable () async throws -> PostgresSession = { [url = settings.databaseURL] in
      try await PostgresSession.connect(url, applicationName: "night-audit tests")
    }
    let queue = try await CheckQueue.open(
      settings: settings, asOf: Self.asOf, selection: Selection(), connect: connect, connectSales: connect)
    var results: [CheckResult] = []
    for number in 0..<90 { results.append(try await insert(receipt: number, session)) }
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
      for start in stride(from: share.startIndex, to: share.endIndex, by: 20) {
        try await writer.write(Array(share[start..<min(start + 20, share.endIndex)]))
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

  private mutating func insert(order id: String, _ session: PostgresSession) async throws {
    let named = oneIn(2) ? nil : "t\(Int.random(in: 0..<12, using: &self))"
    try await session.execute(
      """
      INSERT INTO sales.orders (order_id, user_id, product_id, quantity, amount, currency, status, transaction_id,
        app_account_token, created_at, updated_at)
      VALUES ($1, $2, $3, $4::bigint, $5::text::numeric, $6, $7, $8, $9, $10, $10)
      """,
      [
        .text(id), .text(user()), .text(product()), .int(pick([1, 1, 1, 2])),
        .text(pick(["9.90", "9.90", "0.99", "9.999"])),
        .text("USD"), .text(pick(["pending", "verified", "verified", "failed", "cancelled", "refunded"])), .text(named),
        .text(pick([nil, nil, "aaaa-1", "bbbb-2"])), .timestamp(time().microseconds),
      ])
  }

  private mutating func insert(delivery id: String, _ session: PostgresSession) async throws {
    let (delivered, isRevoked) = (time(), oneIn(6))
    try await session.execute(
      """
      INSERT INTO sales.deliveries (delivery_id, order_id, user_id, product_id, quantity, delivered_at, revoked_at)
      VALUES ($1, $2, $3, $4, $5::bigint, $6, $7)
      """,
      [
        .text(id), .text(oneIn(20) ? nil : orderIds.randomElement(using: &self)), .text(user()), .text(product()),
        .int(pick([1, 1, 1, 2, 0])), .timestamp(delivered.microseconds),
        .timestamp(isRevoked ? (delivered + .hours(2)).microseconds : nil),
      ])
  }

  /// Inserts a receipt and returns what asking about it came to.
  private mutating func insert(receipt number: Int, _ session: PostgresSession) async throws -> CheckResult {
    let id = "r\(number)"
    let order = oneIn(12) ? nil : orderIds.randomElement(using: &self)
    let (sender, claimed, receivedAt) = (user(), pick([nil, "Production", "Sandbox"]), time())
    try await session.execute(
      """
      INSERT INTO sales.receipts (receipt_id, order_id, user_id, payload, environment, status, received_at)
      VALUES ($1, $2, $3, 'payload', $4, 'unverified', $5)
      """,
      [.text(id), .text(order), .text(sender), .text(claimed), .timestamp(receivedAt.microseconds)])
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
      result.reason = .signatureInvalid
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
    return result
  }

  /// One that nobody else has, or one that many want.
  private mutating func transaction(of number: Int) -> String {
    oneIn(2) ? "t\(1_000 + number)" : transactionIds.randomElement(using: &self) ?? "t0"
  }

  /// What Apple says about a transaction is the same whoever asks.
  private func fact(_ id: String) -> TransactionFact {
    var own = CrowdedShop(seed: UInt64(id.dropFirst()) ?? 0)
    var fact = TransactionFact(
      environment: own.pick([.production, .production, .production, .production, .sandbox]), transactionId: id,
      productId: own.product(), channel: own.pick([.verifyReceipt, .serverApi]), signedDate: Self.asOf - .hours(1))
    fact.bundleId = own.oneIn(15) ? "com.example.other" : Self.bundle
    fact.quantity = own.pick([1, 1, 2])
    fact.purchaseDate = own.time()
    fact.originalPurchaseDate = fact.purchaseDate
    fact.isRenewal = own.oneIn(10)
    fact.ownership = own.oneIn(15) ? .familyShared : .purchased
    fact.appAccountToken = own.pick([.silent, .silent, .says("AAAA1"), .says("bbbb-2")])
    if own.oneIn(5) { fact.revocation = .says(Revocation(date: own.time())) } else { fact.revocation = .says(nil) }
    return fact
  }

  // MARK: - Chance

  /// So many that some of them have no open receipt, or nothing would be compared.
  private mutating func user() -> String { "user-\(Int.random(in: 0..<25, using: &self))" }
  private mutating func product() -> String { pick(["gems", "gems", "coins"]) }
  private mutating func time() -> Instant {
    Self.asOf - .minutes(Int64.random(in: 10...(6 * 24 * 60), using: &self))
  }
  private mutating func oneIn(_ times: Int) -> Bool { Int.random(in: 1...times, using: &self) == 1 }
  private mutating func pick<Choice>(_ choices: [Choice]) -> Choice {
    choices[Int.random(in: 0..<choices.count, using: &self)]
  }
}

extension CrowdedShop: RandomNumberGenerator {
  /// SplitMix64 (Steele, Lea, Flood 2014).
  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return mixed ^ (mixed >> 31)
  }
}
