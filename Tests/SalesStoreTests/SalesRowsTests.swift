import Postgres
import Reconciliation
import Run
import Settings
import TestSupport
import Testing

@testable import SalesStore

@Suite(.serialized, .timeLimit(.minutes(10)))
struct SalesRowsTests {
  /// Drops the constraints of the plain tables, because views have none.
  private static let lax = """
    ALTER TABLE sales.orders DROP CONSTRAINT orders_pkey; ALTER TABLE sales.deliveries DROP CONSTRAINT deliveries_pkey;
    ALTER TABLE sales.receipts DROP CONSTRAINT receipts_pkey;
    DO $$ DECLARE c record; BEGIN
      FOR c IN SELECT attrelid::regclass AS t, attname FROM pg_attribute
        WHERE attrelid::regclass::text LIKE 'sales.%' AND attnotnull AND attnum > 0
          AND attrelid IN (SELECT oid FROM pg_class WHERE relkind = 'r')
      LOOP EXECUTE format('ALTER TABLE %s ALTER %I DROP NOT NULL', c.t, c.attname); END LOOP; END $$;
    """

  /// The database of all bad rows, because a new one takes longer than new rows.
  private static let sharedLaxShop = Task { try await TestShop.make(lax) }

  /// The shop without constraints, with these rows only.
  private func laxShop(_ rows: String) async throws -> TestShop {
    let shop = try await Self.sharedLaxShop.value
    try await shop.connected {
      try $0.executeScript("TRUNCATE sales.orders, sales.receipts, sales.deliveries;" + rows)
    }
    return shop
  }

  private static let years = "is not within the years 1900 to 9999"

  /// The defect of an ID of so many bytes.
  private static func long(_ column: String, _ bytes: Int) -> String {
    "\(column) has \(bytes) bytes; an id has at most 1000 (its beginning is shown)"
  }

  @Test(
    "a value outside the contract makes a bad row with exactly this defect",
    arguments: [
      ("order_id", "NULL", "order_id is missing"), ("order_id", "''", "order_id is empty"),
      ("order_id", "repeat('x', 1001)", long("order_id", 1001)),
      ("user_id", "NULL", "user_id is missing"),
      ("user_id", "repeat('日', 1000)", long("user_id", 3000)),
      ("product_id", "NULL", "product_id is missing"),
      ("bundle_id", "'com.example.other'", "bundle_id 'com.example.other' belongs to no configured app"),
      ("quantity", "NULL", "quantity is missing"), ("quantity", "0", "quantity 0 is not from 1 to 2147483647"),
      ("quantity", "-1", "quantity -1 is not from 1 to 2147483647"),
      ("amount", "NULL", "amount is missing"), ("amount", "-0.01", "amount -0.01 is negative"),
      ("amount", "-40", "amount -40.00 is negative"), ("amount", "-40.10000", "amount -40.10 is negative"),
      ("amount", "4.999", "amount 4.999 has more than the 2 decimals of USD"),
      ("amount", "4.9990", "amount 4.999 has more than the 2 decimals of USD"),
      (
        "amount", "1.9900000000000000000000000000000000000000001",
        "amount 1.9900000000000000000000000000000000000000001 has more than the 2 decimals of USD"
      ),
      ("amount", "'NaN'", "amount NaN is not a number"), ("amount", "'Infinity'", "amount Infinity is not a number"),
      ("amount", "'-Infinity'", "amount -Infinity is not a number"),
      ("amount", "1e30", "amount is too large to be money"),
      ("currency", "NULL", "currency is missing"), ("currency", "'XYZ'", "currency 'XYZ' is not a code of ISO 4217"),
      ("currency", "repeat('U', 2000)", long("currency", 2000)),
      ("status", "NULL", "status is missing"),
      ("status", "'paid'", "status 'paid' is not one of pending, verified, failed, cancelled, refunded"),
      ("transaction_id", "repeat('9', 1001)", long("transaction_id", 1001)),
      ("created_at", "NULL", "created_at is missing"), ("created_at", "'infinity'", "created_at is infinite"),
      ("created_at", "'-infinity'", "created_at is infinite"),
      ("created_at", "'294276-12-31'", "created_at \(years)"),
      ("created_at", "'9999-12-31 12:00+00'", "created_at \(years)"),
      ("created_at", "'1850-01-01'", "created_at \(years)"),
      ("created_at", "'4713-01-01 BC'", "created_at \(years)"),
      ("verified_at", "'infinity'", "verified_at is infinite"),
      ("verified_at", "'20000-01-01'", "verified_at \(years)"),
      ("updated_at", "NULL", "updated_at is missing"), ("updated_at", "'-infinity'", "updated_at is infinite"),
      ("updated_at", "'20000-01-01'", "updated_at \(years)"),
    ])
  func badOrder(_ column: String, value: String, defect: String) async throws {
    let shop = try await laxShop(insertOrder([column: value]) + insertOrder(["order_id": "'sound'"]))
    let rows = try await shop.orders()
    #expect(rows.compactMap(\.defect) == [defect] && rows.contains { $0.defect == nil && $0.orderId == "sound" })
    #expect(rows.allSatisfy { $0.orderId.bytes.count <= 1_000 && $0.userId.bytes.count <= 1_000 })
  }

