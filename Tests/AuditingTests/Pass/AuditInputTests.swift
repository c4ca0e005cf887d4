import Foundation
import Logging
import Postgres
import Publishing
import Reconciliation
import Reporting
import Settings
import ShopDatabases
import TestSupport
import Testing

@testable import AuditStore
@testable import Auditing
@testable import Run
@testable import SalesStore
@testable import SampleWorlds

/// The audit passes every fact to the rules. Each pair of orders differs in one fact, and so do their findings.
@Suite struct AuditInputTests {
  private static let asOf = CrowdedShop.asOf
  private static let day = asOf - .days(4)

  @Test func theAuditPassesEveryFactToTheRules() async throws {
    let folder = try TemporaryDirectory()
    var settings = Settings()
    settings.databaseURL = try await PrivatePostgres.shopDatabase()
    settings.apps = [Settings.App(name: "game", bundleId: CrowdedShop.bundle)]
    settings.channel = .verifyReceipt
    settings.reportDirectory = folder.file("")
    settings.formats = [.csv]
    settings.holdShare = .whole
    settings.reviewWindows = [try Period(since: "2026-11-10", until: "2026-11-10", in: settings.timeZone)]
    let session = try await PostgresSession.connect(settings.databaseURL, applicationName: "night-audit tests")
    try await store(FactPairs(session: session))
    await session.close()
    let report = try await CrowdedShop.audit(settings, Self.asOf, folder.file("report"))
    let findings = try said(report["findings.csv"] ?? [])

    // An unanswered receipt does not prevent a finding about another purchase.
    #expect(findings["closed-person"]?["quantity_mismatch"] != nil)
    #expect(findings["open-person"]?["quantity_mismatch"] != nil)
    // Between two orders of one instant, the smaller ID has precedence.
    #expect(findings["supported"]?["duplicate_claim"] != nil && findings["beside-supported"]?["duplicate_claim"] == nil)
    #expect(findings["alone"]?["duplicate_claim"] == nil && findings["beside-alone"]?["duplicate_claim"] != nil)
    #expect(findings["own-token"] == nil)
    #expect(findings["alias-token"]?["wrong_user"] == nil)
    #expect(findings["strange-token"]?["wrong_user"] != nil)
    #expect(findings["no-token"]?["wrong_user"] != nil)
    // A repeated row is a bad row, so its token does not count.
    #expect(findings["repeated"]?["bad_row"] != nil && findings["repeated"]?["wrong_user"] == nil)
    // Goods for an alias of the person, and for another person.
    #expect(findings["to-alias"]?["wrong_user"] == nil && findings["to-other"]?["wrong_user"] != nil)
    // A renewal delivered before its purchase date: signed by Apple before or after the delivery.
    #expect(findings["signed-early"]?["delivered_before_paid"] == nil)
    #expect(findings["signed-late"]?["delivered_before_paid"] != nil)
    #expect(findings["uncatalogued"]?["unknown_product"] != nil && findings["to-other"]?["unknown_product"] == nil)
    #expect(findings["off-sale"]?["sold_outside_catalogue"] != nil)
    #expect(findings["second-copy"]?["bought_twice"] != nil && findings["first-copy"] == nil)
    // App Review purchases on one of the two days.
    #expect(findings["reviewed"]?["delivered_not_paid"] == "minor")
    #expect(findings["reviewed"]?["sandbox_delivered"] == "minor")
    #expect(findings["unreviewed"]?["delivered_not_paid"] == "critical")
    // Two IDs of one person: an accused order carries the amount of the payment, also where filters leave it out.
    #expect(try stakes(report["findings.csv"] ?? []) == ["delivered_not_paid": "9.90", "orphan_payment": ""])
    var plan = try CrowdedShop.plan(settings)
    plan.selection = .narrowed { $0.userId = "account" }
    let audit = Audit(settings: settings, plan: plan, faults: [:], stop: StopSignal(), progress: .quiet)
    let path = folder.file("account")
    _ = try await withBlockingThread { scope in
      try audit.report(scope, destination: .exact(path), saving: nil) { _, _ in }
    }
    #expect(try stakes(try CrowdedShop.tables(path)["findings.csv"] ?? []) == ["orphan_payment": ""])
    let named = ["unknown", "long", "emptied", "renamed", "of-other-app"]
    let accused = named.filter { findings[$0]?["delivered_not_paid"] != nil }
    #expect(accused == ["unknown", "long"])
    let explain = Explain(settings: settings)
    let repeated = try await explain.order("repeated", asOf: Self.asOf).findings
    #expect(!repeated.contains { $0.kind == .wrongUser })
    let unclaimed = try await explain.order("lister", asOf: Self.asOf).findings.first { $0.kind == .orphanPayment }
    #expect(unclaimed?.amount == "9.90" && unclaimed?.atStake == nil)
    for (order, reason) in zip(named, [.notFound, .noEvidence, .notInReceipt, .neverChecked] as [PaymentReason]) {
      let explanation = try await explain.order(Identifier(order), asOf: Self.asOf)
      #expect(explanation.paymentReason == reason, "\(order)")
    }
  }

