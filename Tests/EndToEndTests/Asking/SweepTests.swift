import Foundation
import Postgres
import Testing

/// Nights with Apple's notifications: refunds, renewals and payments that the shop has no row for.
@Suite struct SweepTests {
  private static let start = NotifiedShop.start
  private static let day = NotifiedShop.day
  private static let hour: Int64 = 3_600_000
  private static let sweptTypes = 14

  private func findings(_ shop: NotifiedShop, night: String) throws -> Set<String> {
    Set(
      rows(try shop.file("findings.csv", night: night)).map {
        "\($0["kind"] ?? "") \($0["transaction_id"] ?? "") \($0["order_id"] ?? "")"
      })
  }

  @Test func ownersAreFoundByAccountTokenAndByAnyTransactionID() async throws {
    let (token, sold) = ("0A000000-0000-4000-8000-000000000001", Self.start - 20 * Self.hour)
    let period: [String: Any] = [
      "productId": "gold", "type": "Auto-Renewable Subscription", "originalTransactionId": "3001",
      "webOrderLineItemId": "77", "purchaseDate": sold, "originalPurchaseDate": sold,
      "expiresDate": Self.start + 20 * Self.day,
    ]
    let shop = try await NotifiedShop(transactions: [
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
    let night = try await shop.night(0)
    #expect(night.status == 0, "\(night.errors)")
    let orders = try rows(shop.file("orders.csv", night: "2026-11-19")).map {
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
    let explained = try await shop.nightAudit("explain", "crashed", "--as-of", NotifiedShop.asOf(0))
    #expect(explained.status == 0 && !explained.output.contains("No known transaction"), "\(explained)")
  }

  @Test func refundsAreFoundThroughNotifications() async throws {
    let shop = try await NotifiedShop(transactions: [
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

    let first = try await shop.night(0)
    #expect(first.status == 0, "\(first.errors)")
    #expect(try findings(shop, night: "2026-11-19").isEmpty)
    // Transactions notified within a week are not requested; the subscription began before.
    #expect(try shop.requests("/production/inApps/v1/transactions") == 1)
    #expect(
      try await shop.value(
        "SELECT string_agg(transaction_id || ' ' || order_id, ', ' ORDER BY transaction_id) FROM night_audit.claims"
      )
        == "1001 o1, 1002 o2, 1004 o4")

    let second = try await shop.night(1)
    #expect(second.status == 0, "\(second.errors)")
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
      try JSONSerialization.jsonObject(with: shop.file("run.json", night: "2026-11-20")) as? [String: Any])
    let sweep = (run["apple"] as? [String: Any])?["sweep"] as? [String: Any]
    #expect(sweep?["new_facts"] as? Int == 4)
    let again = try await shop.nightAudit(
      "reconcile", "--as-of", NotifiedShop.asOf(1), "--out", shop.directory.file("again"))
    #expect(again.status == 0, "\(again.errors)")
    for name in ["findings.csv", "orders.csv", "summary.json"] {
      #expect(
        try Data(contentsOf: URL(fileURLWithPath: shop.directory.file("again") + "/" + name))
          == shop.file(name, night: "2026-11-20"), "\(name)")
    }

    let history = "/production/inApps/v2/history"
    #expect(try shop.requests(history, about: "1003") == 1)
    #expect(
      try await shop.value(
        "SELECT count(*) FROM night_audit.histories WHERE transaction_id = '1003' AND reason IS NULL")
        == "1")

    let third = try await shop.night(2)
    #expect(third.status == 0, "\(third.errors)")
    #expect(try findings(shop, night: "2026-11-21") == ["orphan_payment 1003 ", "renewal_without_order 1005 "])
    #expect(try shop.requests(history, about: "1003") == 1)
    #expect(try shop.requests("/sandbox/inApps/v1/notifications") == 0)
  }

  @Test func refundRequestsAreListedUntilAppleDecidesThem() async throws {
    func sale(_ id: String, _ more: [String: Any]) -> [String: Any] {
      ["transactionId": id, "purchaseDate": Self.start - 5 * Self.day].merging(more) { $1 }
    }
    let asked = Self.start - 2 * Self.hour
    let shop = try await NotifiedShop(transactions: [
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
    func requests(_ content: Data) -> [String] {
      rows(content).map { row in
        ["transaction_id", "order_id", "deadline", "reason", "delivery_status", "refunds_before"].map { row[$0] ?? "" }
          .joined(separator: " ")
      }
    }
    let deadline = Date(timeIntervalSince1970: Double((asked + 12 * Self.hour) / 1_000)).ISO8601Format()
    let first = [
      "1001 o1001 \(deadline) FULFILLMENT_ISSUE UNDELIVERED_OTHER 1", "1002 o1002 \(deadline)  DELIVERED 1",
      "1003 o1003 \(deadline)  DELIVERED 1",
    ]
    #expect(try await shop.night(0).status == 0)
    #expect(requests(try shop.file("refund-requests.csv", night: "2026-11-19")) == first)
    #expect(try await shop.night(1).status == 0)
    #expect(
      requests(try shop.file("refund-requests.csv", night: "2026-11-20")).map { String($0.prefix(11)) } == [
        "1001 o1001 ", "1004  2026-",
      ])
    // A repetition of the first night hides Apple's later decisions.
    let again = shop.directory.file("again")
    #expect(try await shop.nightAudit("reconcile", "--as-of", NotifiedShop.asOf(0), "--out", again).status == 0)
    #expect(requests(try Data(contentsOf: URL(fileURLWithPath: again + "/refund-requests.csv"))) == first)
  }

  /// 300 sales with orders, and five payments without orders.
  @Test(arguments: [true, false]) func coverageOfTheFeedIsReported(_ sendsNotifications: Bool) async throws {
    let sales = (1...305).map { number -> [String: Any] in
      ["transactionId": "\(10_000 + number)", "purchaseDate": Self.start - Int64(number + 1) * Self.hour]
    }
    let shop = try await NotifiedShop(transactions: sales, sendsNotifications: sendsNotifications)
    let metrics = shop.directory.file("night_audit.prom")
    try shop.configure("metrics:\n  textfile: \(metrics)")
    try await shop.execute(
      """
      INSERT INTO sales.orders (order_id, user_id, bundle_id, product_id, quantity, amount, currency, status,
        transaction_id, created_at, verified_at, updated_at)
      SELECT 'o' || n, 'u' || n, 'com.example.game', 'gems.100', 1, 1.99, 'USD', 'verified', (10000 + n)::text, t, t, t
      FROM generate_series(1, 300) n, LATERAL (SELECT to_timestamp(\(Self.start / 1_000)) - (n + 1) * interval '1 hour') s (t);
      INSERT INTO sales.deliveries (delivery_id, order_id, user_id, product_id, quantity, delivered_at)
      SELECT 'd-' || order_id, order_id, user_id, product_id, 1, created_at FROM sales.orders
      """)
    let night = try await shop.night(0)
    #expect(night.status == 0, "\(night.errors)")
    let doctor = try await shop.nightAudit("doctor")
    let status = try await shop.nightAudit("status")
    let document =
      try JSONSerialization.jsonObject(
        with: Data(try await shop.nightAudit("status", "--json").output.utf8)) as? [String: Any]
    let coverage: [String: Double]? = try shop.summary("feed_coverage", night: "2026-11-19")
    let notChecked: [String: [String]]? = try shop.summary("not_checked", night: "2026-11-19")
    let gauge = try String(contentsOfFile: metrics, encoding: .utf8).split(separator: "\n").first {
      $0.hasPrefix("night_audit_feed_coverage")
    }
    let sheet = try await Program(path: "/usr/bin/python3").run([
      "-c",
      """
      import sys; from openpyxl import load_workbook
      for row in load_workbook(sys.argv[1])['Summary'].iter_rows(max_col=1, values_only=True): print(row[0] or '')
      """, shop.directory.file("reports/2026-11-19/night-audit-2026-11-19.xlsx"),
    ])
    let page = String(decoding: try shop.file("report.html", night: "2026-11-19"), as: UTF8.self)
    if sendsNotifications {
      #expect(try findings(shop, night: "2026-11-19").count == 5)
      #expect(coverage == ["game": 1] && document?["feed_coverage"] as? [String: Double] == ["game": 1])
      #expect(notChecked == [:])
      #expect(gauge == "night_audit_feed_coverage{app=\"game\"} 1.0")
      #expect(doctor.output.contains("reported 305 of 305 known sales of game"), "\(doctor.output)")
      #expect(status.output.contains("reported 305 of 305 known sales of game"), "\(status.output)")
      for text in [sheet.output, page, night.output] { #expect(!text.contains("Not checked for game"), "\(text)") }
      return
    }
    #expect(try findings(shop, night: "2026-11-19").isEmpty)
    #expect(coverage == ["game": 0] && document?["feed_coverage"] as? [String: Double] == ["game": 0])
    #expect(notChecked == ["game": ["orphan_payment", "unclaimed_redemption", "renewal_without_order"]])
    #expect(gauge == "night_audit_feed_coverage{app=\"game\"} 0.0")
    let sentence = "reported 0 of 300 known sales of game. Switch on App Store Server Notifications version 2"
    for text in [sheet.output, page, night.output, doctor.output, status.output] {
      #expect(text.replacing("&#39;", with: "'").contains(sentence), "\(text)")
    }
    for text in [sheet.output, page, night.output] { #expect(text.contains("Not checked for game"), "\(text)") }
    // A repetition of the night gives the same summary.
    let again = shop.directory.file("again")
    #expect(try await shop.nightAudit("reconcile", "--as-of", NotifiedShop.asOf(0), "--out", again).status == 0)
    #expect(
      try Data(contentsOf: URL(fileURLWithPath: again + "/summary.json"))
        == shop.file("summary.json", night: "2026-11-19"))
  }

  @Test func missingNotificationsMakeTheNightIncomplete() async throws {
    let shop = try await NotifiedShop(transactions: [
      ["transactionId": "1001", "purchaseDate": Self.start - Self.day]
    ])
    try await shop.control(
      "faults", #"{"force":[{"path":"/production/inApps/v1/notifications","httpStatus":503}]}"#)
    let silent = try await shop.night(0, "--max-duration", "5s")
    #expect(silent.status == 3, "\(silent.errors)")
    let reasons: [String]? = try shop.summary("incomplete_reasons", night: "2026-11-19")
    #expect(reasons?.count == 1 && reasons?.first?.contains("apple_error") == true, "\(reasons ?? [])")
    let decided = try await shop.nightAudit(
      "reconcile", "--as-of", NotifiedShop.asOf(0), "--out", shop.directory.file("again"))
    #expect(decided.status == 3, "\(decided.errors)")
    #expect(
      try Data(contentsOf: URL(fileURLWithPath: shop.directory.file("again") + "/summary.json"))
        == shop.file("summary.json", night: "2026-11-19"))

    try await shop.control("faults", #"{"force":[]}"#)
    let told = try await shop.night(0)
    #expect(told.status == 0, "\(told.errors)")
    #expect(try findings(shop, night: "2026-11-19") == ["orphan_payment 1001 "])
  }

  @Test func theSameNightRunTwiceGivesTheSameFindings() async throws {
    let shop = try await NotifiedShop(transactions: [
      ["transactionId": "1003", "purchaseDate": Self.start - Self.day, "customer": "c"],
      ["transactionId": "1007", "purchaseDate": Self.start - 60 * Self.day, "customer": "c"],
    ])
    try shop.configure("recheck:\n  refundWindow: 30d")
    for attempt in 1...2 {
      let night = try await shop.night(0)
      #expect(night.status == 0, "\(night.errors)")
      #expect(
        try findings(shop, night: "2026-11-19") == ["orphan_payment 1003 ", "orphan_payment 1007 "], "\(attempt)")
    }
    #expect(try shop.requests("/production/inApps/v2/history") < 4)
  }

  /// A re-check keeps its lease on the sweep of an app until it ends. A stopped process keeps its session, but does not
  /// renew the lease.
  @Test func aNightThatCouldNotSweepIsIncomplete() async throws {
    let shop = try await NotifiedShop(transactions: [
      ["transactionId": "1001", "purchaseDate": Self.start - 6 * Self.hour]
    ])
    let before = try await shop.nightAudit("recheck", "--as-of", "2026-11-20T02:50:00Z")
    #expect(before.status == 0, "\(before.errors)")
    let other = try await PostgresSession.connect(shop.conninfo, applicationName: "night-audit tests")
    try await other.execute("SELECT pg_advisory_lock(1852401514, number::int) FROM night_audit.sweepers")
    try await other.execute("UPDATE night_audit.sweepers SET leased_until = clock_timestamp() + interval '1 hour'")
    let night = try await shop.night(0, "--max-duration", "3s")
    #expect(night.status == 3, "\(night)")
    #expect(night.errors.contains("another process sweeps this app: waiting"), "\(night.errors)")
    let reasons: [String]? = try shop.summary("incomplete_reasons", night: "2026-11-19")
    #expect(reasons?.count == 1 && reasons?.first?.contains("not swept") == true, "\(reasons ?? [])")
    try await other.execute("UPDATE night_audit.sweepers SET leased_until = clock_timestamp() - interval '1 second'")
    let again = try await shop.night(0)
    #expect(again.status == 0 && !again.errors.contains("another process sweeps"), "\(again)")
    await other.close()
  }

  /// Apple answers again once the first sweep has ended.
  @Test func aSweepIsTriedAgainWhileTheNightHasTime() async throws {
    let shop = try await NotifiedShop(transactions: [
      ["transactionId": "1001", "purchaseDate": Self.start - Self.day],
      ["transactionId": "1002", "purchaseDate": Self.start - Self.day],
    ])
    try await shop.sell("o1", naming: "1001", at: Self.start - Self.day)
    try await shop.control(
      "faults", #"{"force":[{"path":"/production/inApps/v1/notifications","httpStatus":503}]}"#)
    let arguments = ["run", "--as-of", NotifiedShop.asOf(0), "--max-duration", "20s"]
    let night = try Program.nightAudit.start(arguments + ["--config", shop.directory.file("night-audit.yaml")])
    while night.process.isRunning, try shop.requests("/production/inApps/v1/transactions") == 0 { await pause() }
    try await shop.control("faults", #"{"force":[]}"#)
    let result = await night.finish()
    #expect(result.status == 0, "\(result)")
    #expect(try findings(shop, night: "2026-11-19") == ["orphan_payment 1002 "])
  }

  /// A re-check writes no report, so the next night lists the notifications that the re-check skipped.
  @Test func skippedNotificationsAreReportedByTheNextNight() async throws {
    let shop = try await NotifiedShop(transactions: [
      [
        "transactionId": "1001", "purchaseDate": Self.start - 200 * Self.day,
        "revocationDate": Self.start + 6 * Self.hour,
      ]
    ])
    let first = try await shop.night(0)
    #expect(first.status == 0, "\(first.errors)")
    // A notification of another app is not believed; then a gap longer than Apple's history.
    let file = shop.directory.file("night-audit.yaml")
    let configuration = try String(contentsOfFile: file, encoding: .utf8)
    try configuration.replacing("issuerId: issuer", with: "issuerId: issuer\n    appAppleId: 5").write(
      toFile: file, atomically: true, encoding: .utf8)
    try await shop.execute(
      "UPDATE night_audit.sweeps SET swept_until = swept_until - interval '300 days' WHERE notification_type = 'EXPIRED'"
    )
    try await shop.setClock(1)
    let between = Date(timeIntervalSince1970: Double((Self.start + 12 * Self.hour) / 1_000)).ISO8601Format()
    let recheck = try await shop.nightAudit("recheck", "--as-of", between)
    #expect(recheck.status == 3, "\(recheck.errors)")
    try configuration.write(toFile: file, atomically: true, encoding: .utf8)

    let reason =
      "Apple's notifications of game were not read up to this night (REFUND: not_believed, EXPIRED: out_of_reach)."
    for attempt in 1...2 {
      let second = try await shop.night(1)
      #expect(second.status == 3, "\(attempt): \(second.errors)")
      let reasons: [String]? = try shop.summary("incomplete_reasons", night: "2026-11-20")
      #expect(reasons == [reason], "\(attempt)")
    }
    let third = try await shop.night(2)
    #expect(third.status == 0, "\(third.errors)")

    // A change that hides skipped notifications is reported, and their windows are read again.
    let sound = try await shop.nightAudit("verify")
    #expect(sound.status == 0, "\(sound)")
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
      let mended = try await shop.nightAudit("verify")
      #expect(mended.status == 0, "\(change): \(mended)")
    }
  }

  @Test func manualReportsMentionSkippedNotifications() async throws {
    let shop = try await NotifiedShop(transactions: [])
    for (number, status) in [(Int64(0), Int32(0)), (1, 3), (2, 0)] {
      if number == 1 {
        try await shop.execute("UPDATE night_audit.sweeps SET swept_until = swept_until - interval '300 days'")
      }
      let report = try await shop.night(number, "--out", shop.directory.file("report\(number)"))
      #expect(report.status == status, "\(number): \(report.errors)")
    }
  }

  @Test func salesThatAppleAnnouncesAsUpgradeOrOfferAreSeen() async throws {
    let subscription: [String: Any] = [
      "type": "Auto-Renewable Subscription", "purchaseDate": Self.start - Self.day,
      "expiresDate": Self.start + 30 * Self.day,
    ]
    let shop = try await NotifiedShop(transactions: [
      subscription.merging(["transactionId": "1001", "isUpgrade": true]) { $1 },
      subscription.merging(["transactionId": "1002", "redeemsOffer": true, "offerType": 3]) { $1 },
    ])
    let night = try await shop.night(0)
    #expect(night.status == 0, "\(night.errors)")
    #expect(try findings(shop, night: "2026-11-19") == ["orphan_payment 1001 ", "orphan_payment 1002 "])
  }

  /// A deleted slice would never be read, so the repair reads its window again.
  @Test(arguments: [false, true]) func aKilledSweepResumes(isSliceRemoved: Bool) async throws {
    let shop = try await NotifiedShop(
      transactions: (0..<200).map { number in
        [
          "transactionId": "\(1_000 + number)", "purchaseDate": Self.start - 200 * Self.day,
          "revocationDate": Self.start - 8 * Self.day + Int64(number) * 60_000,
        ]
      }, latency: "20ms")
    let arguments = ["recheck", "--as-of", NotifiedShop.asOf(0), "--config", shop.directory.file("night-audit.yaml")]
    let running = try Program.nightAudit.start(arguments)
    while running.process.isRunning, try await shop.value("SELECT count(*) >= 100 FROM night_audit.evidence") != "true"
    {
      await pause()
    }
    running.kill()
    _ = await running.finish()
    let stored = try #require(Int(try await shop.value("SELECT count(*) FROM night_audit.evidence")))
    #expect(stored < 200)
    if isSliceRemoved {
      try await shop.execute("DELETE FROM night_audit.sweep_slices WHERE notification_type = 'REFUND'")
      let found = try await shop.nightAudit("verify")
      #expect(found.status == 70 && found.output.contains("the sweep of REFUND of com.example.game is not"), "\(found)")
      let mended = try await shop.nightAudit("rebuild", "--write")
      #expect(mended.status == 70 && mended.output.contains("run night-audit recheck"), "\(mended)")
    }
    let result = try await shop.nightAudit("recheck", "--as-of", NotifiedShop.asOf(0))
    #expect(result.status == 0, "\(result.errors)")
    let notified = "SELECT count(*) FROM night_audit.evidence WHERE channel = 'notification'"
    #expect(try await shop.value(notified) == "200")
    // Ten pages of refunds and one of each other type; pages in progress are requested at most twice.
    if isSliceRemoved { return }
    #expect(try shop.requests("/production/inApps/v1/notifications") <= Self.sweptTypes + 10)
  }

  @Test func onlyUnfilteredNightsSweep() async throws {
    let shop = try await NotifiedShop(transactions: [])
    try await shop.sell("o1", naming: "1001", at: Self.start - Self.day)
    for arguments in [["--dry-run"], ["--offline"], ["--order", "o9"], ["--user", "u9"], ["--app", "game"]] {
      _ = try await Program.nightAudit.run(
        ["run", "--as-of", NotifiedShop.asOf(0), "--config", shop.directory.file("night-audit.yaml")] + arguments)
      #expect(try shop.requests("/production/inApps/v1/notifications") == 0, "\(arguments)")
      #expect(try await shop.value("SELECT count(*) FROM night_audit.sweeps") == "0", "\(arguments)")
    }
    let result = try await shop.nightAudit("recheck", "--as-of", NotifiedShop.asOf(0))
    #expect(result.errors.contains("swept") && result.output.contains("0 notifications swept"), "\(result)")
    #expect(try shop.requests("/production/inApps/v1/notifications") == Self.sweptTypes)
  }

  @Test func aSweepBetweenNightsPassesVerification() async throws {
    let shop = try await NotifiedShop(transactions: [
      ["transactionId": "1001", "purchaseDate": Self.start - Self.day]
    ])
    #expect(try await shop.night(0).status == 0)
    let recheck = try await shop.nightAudit("recheck", "--as-of", NotifiedShop.asOf(1))
    #expect(recheck.status == 0, "\(recheck.errors)")
    for command in ["verify", "rebuild"] {
      let proven = try await shop.nightAudit(command)
      #expect(proven.status == 0, "\(proven.output)\(proven.errors)")
    }
  }

  @Test func aKeyThatAppleRefusesEndsTheSweepOfItsAppOnly() async throws {
    let shop = try await NotifiedShop(
      transactions: [["transactionId": "1001", "purchaseDate": Self.start - Self.day]], apps: ["game", "other"],
      faulty: "other")
    let night = try await shop.night(0)
    #expect(night.status == 78, "\(night.errors)")
    #expect(night.errors.contains("HTTP 401"), "\(night.errors)")
    #expect(try findings(shop, night: "2026-11-19") == ["orphan_payment 1001 "])
    #expect(
      try await shop.value("SELECT string_agg(DISTINCT bundle_id, ',') FROM night_audit.sweeps WHERE reason IS NULL")
        == "com.example.game")
    try await shop.execute("DELETE FROM night_audit.asking_faults")
    let altered = try await shop.nightAudit("verify")
    #expect(altered.status == 70 && altered.output.contains("the faults of the night of as-of"), "\(altered)")
  }

  /// The cost of a night depends on changes, not on stored rows.
  @Test func fiveHundredRefundsAmongTenThousandCostAtMostAHundredCalls() async throws {
    let refunded = (1...500).map { number in
      [
        "transactionId": "\(number * 20)", "purchaseDate": Self.start - 60 * Self.day,
        "revocationDate": Self.start + Int64(number) * 60_000,
      ] as [String: Any]
    }
    let shop = try await NotifiedShop(transactions: refunded)
    try await shop.execute(
      """
      INSERT INTO sales.orders (order_id, user_id, product_id, quantity, amount, currency, status, transaction_id,
        created_at, verified_at, updated_at)
      SELECT 'o' || n, 'u' || n, 'gems.100', 1, 1.99, 'USD', 'verified', n::text, t, t, t
      FROM generate_series(1, 10000) n, to_timestamp(\((Self.start - 60 * Self.day) / 1_000)) t;
      INSERT INTO sales.receipts (receipt_id, order_id, user_id, payload, status, received_at)
      SELECT 'r' || n, 'o' || n, 'u' || n, 'eyJ', 'verified', to_timestamp(\((Self.start - 60 * Self.day) / 1_000))
      FROM generate_series(1, 10000) n;
      INSERT INTO night_audit.receipt_checks (subject_kind, subject_id, order_id, received_at, outcome, answered_at,
        last_attempt, attempts, brought_count, is_urgent, payload_kind, channel, environment)
      SELECT 'receipt', receipt_id, order_id, received_at, 'verified', to_timestamp(\(Self.start / 1_000)),
        to_timestamp(\(Self.start / 1_000)), 1, 1, false, 'app', 'serverApi', 'Production' FROM sales.receipts;
      INSERT INTO night_audit.evidence (run_id, as_of, channel, signed_at, environment, transaction_id, bundle_id,
        product_id, purchased_at, tells_revocation, tells_account_token)
      SELECT gen_random_uuid(), to_timestamp(\(Self.start / 1_000)), 'serverApi', to_timestamp(\(Self.start / 1_000)),
        'Production', n::text, 'com.example.game', 'gems.100',
        to_timestamp(\((Self.start - 60 * Self.day) / 1_000)), true, true FROM generate_series(1, 10000) n;
      INSERT INTO night_audit.transactions (environment, transaction_id, bundle_id, product_id, purchased_at,
        revocation_told_at, tells_account_token, is_contradictory, channel, signed_at, checked_at)
      SELECT environment, transaction_id, bundle_id, product_id, purchased_at, signed_at, true, false,
        channel, signed_at, as_of FROM night_audit.evidence;
      INSERT INTO night_audit.sweeps (bundle_id, environment, notification_type, swept_until, last_attempt)
      SELECT 'com.example.game', 'Production', type, to_timestamp(\(Self.start / 1_000)), to_timestamp(\(Self.start / 1_000))
      FROM unnest(ARRAY['REFUND', 'REFUND_REVERSED', 'REVOKE', 'ONE_TIME_CHARGE', 'DID_RENEW', 'SUBSCRIBED']) type;
      ANALYZE;
      """)
    try await shop.setClock(1)
    let result = try await shop.nightAudit("recheck", "--as-of", NotifiedShop.asOf(1))
    #expect(result.status == 0, "\(result.errors)")
    #expect(
      try await shop.value("SELECT count(*) FROM night_audit.transactions WHERE revoked_at IS NOT NULL") == "500")
    #expect(try shop.requests("/production/inApps/v1/notifications") == 25 + Self.sweptTypes - 1)
    #expect(try shop.requests() <= 100)
  }
}