  @Test("a bad row lists all its defects")
  func severalDefects() async throws {
    let shop = try await laxShop(insertOrder(["quantity": "0", "currency": "'x'", "amount": "NULL"]))
    #expect(
      try await shop.orders().map(\.defect) == [
        "quantity 0 is not from 1 to 2147483647; currency 'x' is not a code of ISO 4217; amount is missing"
      ])
  }

  @Test("a bad row keeps an invalid quantity unchanged")
  func quantities() async throws {
    let quantities: [Int64?] = [nil, 3_000_000_000, -5, 0]
    let wide = ["orders", "deliveries"].map { "ALTER TABLE sales.\($0) ALTER quantity TYPE bigint;" }.joined()
    let shop = try await TestShop.make(
      Self.lax + wide
        + quantities.enumerated().map { number, quantity in
          let values = ["order_id": "'o\(number)'", "quantity": quantity.map { "\($0)" } ?? "NULL"]
          return insertOrder(values) + insertDelivery(values)
        }.joined())
    let orders = try await shop.orders()
    #expect(orders.count == 4 && orders.allSatisfy { $0.defect != nil })
    #expect(orders.map { row -> Int64? in if case .bad(let bad) = row { bad.quantity } else { 1 } } == quantities)
    #expect(try await shop.deliveries().map(\.quantity) == quantities)
  }

  @Test("every reader trims white space around a transaction ID and an account token")
  func whiteSpace() async throws {
    let texts = [
      "'17'", "' 17'", #"E'17\r\n'"#, #"E'\t17\x0B\f '"#, "'1 7'", "'  '", "''", "'null'", "'(null)'", "'0'",
      "'Optional(\"2000\")'", "'\"2000\"'", "'20é'",
    ]
    let ids: [Identifier?] = ["17", "17", "17", "17"]
    let tokens: [Identifier?] = ids + ["1 7", nil, nil, "null", "(null)", "0", "Optional(\"2000\")", "\"2000\"", "20é"]
    let expected = ids + Array(repeating: nil, count: texts.count - ids.count)
    let shop = try await TestShop.make(
      texts.enumerated().map {
        insertOrder(["order_id": "'o\($0 + 10)'", "transaction_id": $1, "app_account_token": $1])
      }.joined())
    let orders = try await shop.orders().compactMap(\.valid)
    #expect(orders.map(\.transactionId) == expected && orders.map(\.appAccountToken) == tokens.map { $0?.text })
    let sales = try SalesRows(shop.settings)
    let plain = try await shop.rows(sales.orders()) { row in
      try sales.plainOrder(row).map { [$0.transactionId.id, $0.appAccountToken.id] }
    }
    #expect(plain.compactMap(\.self) == zip(expected, tokens).map { [$0, $1] })
    let asked = try await shop.reading { connection in
      try connection.execute(
        "SELECT \(SalesRows.statedTransaction) FROM sales.orders o ORDER BY o.order_id COLLATE \"C\""
      ).map { try $0.optionalText(0) }
    }
    #expect(asked == expected.map { $0?.text })
  }

  @Test(
    "a bundle ID may be missing if one app is configured",
    arguments: [(1, nil), (2, "bundle_id is missing, and several apps are configured")] as [(Int, String?)])
  func missingBundle(apps: Int, defect: String?) async throws {
    let shop = try await TestShop.make(insertOrder())
    var settings = shop.settings
    settings.apps = (0..<apps).map { .init(name: "app\($0)", bundleId: "com.example.\($0)") }
    #expect(try await shop.orders(settings).map(\.defect) == [defect])
  }

  @Test(
    "a delivery outside the contract has a defect",
    arguments: [
      ("delivery_id", "NULL", "delivery_id is missing"), ("user_id", "''", "user_id is empty"),
      ("product_id", "NULL", "product_id is missing"), ("quantity", "0", "quantity 0 is not from 1 to 2147483647"),
      ("delivered_at", "'infinity'", "delivered_at is infinite"), ("delivered_at", "NULL", "delivered_at is missing"),
      ("revoked_at", "'-infinity'", "revoked_at is infinite"),
      ("revoked_at", "'294276-01-01'", "revoked_at \(years)"),
      ("order_id", "repeat('x', 5000)", long("order_id", 5000)),
    ])
  func badDelivery(_ column: String, value: String, defect: String) async throws {
    let shop = try await laxShop(insertDelivery([column: value]))
    let found = try await shop.deliveries()
    #expect(found.map(\.defect) == [defect] && found.map(\.isUndated) == [column == "delivered_at"])
  }

  @Test(
    "a receipt outside the contract has a defect, and is not asked about",
    arguments: [
      (nil, "'x'", "NULL", "'unverified'", "now()", nil),
      (nil, "NULL", "NULL", "'verified'", "now()", "payload is missing"),
      (nil, "'x'", "NULL", "'odd'", "now()", "status 'odd' is not one of unverified, verified, timeout, rejected"),
      (nil, "'x'", "'infinity'", "'timeout'", "'-infinity'", "received_at is infinite; checked_at is infinite"),
      (nil, "'x'", "NULL", "'timeout'", "'1850-01-01'", "received_at \(years)"),
      (nil, "'x'", "'20000-01-01'", "'timeout'", "now()", "checked_at \(years)"),
      (nil, "'x'", "now()", "'timeout'", "now()", nil),
      ("''", "'x'", "NULL", "'timeout'", "now()", "receipt_id is empty"),
      ("repeat('r', 3000)", "'x'", "NULL", "'timeout'", "now()", long("receipt_id", 3000)),
    ] as [(String?, String, String, String, String, String?)])
  func badReceipt(
    _ id: String?, payload: String, checked: String, status: String, received: String, defect: String?
  ) async throws {
    let shop = try await laxShop(
      """
      INSERT INTO sales.receipts (receipt_id, payload, status, checked_at, received_at)
      VALUES (\(id ?? "'r1'"), \(payload), \(status), \(checked), \(received))
      """)
    let query = "SELECT \(SalesRows.receiptColumns), \(SalesRows.isValidReceipt) FROM sales.receipts r"
    let rows = try await shop.rows(query) { (try SalesRows.receipt($0, asOf: asOf), isAsked: try $0.bool(8)) }
    let (found, isAsked) = try #require(rows.first)
    #expect(found.defect == defect && found.isUndated == (received != "now()"))
    #expect(isAsked == (defect == nil))
  }

  @Test("an ID that is not UTF-8, in a database without an encoding, makes a bad row with the escaped ID")
  func noEncoding() async throws {
    let cluster = try await PrivatePostgres.start(encoding: "SQL_ASCII")
    let shop = try await TestShop.make(
      in: cluster,
      insertOrder(["order_id": #"E'caf\xe9'"#]) + insertOrder(["order_id": "'日'", "user_id": #"E'\xff'"#])
        + insertDelivery(["order_id": #"E'caf\xe9'"#]))
    let rows = try await shop.orders()
    #expect(rows.map(\.orderId) == [#"caf\xE9"#, "日"])
    #expect(rows.map(\.defect) == ["order_id is not valid UTF-8", "user_id is not valid UTF-8"])
    #expect(try await shop.deliveries().map(\.defect) == ["order_id is not valid UTF-8"])
  }

  @Test("a zero byte, which a source other than Postgres may contain, is a defect and is not shown", arguments: 0...9)
  func zeroBytes(_ length: Int) throws {
    for place in 0...length {
      for other in ["a", "é"] {
        let text = String(repeating: other, count: place) + "\0" + String(repeating: other, count: length - place)
        let bytes = Array(text.utf8)
        var record: [UInt8] = [0, 0, 0, 1, 0, 0, 0, 25, 0, 0, 0, UInt8(bytes.count)] + bytes
        var rows = CopyReader { () throws(PostgresError) in
          defer { record = [] }
          return record.isEmpty ? nil : record
        }
        #expect(try rows.advance())
        let found = try rows.salesText(0)
        #expect(found.defect("order_id", isRequired: true) == "order_id has a zero byte", "\(place) of \(length)")
        #expect(!found.shown.text.contains("\0"))
      }
    }
  }

  @Test("only orders with the status refunded have the instant up to which the refund was booked")
  func bookedRefunds() async throws {
    let shop = try await TestShop.make(
      insertOrder(["order_id": "'a'", "status": "'refunded'", "updated_at": "'2026-11-19T03:00:01Z'"])
        + insertOrder(["order_id": "'b'", "updated_at": "'2026-11-19T03:00:01Z'"]))
    let booked = try await shop.orders().map { $0.valid?.refundBookedBy }
    let sales = try SalesRows(shop.settings)
    let plain = try await shop.rows(sales.orders()) { try sales.plainOrder($0)?.refundBookedBy }
    #expect(booked == [Instant(seconds: 1_795_057_201), nil] && plain == booked)
  }

  @Test("an audit of the past hides later rows and changes, but reports rows without a usable date")
  func horizon() async throws {
    let shop = try await TestShop.make(
      Self.lax
        + insertOrder([
          "order_id": "'past'", "verified_at": "'2026-11-20T03:00:01Z'", "updated_at": "'2026-11-20T03:00:01Z'",
        ])
        + insertOrder(["order_id": "'later'", "created_at": "'2026-11-20T03:00:00.000001Z'"])
        + insertOrder(["order_id": "'never'", "created_at": "NULL"])
        + insertOrder(["order_id": "'ever'", "created_at": "'infinity'"])
        + insertOrder(["order_id": "'far'", "created_at": "'12000-01-01'"])
        + insertDelivery(["revoked_at": "'2026-11-20T03:00:01Z'"])
        + insertDelivery(["delivery_id": "'d2'", "delivered_at": "'2026-11-21'"]))
    let past = Horizon(asOf: asOf, clock: asOf + .days(1), isPastAudit: true)
    // A source that cannot run queries gets one instant: the last microsecond that a report can show.
    #expect(past.hidesRowsUntil == Instant(microseconds: 253_402_127_999_999_999))
    #expect(Horizon(asOf: asOf, clock: asOf + .days(1)).hidesRowsUntil == asOf + .days(1))
    #expect(try await shop.orders(horizon: past).map(\.orderId) == ["ever", "far", "never", "past"])
    // Tonight, rows up to the clock belong to the next night, and rows dated after the clock are reported.
    func tonight(_ seconds: Int64) -> Horizon { Horizon(asOf: asOf, clock: Instant(seconds: asOf.seconds + seconds)) }
    #expect(try await shop.orders(horizon: tonight(1)).map(\.orderId) == ["ever", "far", "never", "past"])
    #expect(try await shop.orders(horizon: tonight(0)).map(\.orderId) == ["ever", "far", "later", "never", "past"])
    let all = try await shop.orders()
    let undated = all.filter { row in if case .bad(let bad) = row { bad.isUndated } else { false } }
    #expect(all.count == 5 && undated.map(\.orderId) == ["ever", "far", "never"])
    let known = try await shop.deliveries(horizon: past)
    #expect(known.map(\.deliveryId) == ["d1"] && known.allSatisfy { $0.revokedAt == nil && $0.defect == nil })
    #expect(try await shop.deliveries().compactMap(\.revokedAt).count == 1)
    #expect(try await shop.deliveries(horizon: tonight(60)).map(\.deliveryId) == ["d1", "d2"])
    #expect(try await shop.deliveries(horizon: tonight(60)).allSatisfy { $0.revokedAt == nil })
    // A later verification is hidden up to the clock. After the clock it is wrong, and is read as it is.
    let early = Horizon(asOf: asOf, clock: asOf, isPastAudit: true)
    for (horizon, isChanged) in [(past, true), (tonight(1), true), (tonight(0), false)] {
      let orders = try await shop.orders(horizon: horizon).compactMap(\.valid)
      #expect(orders.contains(where: \.isChangedAfterAsOf) == isChanged)
    }
    for (horizon, isRead) in [(past, false), (tonight(1), false), (early, true), (tonight(0), true)] {
      let verified = try await shop.orders(horizon: horizon).contains { $0.valid?.verifiedAt != nil }
      let sales = try SalesRows(shop.settings, horizon: horizon)
      let isPlainVerified = try await shop.rows(sales.orders()) { try sales.plainOrder($0)?.verifiedAt != nil }
        .contains(true)
      #expect(verified == isRead && isPlainVerified == isRead)
    }
  }

  @Test(
    "rows are in byte order of their IDs, whatever the collation, the partitions and the role's settings",
    arguments: [
      "SELECT 1",
      #"ALTER TABLE sales.orders ALTER order_id TYPE text COLLATE "und-x-icu""#,
      """
      CREATE COLLATION public.loose (provider = icu, locale = 'und-u-ks-level1', deterministic = false);
      ALTER TABLE sales.orders DROP CONSTRAINT orders_pkey, ALTER order_id TYPE text COLLATE public.loose,
        ALTER user_id TYPE text COLLATE public.loose
      """,
      """
      ALTER TABLE sales.orders RENAME TO old; CREATE TABLE sales.orders (LIKE sales.old) PARTITION BY HASH (order_id);
      CREATE TABLE sales.p0 PARTITION OF sales.orders FOR VALUES WITH (MODULUS 2, REMAINDER 0);
      CREATE TABLE sales.p1 PARTITION OF sales.orders FOR VALUES WITH (MODULUS 2, REMAINDER 1)
      """,
      "ALTER ROLE postgres SET DateStyle TO 'SQL, DMY'; ALTER ROLE postgres SET TimeZone TO 'Asia/Kathmandu'",
    ])
  func order(_ change: String) async throws {
    let ids = ["A", "B", "Z", "a", "aa", "b", "é", "日"]
    let shop = try await TestShop.make(
      change + ";" + ids.reversed().map { insertOrder(["order_id": "'\($0)'"]) }.joined())
    let rows = try await shop.orders()
    #expect(rows.map(\.orderId.text) == ids && rows.allSatisfy { $0.createdAt == Instant(seconds: 1_795_082_400) })
    let one = try SalesRows.equals("o.order_id", "a")
    let found = try await shop.reading {
      try $0.execute("SELECT count(*) FROM sales.orders o WHERE \(one)").single().int64(0)
    }
    #expect(found == 1)
    try await shop.connected { try $0.executeScript("ALTER ROLE postgres RESET ALL") }
  }
}