  private func said(_ rows: [[String]]) throws -> [String: [String: String]] {
    let header = try #require(rows.first)
    let order = try #require(header.firstIndex(of: "order_id"))
    let kind = try #require(header.firstIndex(of: "kind"))
    let severity = try #require(header.firstIndex(of: "severity"))
    return rows.dropFirst().reduce(into: [:]) { $0[$1[order], default: [:]][$1[kind]] = $1[severity] }
  }

  /// The amounts at risk of the order `accused` and the payment `T1-unclaimed`, by kind.
  private func stakes(_ rows: [[String]]) throws -> [String: String] {
    let header = try #require(rows.first)
    let order = try #require(header.firstIndex(of: "order_id"))
    let transaction = try #require(header.firstIndex(of: "transaction_id"))
    let kind = try #require(header.firstIndex(of: "kind"))
    let stake = try #require(header.firstIndex(of: "at_stake"))
    let shared = rows.dropFirst().filter { $0[order] == "accused" || $0[transaction] == "T1-unclaimed" }
    return shared.reduce(into: [:]) { $0[$1[kind]] = $1[stake] }
  }

  private func store(_ pairs: FactPairs) async throws {
    for statement in [
      "CREATE TABLE sales.user_aliases (user_id text, same_as text)",
      "INSERT INTO sales.user_aliases VALUES ('guest', 'account'), ('token-guest', 'token-account')",
      """
      CREATE TABLE sales.products (
        product_id text, type text, name text, sold_from timestamptz, sold_until timestamptz)
      """,
      """
      INSERT INTO sales.products VALUES ('gems', 'Consumable', NULL, NULL, NULL),
        ('sword', 'Non-Consumable', NULL, NULL, NULL), ('old', 'Consumable', NULL, NULL, '2020-01-01')
      """,
    ] { try await pairs.session.execute(statement) }
    for person in ["closed", "open"] {
      try await pairs.order("\(person)-person", by: person, names: "T1-\(person)")
      try await pairs.transaction("T1-\(person)", quantity: 2)
      try await pairs.receipt(
        "r-\(person)", for: "\(person)-person", by: person, containing: ["T1-\(person)"])
      let outcome = person == "open" ? "unanswered" : "verified"
      try await pairs.receipt("later-\(person)", for: nil, by: person, outcome: outcome)
    }
    for named in ["supported", "alone"] {
      try await pairs.transaction("T1-\(named)")
      try await pairs.order(named, by: "u-\(named)", names: "T1-\(named)")
      try await pairs.order("beside-\(named)", by: "other-\(named)")
      try await pairs.receipt(
        "r-\(named)", for: "beside-\(named)", by: "other-\(named)", containing: ["T1-\(named)"])
    }
    try await pairs.receipt("support", for: nil, by: "u-supported", containing: ["T1-supported"])
    let tokens: [(order: String, user: String, own: String?, apple: String, holder: String?)] = [
      ("own-token", "tom", "AAAA-1", "bbbb1", "tom"), ("alias-token", "token-guest", nil, "cccc1", "token-account"),
      ("strange-token", "sue", "dddd1", "eeee1", nil), ("no-token", "ned", nil, "ffff1", "zoe"),
      ("repeated", "ben", nil, "abcd1", nil),
    ]
    for (order, user, own, apple, holder) in tokens {
      try await pairs.order(order, by: user, names: "T1-\(order)", token: own)
      try await pairs.transaction("T1-\(order)", token: apple)
      try await pairs.receipt("r-\(order)", for: order, by: user, containing: ["T1-\(order)"])
      // The order has another product, so its token links it to no transaction.
      if let holder {
        try await pairs.order(
          "holder-\(order)", by: holder, product: "sword", token: apple, delivered: nil)
      }
    }
    try await pairs.session.executeScript(
      """
      ALTER TABLE sales.orders DROP CONSTRAINT orders_pkey;
      INSERT INTO sales.orders (SELECT order_id, 'zoe', bundle_id, product_id, quantity, amount, currency, status,
        transaction_id, 'abcd1', created_at, verified_at, updated_at FROM sales.orders WHERE order_id = 'repeated')
      """)
    for (order, receiver) in [("to-alias", "account"), ("to-other", "stranger")] {
      try await pairs.paidOrder(order, by: "guest", to: receiver)
    }
    try await pairs.order("accused", by: "guest")
    try await pairs.order("lister", by: "account", names: "T1-lister", product: "sword")
    try await pairs.transaction("T1-lister", product: "sword")
    try await pairs.transaction("T1-unclaimed")
    try await pairs.receipt("r-lister", for: "lister", by: "account", containing: ["T1-lister", "T1-unclaimed"])
    try await pairs.session.execute(
      """
      UPDATE night_audit.transactions SET price_milliunits = 9900, currency = 'USD'
      WHERE transaction_id = 'T1-unclaimed'
      """)
    for (order, signed) in [("signed-early", Self.day - .hours(6)), ("signed-late", Self.day - .minutes(1))] {
      try await pairs.order(order, by: order, names: "T1-\(order)", delivered: Self.day - .hours(2))
      try await pairs.transaction("T1-\(order)", original: "first-\(order)", firstSigned: signed)
      try await pairs.receipt("r-\(order)", for: order, by: order, containing: ["T1-\(order)"])
    }
    try await pairs.paidOrder("uncatalogued", by: "ulla", product: "nothing")
    try await pairs.paidOrder("off-sale", by: "olaf", product: "old")
    try await pairs.paidOrder("first-copy", by: "fred", product: "sword", at: Self.day - .days(1))
    try await pairs.paidOrder("second-copy", by: "fred", product: "sword")
    let long = String(repeating: "\u{E9}", count: 300)
    let lookups: [(order: String, named: String?, lookedUp: String)] = [
      ("unknown", "X1", "X1"), ("long", long, long), ("emptied", nil, "X1"), ("renamed", "Y1", "X1"),
      ("of-other-app", "Z1", "Z1"),
    ]
    for (order, named, lookedUp) in lookups {
      try await pairs.order(order, by: order, names: named)
      let app = order == "of-other-app" ? "com.example.other" : CrowdedShop.bundle
      try await pairs.unknown(CheckSubject.lookup(lookedUp, of: app), toldTo: order)
    }
    try await pairs.session.execute("UPDATE sales.orders SET bundle_id = '' WHERE order_id = 'long'")
    try await pairs.receipt("r-emptied", for: "emptied", by: "emptied")
    let reviewDay = Instant(seconds: 1_794_312_000)
    for (order, at) in [("reviewed", reviewDay), ("unreviewed", reviewDay - .days(2))] {
      try await pairs.paidOrder(order, by: order, environment: "Sandbox", at: at)
    }
  }
}

