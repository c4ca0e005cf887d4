import Foundation
import Postgres
import TestSupport
import Testing

/// Nights with Apple's notifications: refunds, renewals and payments that the shop has no row for.
@Suite struct SweepTests {
  private static let start = SignedShop.start
  private static let day = SignedShop.day
  private static let hour: Int64 = 3_600_000
  private static let sweptTypes = 14

  private func findings(_ shop: SignedShop, night: String) throws -> Set<String> {
    Set(
      try shop.table("findings", night).map {
        "\($0["kind"] ?? "") \($0["transaction_id"] ?? "") \($0["order_id"] ?? "")"
      })
  }

  /// Expects that a repetition of the night has the same files.
  private func expectSameFiles(_ shop: SignedShop, _ names: String..., night number: Int64, status: Int32) async throws
  {
    let again = shop.directory.file("again")
    try await shop.nightAudit("reconcile", "--as-of", SignedShop.asOf(number), "--out", again, exits: [status])
    for name in names {
      let day = SignedShop.asOf(number - 1).prefix(10)
      #expect(try shop.file(name, again) == shop.file(name, String(day)), "\(name)")
    }
  }

  private func reasons(_ shop: SignedShop, night: String) throws -> [String] {
    try shop.summary(night)["incomplete_reasons"] as? [String] ?? []
  }