private struct FactPairs {
  let session: PostgresSession
  private static let day = CrowdedShop.asOf - .days(4)

  func paidOrder(
    _ id: String, by user: String, to receiver: String? = nil, product: String = "gems",
    environment: String = "Production", at date: Instant = day
  ) async throws {
    try await order(
      id, by: user, names: "T1-\(id)", product: product, at: date, delivered: date + .minutes(1), to: receiver)
    try await transaction("T1-\(id)", product: product, environment: environment, at: date)
    try await receipt("r-\(id)", for: id, by: user, environment: environment, containing: ["T1-\(id)"])
  }

  func order(
    _ id: String, by user: String, names: String? = nil, product: String = "gems", token: String? = nil,
    at date: Instant = day, delivered: Instant? = day + .minutes(1), to receiver: String? = nil
  ) async throws {
    try await session.execute(
      """
      INSERT INTO sales.orders (order_id, user_id, product_id, quantity, amount, currency, status, transaction_id,
        app_account_token, created_at, updated_at)
      VALUES ($1, $2, $3, 1, 9.90, 'USD', 'verified', $4, $5, $6, $6)
      """,
      [.text(id), .text(user), .text(product), .text(names), .text(token), .timestamp(date.microseconds)])
    guard let delivered else { return }
    try await session.execute(
      """
      INSERT INTO sales.deliveries (delivery_id, order_id, user_id, product_id, quantity, delivered_at)
      VALUES ($1, $1, $2, $3, 1, $4)
      """, [.text(id), .text(receiver ?? user), .text(product), .timestamp(delivered.microseconds)])
  }