  @Test func ownersAreFoundByAccountTokenAndByAnyTransactionID() async throws {
    let (token, sold) = ("0A000000-0000-4000-8000-000000000001", Self.start - 20 * Self.hour)
    let period: [String: Any] = [
      "productId": "gold", "type": "Auto-Renewable Subscription", "originalTransactionId": "3001",
      "webOrderLineItemId": "77", "purchaseDate": sold, "originalPurchaseDate": sold,
      "expiresDate": Self.start + 20 * Self.day,
    ]
    let shop = try await SignedShop(sales: [
      ["transactionId": "2001", "purchaseDate": sold, "appAccountToken": token],
      period.merging(["transactionId": "3001"]) { $1 },
      period.merging(["transactionId": "3002", "revocationDate": Self.start - 5 * Self.hour]) { $1 },
      ["transactionId": "4001", "purchaseDate": sold, "price": 0],
    ])
    try await shop.sell("monthly", naming: "3001", at: sold, product: "gold")
    for (id, naming) in [("crashed", ""), ("present", "(null)"), ("abandoned", "null")] {
      try await shop.sell(id, naming: naming, at: sold)
    }
    try await shop.execute(
      """
      DELETE FROM sales.deliveries WHERE order_id IN ('crashed', 'abandoned');
      UPDATE sales.orders SET status = 'pending', verified_at = NULL WHERE order_id IN ('crashed', 'abandoned');
      UPDATE sales.orders SET app_account_token = '\(token.lowercased())' WHERE order_id = 'crashed';
      UPDATE sales.orders SET amount = 0 WHERE order_id = 'present';
      """)
    try await shop.night(0, exits: [0])
    let orders = try shop.table("orders", "2026-11-19").map {
      "\($0["order_id"] ?? "") \($0["disposition"] ?? "") \($0["payment_reason"] ?? "") \($0["transaction_id"] ?? "")"
    }
    #expect(
      Set(orders) == [
        "crashed paid_not_delivered  2001", "monthly refunded_still_delivered  3001", "present settled nothing_to_pay ",
        "abandoned void never_paid ",
      ])
    #expect(
      try findings(shop, night: "2026-11-19") == [
        "paid_not_delivered 2001 crashed", "refunded_still_delivered 3001 monthly", "refund_not_booked 3001 monthly",
        "unclaimed_redemption 4001 ",
      ])
    #expect(
      try await shop.value(
        "SELECT string_agg(transaction_id || ' ' || order_id, ', ' ORDER BY transaction_id) FROM night_audit.claims")
        == "2001 crashed, 3001 monthly, 3002 monthly")
    let explained = try await shop.nightAudit("explain", "crashed", "--as-of", SignedShop.asOf(0))
    #expect(explained.status == 0 && !explained.output.contains("No known transaction"), "\(explained)")
  }

  @Test func refundsAreFoundThroughNotifications() async throws {
    let shop = try await SignedShop(sales: [
      [
        "transactionId": "1001", "purchaseDate": Self.start - 5 * Self.day,
        "revocationDate": Self.start + 12 * Self.hour, "refundReversedDate": Self.start + 36 * Self.hour,
      ],
      ["transactionId": "1002", "purchaseDate": Self.start - 4 * Self.day],
      ["transactionId": "1003", "purchaseDate": Self.start + 6 * Self.hour],
      [
        "transactionId": "1004", "purchaseDate": Self.start - 20 * Self.day, "productId": "gold",
        "type": "Auto-Renewable Subscription", "expiresDate": Self.start + 8 * Self.hour,
      ],
      [
        "transactionId": "1005", "originalTransactionId": "1004", "purchaseDate": Self.start + 8 * Self.hour,
        "originalPurchaseDate": Self.start - 20 * Self.day, "productId": "gold",
        "type": "Auto-Renewable Subscription", "expiresDate": Self.start + 30 * Self.day,
        "transactionReason": "RENEWAL",
      ],
      ["transactionId": "1006", "environment": "Sandbox", "purchaseDate": Self.start - 4 * Self.day],
    ])
    try await shop.sell("o1", naming: "1001", at: Self.start - 5 * Self.day)
    try await shop.sell("o2", naming: "1002", at: Self.start - 4 * Self.day)
    try await shop.sell("o4", naming: "1004", at: Self.start - 20 * Self.day, product: "gold")

    try await shop.night(0, exits: [0])
    #expect(try findings(shop, night: "2026-11-19").isEmpty)
    // Transactions notified within a week are not requested; the subscription began before.
    #expect(try shop.requests("/production/inApps/v1/transactions") == 1)
    #expect(
      try await shop.value(
        "SELECT string_agg(transaction_id || ' ' || order_id, ', ' ORDER BY transaction_id) FROM night_audit.claims"
      )
        == "1001 o1, 1002 o2, 1004 o4")

    try await shop.night(1, exits: [0])
    #expect(
      try findings(shop, night: "2026-11-20") == [
        "refunded_still_delivered 1001 o1", "refund_not_booked 1001 o1", "orphan_payment 1003 ",
        "renewal_without_order 1005 ",
      ])
    #expect(
      try await shop.value(
        """
        SELECT string_agg(channel, ',' ORDER BY channel) FROM night_audit.evidence
        WHERE transaction_id IN ('1001', '1003', '1005') AND (revoked_at IS NOT NULL OR transaction_id > '1001')
        """) == "notification,notification,notification,serverApi")
    let run = try #require(
      try JSONSerialization.jsonObject(with: shop.file("run.json", "2026-11-20")) as? [String: Any])
    let sweep = (run["apple"] as? [String: Any])?["sweep"] as? [String: Any]
    #expect(sweep?["new_facts"] as? Int == 4)
    try await expectSameFiles(shop, "findings.csv", "orders.csv", "summary.json", night: 1, status: 0)

    let history = "/production/inApps/v2/history"
    #expect(try shop.requests(history, about: "1003") == 1)
    #expect(
      try await shop.value(
        "SELECT count(*) FROM night_audit.histories WHERE transaction_id = '1003' AND reason IS NULL")
        == "1")

    try await shop.night(2, exits: [0])
    #expect(try findings(shop, night: "2026-11-21") == ["orphan_payment 1003 ", "renewal_without_order 1005 "])
    #expect(try shop.requests(history, about: "1003") == 1)
    #expect(try shop.requests("/sandbox/inApps/v1/notifications") == 0)
  }

  @Test func refundRequestsAreListedUntilAppleDecidesThem() async throws {
    func sale(_ id: String, _ more: [String: Any]) -> [String: Any] {
      ["transactionId": id, "purchaseDate": Self.start - 5 * Self.day].merging(more) { $1 }
    }
    let asked = Self.start - 2 * Self.hour
    let shop = try await SignedShop(sales: [
      sale("1001", ["consumptionRequestDate": asked, "consumptionRequestReason": "FULFILLMENT_ISSUE"]),
      sale("1002", ["consumptionRequestDate": asked, "revocationDate": Self.start + Self.hour]),
      sale("1003", ["consumptionRequestDate": asked, "refundDeclinedDate": Self.start + 2 * Self.hour]),
      sale("1004", ["consumptionRequestDate": Self.start + Self.hour]),
      sale("1005", ["revocationDate": Self.start - Self.day]),
    ])
    for id in ["1001", "1002", "1003", "1005"] {
      try await shop.sell("o\(id)", naming: id, at: Self.start - 5 * Self.day)
    }
    try await shop.execute("DELETE FROM sales.deliveries WHERE order_id = 'o1001'")
    func requests(_ folder: String) throws -> [String] {
      try shop.table("refund-requests", folder).map { row in
        ["transaction_id", "order_id", "deadline", "reason", "delivery_status", "refunds_before"].map { row[$0] ?? "" }
          .joined(separator: " ")
      }
    }
    let deadline = SignedShop.text(asked + 12 * Self.hour)
    let first = [
      "1001 o1001 \(deadline) FULFILLMENT_ISSUE UNDELIVERED_OTHER 1", "1002 o1002 \(deadline)  DELIVERED 1",
      "1003 o1003 \(deadline)  DELIVERED 1",
    ]
    try await shop.night(0, exits: [0])
    #expect(try requests("2026-11-19") == first)
    try await shop.night(1, exits: [0])
    #expect(try requests("2026-11-20").map { String($0.prefix(11)) } == ["1001 o1001 ", "1004  2026-"])
    // A repetition of the first night hides Apple's later decisions.
    try await expectSameFiles(shop, "refund-requests.csv", night: 0, status: 0)
  }

  /// 60 sales with orders, and five payments without orders.
  @Test(arguments: [true, false]) func coverageOfTheFeedIsReported(_ sendsNotifications: Bool) async throws {
    let sales = (1...65).map { number -> [String: Any] in
      ["transactionId": "\(10_000 + number)", "purchaseDate": Self.start - Int64(number + 1) * Self.hour]
    }
    let shop = try await SignedShop(
      sales: sales, sendsNotifications: sendsNotifications, formats: "csv, xlsx")
    let metrics = shop.directory.file("night_audit.prom")
    try shop.configure("metrics:\n  textfile: \(metrics)")
    try await shop.execute(
      """
      INSERT INTO sales.orders (order_id, user_id, bundle_id, product_id, quantity, amount, currency, status,
        transaction_id, created_at, verified_at, updated_at)
      SELECT 'o' || n, 'u' || n, 'com.example.game', 'gems.100', 1, 1.99, 'USD', 'verified', (10000 + n)::text, t, t, t
      FROM generate_series(1, 60) n, LATERAL (SELECT to_timestamp(\(Self.start / 1_000)) - (n + 1) * interval '1 hour') s (t);
      INSERT INTO sales.deliveries (delivery_id, order_id, user_id, product_id, quantity, delivered_at)
      SELECT 'd-' || order_id, order_id, user_id, product_id, 1, created_at FROM sales.orders
      """)
    let night = try await shop.night(0, exits: [0])
    let summary = try shop.summary("2026-11-19")
    let (doctor, status) = (try await shop.nightAudit("doctor"), try await shop.nightAudit("status"))
    let document = try await shop.nightAudit("status", "--json").json()
    let gauge = try String(contentsOfFile: metrics, encoding: .utf8).split(separator: "\n").first {
      $0.hasPrefix("night_audit_feed_coverage")
    }
    let sheet = try await Program.python.run([
      "-c",
      """
      import sys; from openpyxl import load_workbook
      for row in load_workbook(sys.argv[1])['Summary'].iter_rows(max_col=1, values_only=True): print(row[0] or '')
      """, shop.reports + "/2026-11-19/night-audit-2026-11-19.xlsx",
    ])
    let page = String(decoding: try shop.file("report.html", "2026-11-19"), as: UTF8.self)
    let (coverage, unclaimed) = sendsNotifications ? (1.0, 5) : (0, 0)
    for found in [summary, document] { #expect(found["feed_coverage"] as? [String: Double] == ["game": coverage]) }
    #expect(gauge == "night_audit_feed_coverage{app=\"game\"} \(coverage)")
    #expect(try findings(shop, night: "2026-11-19").count == unclaimed)
    let notChecked = ["game": ["orphan_payment", "unclaimed_redemption", "renewal_without_order"]]
    #expect(summary["not_checked"] as? [String: [String]] == (sendsNotifications ? [:] : notChecked))
    let reports = [sheet.output, page, night.output]
    for text in reports { #expect(text.contains("Not checked for game") != sendsNotifications, "\(text)") }
    let sentence =
      sendsNotifications
      ? "reported 65 of 65 known sales of game"
      : "reported 0 of 60 known sales of game. Switch on App Store Server Notifications version 2"
    for text in [doctor.output, status.output] + (sendsNotifications ? [] : reports) {
      #expect(text.replacing("&#39;", with: "'").contains(sentence), "\(text)")
    }
    if !sendsNotifications { try await expectSameFiles(shop, "summary.json", night: 0, status: 0) }
  }

  @Test func missingNotificationsMakeTheNightIncomplete() async throws {
    let subscription: [String: Any] = [
      "type": "Auto-Renewable Subscription", "purchaseDate": Self.start - Self.day,
      "expiresDate": Self.start + 30 * Self.day,
    ]
    // Apple announces a sale, an upgrade and a redeemed offer by different notifications.
    let shop = try await SignedShop(sales: [
      ["transactionId": "1001", "purchaseDate": Self.start - Self.day],
      subscription.merging(["transactionId": "1002", "isUpgrade": true]) { $1 },
      subscription.merging(["transactionId": "1003", "redeemsOffer": true, "offerType": 3]) { $1 },
    ])
    try await shop.control(
      "faults", #"{"force":[{"path":"/production/inApps/v1/notifications","httpStatus":503}]}"#)
    try await shop.night(0, "--max-duration", "2s", exits: [3])
    let reasons = try reasons(shop, night: "2026-11-19")
    #expect(reasons.count == 1 && reasons[0].contains("apple_error"), "\(reasons)")
    try await expectSameFiles(shop, "summary.json", night: 0, status: 3)

    try await shop.control("faults", #"{"force":[]}"#)
    try await shop.night(0, exits: [0])
    #expect(
      try findings(shop, night: "2026-11-19") == [
        "orphan_payment 1001 ", "orphan_payment 1002 ", "orphan_payment 1003 ",
      ])
  }

  @Test func theSameNightRunTwiceGivesTheSameFindings() async throws {
    let shop = try await SignedShop(sales: [
      ["transactionId": "1003", "purchaseDate": Self.start - Self.day, "customer": "c"],
      ["transactionId": "1007", "purchaseDate": Self.start - 60 * Self.day, "customer": "c"],
    ])
    try shop.configure("recheck:\n  refundWindow: 30d")
    for attempt in 1...2 {
      try await shop.night(0, exits: [0])
      #expect(
        try findings(shop, night: "2026-11-19") == ["orphan_payment 1003 ", "orphan_payment 1007 "], "\(attempt)")
    }
    #expect(try shop.requests("/production/inApps/v2/history") < 4)
    // A sweep between nights passes verification.
    try await shop.nightAudit("recheck", "--as-of", SignedShop.asOf(1), exits: [0])
    for command in ["verify", "rebuild"] { try await shop.nightAudit(command, exits: [0]) }
  }

  /// A re-check writes no report, so the next night lists the notifications that the re-check skipped.
  @Test func skippedNotificationsAreReportedByTheNextNight() async throws {
    let shop = try await SignedShop(sales: [
      [
        "transactionId": "1001", "purchaseDate": Self.start - 200 * Self.day,
        "revocationDate": Self.start + 6 * Self.hour,
      ]
    ])
    try await shop.night(0, exits: [0])
    // A notification of another app is not believed; then a gap longer than Apple's history.
    try shop.configure { $0.replacing("keyId: 2X9R4HXF34", with: "keyId: 2X9R4HXF34\n    appAppleId: 5") }
    try await shop.execute(
      "UPDATE night_audit.sweeps SET swept_until = swept_until - interval '300 days' WHERE notification_type = 'EXPIRED'"
    )
    try await shop.setClock(SignedShop.asOf(1))
    try await shop.nightAudit("recheck", "--as-of", SignedShop.text(Self.start + 12 * Self.hour), exits: [3])
    try shop.configure("")

    let reason =
      "Apple's notifications of game were not read up to this night (REFUND: not_believed, EXPIRED: out_of_reach)."
    for attempt in 1...2 {
      try await shop.night(1, exits: [3])
      #expect(try reasons(shop, night: "2026-11-20") == [reason], "\(attempt)")
    }
    try await shop.night(2, exits: [0])

    // A change that hides skipped notifications is reported, and their windows are read again.
    try await shop.nightAudit("verify", exits: [0])
    for (change, said, isRestored) in [
      ("DELETE FROM night_audit.sweep_gaps", "the sweep of EXPIRED of com.example.game is not as a run left it", false),
      ("DELETE FROM night_audit.disbelieved_notifications", "the sweep of REFUND of com.example.game is not", false),
      (
        "UPDATE night_audit.sweeps SET last_attempt = last_attempt + interval '1 day' WHERE notification_type = 'REVOKE'",
        "the sweep of REVOKE of com.example.game is not", false
      ),
      (
        """
        INSERT INTO night_audit.sweeps (bundle_id, environment, notification_type, last_attempt)
        VALUES ('other', 'Production', 'REFUND', '2026-11-20Z')
        """, "the sweep of REFUND of other is not", true
      ),
      (
        """
        INSERT INTO night_audit.histories (bundle_id, environment, transaction_id, revision, last_attempt, reason)
        VALUES ('com.example.game', 'Production', '7', 'x', '2026-11-20Z', 'unfinished')
        """, "the history of transaction 7 of com.example.game is not as a run left it", true
      ),
    ] {
      try await shop.execute(change)
      for command in ["verify", "rebuild", "doctor"] {
        let found = try await shop.nightAudit(command)
        #expect(found.output.contains(said), "\(change): \(command): \(found)")
      }
      let repaired = try await shop.nightAudit("rebuild", "--write")
      #expect(repaired.status == (isRestored ? 0 : 70), "\(change): \(repaired)")
      #expect(repaired.output.contains("run night-audit recheck") != isRestored, "\(change): \(repaired)")
      try await shop.nightAudit("verify", exits: [0])
    }
  }

  @Test func manualReportsMentionSkippedNotifications() async throws {
    let shop = try await SignedShop(sales: [])
    for (number, status) in [(0, 0), (1, 3), (2, 0)] as [(Int64, Int32)] {
      if number == 1 {
        try await shop.execute("UPDATE night_audit.sweeps SET swept_until = swept_until - interval '300 days'")
      }
      try await shop.night(number, "--out", shop.directory.file("report\(number)"), exits: [status])
    }
  }

  /// A deleted slice would never be read, so the repair reads its window again.
  @Test func aKilledSweepResumes() async throws {
    let shop = try await SignedShop(
      sales: (0..<200).map { number in
        [
          "transactionId": "\(1_000 + number)", "purchaseDate": Self.start - 200 * Self.day,
          "revocationDate": Self.start - 8 * Self.day + Int64(number) * 60_000,
        ]
      }, latency: "20ms")
    let running = try shop.start("recheck", "--as-of", SignedShop.asOf(0))
    while running.process.isRunning, try await shop.value("SELECT count(*) >= 100 FROM night_audit.evidence") != "true"
    {
      await pause()
    }
    running.kill()
    _ = await running.finish()
    let stored = try #require(Int(try await shop.value("SELECT count(*) FROM night_audit.evidence")))
    #expect(stored < 200)
    try await shop.execute("DELETE FROM night_audit.sweep_slices WHERE notification_type = 'REFUND'")
    try await shop.nightAudit("verify", exits: [70], says: "the sweep of REFUND of com.example.game is not")
    try await shop.nightAudit("rebuild", "--write", exits: [70], says: "run night-audit recheck")
    try await shop.nightAudit("recheck", "--as-of", SignedShop.asOf(0), exits: [0])
    let notified = "SELECT count(*) FROM night_audit.evidence WHERE channel = 'notification'"
    #expect(try await shop.value(notified) == "200")
  }

  @Test func onlyUnfilteredNightsSweep() async throws {
    let shop = try await SignedShop(sales: [])
    try await shop.sell("o1", naming: "1001", at: Self.start - Self.day)
    for arguments in [["--dry-run"], ["--offline"], ["--order", "o9"], ["--user", "u9"], ["--app", "game"]] {
      try await shop.nightAudit("run", "--as-of", SignedShop.asOf(0), more: arguments)
      #expect(try shop.requests("/production/inApps/v1/notifications") == 0, "\(arguments)")
      #expect(try await shop.value("SELECT count(*) FROM night_audit.sweeps") == "0", "\(arguments)")
    }
    let result = try await shop.nightAudit("recheck", "--as-of", SignedShop.asOf(0))
    #expect(result.errors.contains("swept") && result.output.contains("0 notifications swept"), "\(result)")
    #expect(try shop.requests("/production/inApps/v1/notifications") == Self.sweptTypes)
  }

  @Test func aKeyThatAppleRefusesEndsTheSweepOfItsAppOnly() async throws {
    let other = SignedShop.App(name: "other", bundleId: "com.example.other", isKeyRevoked: true)
    let shop = try await SignedShop(
      sales: [["transactionId": "1001", "purchaseDate": Self.start - Self.day]], apps: [SignedShop.game, other])
    let night = try await shop.night(0, exits: [78])
    #expect(night.errors.contains("HTTP 401"), "\(night.errors)")
    #expect(try findings(shop, night: "2026-11-19") == ["orphan_payment 1001 "])
    #expect(
      try await shop.value("SELECT string_agg(DISTINCT bundle_id, ',') FROM night_audit.sweeps WHERE reason IS NULL")
        == "com.example.game")
    try await shop.execute("DELETE FROM night_audit.asking_faults")
    try await shop.nightAudit("verify", exits: [70], says: "the faults of the night of as-of")
  }

  /// A stopped process keeps its session, but does not renew its lease.
  @Test func aNightBesideAnotherSweepIsIncompleteUntilTheLeaseEnds() async throws {
    let shop = try await SignedShop(sales: [["transactionId": "1001", "purchaseDate": Self.start - 6 * Self.hour]])
    try await shop.nightAudit("recheck", "--as-of", "2026-11-20T02:50:00Z", exits: [0])
    let other = try await shop.session()
    try await other.execute("SELECT pg_advisory_lock(1852401514, number::int) FROM night_audit.sweepers")
    try await other.execute("UPDATE night_audit.sweepers SET leased_until = clock_timestamp() + interval '1 hour'")
    let night = try await shop.night(0, "--max-duration", "3s", exits: [3])
    #expect(night.errors.contains("another process sweeps this app: waiting"), "\(night.errors)")
    let reasons = try reasons(shop, night: "2026-11-19")
    #expect(reasons.count == 1 && reasons[0].contains("not swept). Run night-audit recheck, "), "\(reasons)")
    try await other.execute("UPDATE night_audit.sweepers SET leased_until = clock_timestamp() - interval '1 second'")
    try await shop.night(0, exits: [0])
    await other.close()
  }

  /// The first sweep of a night has half its time. The other process ends after it, while Apple is asked.
  @Test func aNightThatCouldNotSweepTriesAgainAfterAsking() async throws {
    // Older than the swept window, so that the order's ID is looked up.
    let shop = try await SignedShop(sales: [["transactionId": "1001", "purchaseDate": Self.start - 150 * Self.day]])
    try await shop.nightAudit("recheck", "--as-of", "2026-11-20T02:50:00Z", exits: [0])
    try await shop.sell("o", naming: "1001", at: Self.start - Self.day)
    let other = try await shop.session()
    try await other.execute("SELECT pg_advisory_lock(1852401514, number::int) FROM night_audit.sweepers")
    try await other.execute("UPDATE night_audit.sweepers SET leased_until = clock_timestamp() + interval '1 hour'")
    try await shop.setClock(SignedShop.asOf(0))
    let night = try shop.start("run", "--as-of", SignedShop.asOf(0), "--max-duration", "20s")
    while night.process.isRunning,
      try await shop.value("SELECT count(*) FROM night_audit.answers WHERE subject_kind = 'lookup'") == "0"
    {
      await pause()
    }
    try await other.execute("UPDATE night_audit.sweepers SET leased_until = clock_timestamp() - interval '1 second'")
    let result = await night.finish()
    #expect(result.status == 0, "\(result)")
    #expect(result.errors.contains("another process still sweeps this app"), "\(result)")
    await other.close()
  }
}