  func transaction(
    _ id: String, product: String = "gems", quantity: Int64 = 1, token: String? = nil, original: String? = nil,
    environment: String = "Production", at date: Instant = day, firstSigned: Instant? = nil
  ) async throws {
    try await session.execute(
      """
      INSERT INTO night_audit.transactions (environment, transaction_id, original_transaction_id, bundle_id, product_id,
        quantity, purchased_at, expires_at, revocation_told_at, tells_account_token, app_account_token, is_contradictory,
        is_renewal, channel, signed_at, first_signed_at, checked_at)
      VALUES ($1, $2, coalesce($3, $2), 'com.example.game', $4, $5::bigint, $6,
        CASE WHEN $3 IS NULL THEN NULL ELSE $6 + interval '30 days' END, $8, $7::text IS NOT NULL, $7, false,
        $3 IS NOT NULL, 'serverApi', $8, $9, $8)
      """,
      [
        .text(environment), .text(id), .text(original), .text(product), .int(quantity), .timestamp(date.microseconds),
        .text(token), .timestamp(CrowdedShop.asOf.microseconds), .timestamp(firstSigned?.microseconds),
      ])
  }

  func unknown(_ subject: CheckSubject, toldTo orderId: String) async throws {
    try await session.execute(
      """
      INSERT INTO night_audit.receipt_checks (subject_kind, subject_id, received_at, outcome, reason, last_attempt,
        answered_at)
      VALUES ('lookup', $1, $2, 'not_found', 'not_found', $3, $3) ON CONFLICT DO NOTHING
      """,
      [
        .text(subject.id.text), .timestamp(Self.day.microseconds), .timestamp(CrowdedShop.asOf.microseconds),
      ])
    try await session.execute(
      "INSERT INTO night_audit.lookups VALUES ($1, $2)", [.text(orderId), .text(subject.id.text)])
  }

  func receipt(
    _ id: String, for orderId: String?, by user: String, outcome: String = "verified",
    environment: String = "Production", containing: [String] = []
  ) async throws {
    try await session.execute(
      """
      INSERT INTO sales.receipts (receipt_id, order_id, user_id, payload, status, received_at)
      VALUES ($1, $2, $3, 'x', 'verified', $4)
      """, [.text(id), .text(orderId), .text(user), .timestamp(Self.day.microseconds)])
    try await session.execute(
      """
      INSERT INTO night_audit.receipt_checks (subject_kind, subject_id, order_id, received_at, payload_kind, outcome,
        reason, brought_count, last_attempt)
      VALUES ('receipt', $1, $2, $3, 'app', $4, $5, $6::bigint, $7)
      """,
      [
        .text(id), .text(orderId), .timestamp(Self.day.microseconds), .text(outcome),
        .text(outcome == "verified" ? nil : "unreachable"), .int(Int64(containing.count)),
        .timestamp(CrowdedShop.asOf.microseconds),
      ])
    for transaction in containing {
      try await session.execute(
        "INSERT INTO night_audit.receipt_transactions VALUES ('receipt', $1, $2, $3)",
        [.text(id), .text(environment), .text(transaction)])
    }
  }
}
