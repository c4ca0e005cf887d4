import AuditStore
import Foundation
import Postgres
import Reconciliation
import Reporting
import SalesStore
import ShopDatabases
import TestSupport
import Testing

@testable import NightAudit
@testable import Run
@testable import Settings

/// Breaks each part of the databases in turn.
@Suite(.serialized, .timeLimit(.minutes(10)))
struct DoctorTests {
  private static let sound = """
    INSERT INTO sales.orders (order_id, user_id, product_id, quantity, amount, currency, status, created_at, updated_at)
      VALUES ('4711', 'u1', 'gems.100', 1, 4.99, 'USD', 'verified', now() - interval '1 day', now());
    INSERT INTO sales.deliveries (delivery_id, order_id, user_id, product_id, quantity, delivered_at)
      VALUES ('d1', '4711', 'u1', 'gems.100', 1, now() - interval '1 day');
    INSERT INTO sales.receipts (receipt_id, order_id, user_id, payload, status, received_at)
      VALUES ('r1', '4711', 'u1', 'not a receipt', 'unverified', now() - interval '1 day');
    """

  private static let orders = """
    INSERT INTO sales.orders (order_id, user_id, product_id, quantity, amount, currency, status, created_at, updated_at)
    """
  private static let deliveries =
    "INSERT INTO sales.deliveries (delivery_id, order_id, user_id, product_id, quantity, delivered_at)"

  /// Each row of the relation occurs twice.
  private static func doubled(_ relation: String) -> String {
    """
    ALTER TABLE \(relation) RENAME TO kept; GRANT SELECT ON kept TO auditor;
    CREATE VIEW \(relation) AS SELECT * FROM kept UNION ALL SELECT * FROM kept;
    GRANT SELECT ON \(relation) TO auditor
    """
  }

  private static let auditor = """
    DO $$ BEGIN CREATE ROLE auditor LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$;
    GRANT USAGE ON SCHEMA sales, night_audit TO auditor; GRANT SELECT ON ALL TABLES IN SCHEMA sales TO auditor;
    GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA night_audit TO auditor;
    GRANT USAGE ON ALL SEQUENCES IN SCHEMA night_audit TO auditor;
    GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA night_audit TO auditor;
    REVOKE EXECUTE ON FUNCTION night_audit.announce_event(), night_audit.guard_run(), night_audit.record_run(),
      night_audit.refuse_change() FROM auditor;
    REVOKE UPDATE, DELETE ON night_audit.runs, night_audit.evidence, night_audit.answers, night_audit.finding_events,
      night_audit.run_events FROM auditor;
    REVOKE INSERT, UPDATE, DELETE ON night_audit.trail, night_audit.retention, night_audit.schema_migrations FROM auditor;
    """

  private static func shop() async throws -> String {
    try await PrivatePostgres.shared().createDatabase(like: "doctor") { conninfo in
      try await withBlockingThread { scope in
        let owner = try scope.connect(conninfo, applicationName: "tests")
        try SalesSchema.create("sales", owner)
        _ = try Migrator.migrate(owner)
        try owner.executeScript(Self.sound + Self.auditor)
        // Makes the role a writer.
        _ = try Migrator.migrate(owner)
      }
    }
  }

  /// Examines new databases after `change`, in which `{database}` is a placeholder for the database's name.
  private func diagnoses(_ change: String) async throws -> [Diagnosis] {
    try await diagnoses(change, in: try await Self.shop())
  }

  /// For changes of rows and of the role, because a new database takes longer than new rows.
  private static let rowsShop = Task { try await shop() }

  private static let cleared = """
    TRUNCATE sales.orders, sales.deliveries, sales.receipts; DELETE FROM night_audit.transactions;
    """

  /// Examines databases with no rows but those of `change`.
  private func diagnoses(rows change: String) async throws -> [Diagnosis] {
    try await diagnoses(Self.cleared + change, in: try await Self.rowsShop.value)
  }

  private func diagnoses(
    _ change: String, in conninfo: String, pseudonyms: Pseudonyms? = nil
  ) async throws -> [Diagnosis] {
    try await withBlockingThread { scope in
      let owner = try scope.connect(conninfo, applicationName: "tests")
      let database = try owner.execute("SELECT current_database()").single().text(0)
      try owner.executeScript(Self.reset + "SET search_path TO sales;" + change.replacing("{database}", with: database))
    }
    var settings = Settings()
    settings.databaseURL = conninfo + " user=auditor"
    settings.apps = [Settings.App(name: "game", bundleId: "com.example.game")]
    settings.pseudonyms = pseudonyms
    return await Doctor(settings: settings).databases()
  }

  @Test("a correct shop has no problem, and doctor shows how it reads a row of each relation")
  func sound() async throws {
    let found = try await diagnoses("SELECT 1")
    #expect(found.compactMap(\.problem) == [])
    let subjects = found.map(\.subject)
    #expect(subjects.contains("order 4711: 4.99 USD, status verified, 1 x gems.100, delivered"))
    #expect(subjects.contains("delivery d1: 1 x gems.100 to user u1, for order 4711"))
    #expect(subjects.contains("receipt r1: a malformed payload of 13 bytes, for order 4711"))
    #expect(Set(subjects).count == subjects.count)
  }

  private func expect(_ breakage: Breakage, in found: [Diagnosis]) {
    let texts = found.map { "\($0.subject): \($0.problem ?? $0.warning ?? "")" }
    let match = found.first { diagnosis in
      diagnosis.subject.hasPrefix(breakage.subject)
        && (breakage.isProblem ? diagnosis.problem : diagnosis.warning)?
          .replacing(/test_[0-9a-f]{32}/, with: "{database}").contains(breakage.remedy) == true
    }
    #expect(match != nil, "\(texts)")
    #expect(Set(texts).count == texts.count, "\(texts)")
  }

  /// A change of the databases, and its diagnosis.
  struct Breakage: Sendable, CustomTestStringConvertible {
    let change: String
    let subject: String
    let remedy: String
    let isProblem: Bool

    var testDescription: String { "\(subject): \(remedy)" }

    static func problem(_ subject: String, _ remedy: String, _ change: String) -> Breakage {
      Breakage(change: change, subject: subject, remedy: remedy, isProblem: true)
    }

    static func warning(_ subject: String, _ remedy: String, _ change: String) -> Breakage {
      Breakage(change: change, subject: subject, remedy: remedy, isProblem: false)
    }
  }

  /// Breakages of definitions and rights.
  static let breakages: [Breakage] = [
    .problem("schema sales", "GRANT USAGE ON SCHEMA \"sales\" TO auditor", "REVOKE USAGE ON SCHEMA sales FROM auditor"),
    .problem("sales.orders", "GRANT SELECT ON \"sales\".\"orders\" TO auditor", "REVOKE SELECT ON orders FROM auditor"),
    .problem(
      "sales.orders.user_id", "may not be read",
      "REVOKE SELECT ON orders FROM auditor; GRANT SELECT (order_id) ON orders TO auditor"),
    .problem(
      "sales.orders", "a view reads with its owner's rights",
      """
      ALTER TABLE orders RENAME TO kept; CREATE VIEW orders AS SELECT * FROM kept; REVOKE ALL ON kept FROM auditor;
      ALTER VIEW orders OWNER TO auditor
      """),
    .problem("sales.orders", "ALTER ROLE auditor BYPASSRLS", "ALTER TABLE orders ENABLE ROW LEVEL SECURITY"),
    .problem("sales.receipts", "does not exist; create a view", "DROP TABLE receipts"),
    .problem("schema sales", "does not exist; create it", "DROP SCHEMA sales CASCADE"),
    .problem(
      "sales.orders.amount", "amount::numeric AS amount",
      "ALTER TABLE orders ALTER amount TYPE money USING amount::money"),
    .problem("sales.orders.amount", "round(amount::numeric, 4)", "ALTER TABLE orders ALTER amount TYPE float8"),
    .problem("sales.orders.created_at", "AT TIME ZONE", "ALTER TABLE orders ALTER created_at TYPE timestamp"),
    .problem("sales.orders.updated_at", "add the column", "ALTER TABLE orders DROP updated_at"),
    .problem(
      "sales.orders", "a view that is read fails on one of its rows; correct the view",
      """
      ALTER TABLE orders RENAME TO kept; CREATE VIEW orders AS SELECT order_id, user_id, bundle_id, product_id,
      (quantity / (1 - quantity))::int AS quantity, amount, currency, status, transaction_id, app_account_token,
      created_at, verified_at, updated_at FROM kept; GRANT SELECT ON orders TO auditor
      """),
    .warning("sales.orders", "order_id is not unique", doubled("orders")),
    .warning("sales.deliveries", "delivery_id is not unique", doubled("deliveries")),
    .warning("sales.receipts", "receipt_id is not unique", doubled("receipts")),
    .warning("sales.orders", "revoke INSERT, UPDATE", "GRANT UPDATE ON orders TO auditor"),
    .problem("database.url", "GRANT TEMPORARY ON DATABASE", "REVOKE TEMPORARY ON DATABASE {database} FROM PUBLIC"),
    .problem("schema night_audit", "Run: night-audit init", "DROP SCHEMA night_audit CASCADE"),
    .problem(
      "schema night_audit", "run: GRANT night_audit_writer TO auditor",
      "REVOKE USAGE ON SCHEMA night_audit FROM auditor"),
    .problem(
      "night_audit.findings", "GRANT UPDATE, DELETE ON night_audit.findings TO auditor",
      "REVOKE DELETE, UPDATE ON night_audit.findings FROM auditor"),
    .problem(
      "schema night_audit", "Restore the release",
      "UPDATE night_audit.schema_migrations SET sha256 = 'x' WHERE version = 1"),
    .problem(
      "schema night_audit", "newer than this program",
      "INSERT INTO night_audit.schema_migrations (version, name, sha256) VALUES (9999, 'x', 'y')"),
    .warning(
      "last complete night 2026-01-01T00:00:00Z", "more than 26 hours ago",
      """
      INSERT INTO night_audit.runs (run_id, command, as_of, finished_at, period_since, period_until, time_zone,
      configuration, is_nightly, host, version, complete) VALUES (gen_random_uuid(), 'run', '2026-01-01',
      '2026-01-01', '2026-01-01', '2026-01-01', 'UTC', '', true, 'h', '1', true)
      """),
    .warning(
      "night_audit.findings_open",
      "run: CREATE INDEX findings_open ON night_audit.findings (finding_id) WHERE closed_at IS NULL",
      "DROP INDEX night_audit.findings_open"),
    .warning(
      "sales.receipts.receipt_id", "run: CREATE INDEX CONCURRENTLY ON public.\"apple\" (((number)::text))",
      """
      CREATE TABLE public.apple (number bigint, buyer text); INSERT INTO public.apple SELECT n, 'u' FROM
      generate_series(1, 10000) n; DROP TABLE receipts; CREATE VIEW receipts AS SELECT number::text AS receipt_id,
      NULL::text AS order_id, buyer AS user_id, 'x'::text AS payload, NULL::text AS environment, 'verified'::text AS
      status, NULL::timestamptz AS checked_at, now() AS received_at FROM public.apple WHERE buyer <> ''; GRANT SELECT
      ON receipts TO auditor
      """),
    // Enough bad rows to hold a first night, but too few to hold a later one.
    .warning(
      "last complete night", "none of the 2 nights so far was complete",
      """
      INSERT INTO night_audit.runs (run_id, command, as_of, period_since, period_until, time_zone, configuration,
      is_nightly, host, version, publication) SELECT gen_random_uuid(), 'run', now(), day, day, 'UTC', '', true, 'h',
      '1', publication FROM (VALUES (current_date - 2, 'held'), (current_date - 2, NULL), (current_date - 1, 'held'),
      (current_date, 'forgotten')) nights (day, publication)
      """),
    .problem(
      "database.url", "ALTER DATABASE {database} CONNECTION LIMIT -1", "ALTER DATABASE {database} CONNECTION LIMIT 3"),
    .problem(
      "database.url", "check database.url or libpq's PG* variables", "REVOKE CONNECT ON DATABASE {database} FROM PUBLIC"
    ),
    .problem(
      "night_audit.", "the right USAGE is missing", "REVOKE USAGE ON ALL SEQUENCES IN SCHEMA night_audit FROM auditor"),
    .problem(
      "night_audit.", "may not be called; run: GRANT EXECUTE ON FUNCTION night_audit.append_trail(",
      "REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA night_audit FROM auditor"),
    .problem(
      "function night_audit.twist()", "DROP ROUTINE night_audit.twist()",
      """
      CREATE FUNCTION night_audit.twist() RETURNS void LANGUAGE sql AS 'SELECT'; REVOKE ALL ON FUNCTION
      night_audit.twist() FROM PUBLIC
      """),
    .problem(
      "function night_audit.record_run()", "auditor may make triggers of other tables run it",
      "GRANT EXECUTE ON FUNCTION night_audit.record_run() TO auditor"),
    .warning(
      "schema night_audit", "REVOKE UPDATE, DELETE, TRUNCATE ON night_audit.evidence FROM auditor",
      "GRANT UPDATE ON night_audit.evidence TO auditor"),
    .warning(
      "schema night_audit", "REVOKE INSERT, UPDATE, DELETE, TRUNCATE ON night_audit.trail FROM auditor",
      "GRANT INSERT ON night_audit.trail TO auditor"),
  ]

  /// Breakages of rows and of the role.
  static let oddRows: [Breakage] = [
    .warning("sales.orders", "is empty", "DELETE FROM orders"),
    .warning("sales.deliveries", "is empty", "DELETE FROM deliveries"),
    .warning("sales.receipts", "is empty", "DELETE FROM receipts"),
    .problem("sales.orders", "status 'PAID' is not one of", "UPDATE orders SET status = 'PAID'"),
    .problem("sales.orders", "belongs to no configured app", "UPDATE orders SET bundle_id = 'com.example.other'"),
    .problem("sales.orders", "not a code of ISO 4217", "UPDATE orders SET currency = 'Euro'"),
    .problem(
      "sales.orders.amount", "amount / 100.0",
      "\(orders) SELECT 'c' || n, 'u', 'p', 1, 499, 'USD', 'pending', now(), now() FROM generate_series(1, 30) n"),
    .problem(
      "sales.deliveries", "30 of 31 orders are verified and have no delivery",
      """
      \(orders) SELECT 'c' || n, 'u', 'p', 1, 4.98, 'USD', 'verified', now() - interval '1 day', now() FROM
      generate_series(1, 30) n
      """),
    .warning("role auditor", "is a superuser", "ALTER ROLE auditor SUPERUSER"),
    .problem("role auditor", "ALTER ROLE auditor CONNECTION LIMIT -1", "ALTER ROLE auditor CONNECTION LIMIT 4"),
    .problem(
      "database.url", "RESET default_transaction_read_only",
      "ALTER ROLE auditor SET default_transaction_read_only TO on"),
    .warning(
      "sales.receipts.payload (9 payloads: 9 malformed)", "payloads are no receipts",
      """
      INSERT INTO receipts (receipt_id, user_id, payload, status, received_at) SELECT 'r' || n, 'u', 'rubbish',
      'unverified', now() FROM generate_series(2, 9) n
      """),
    .warning(
      "sales.orders.transaction_id", "IDs of Google Play",
      "UPDATE orders SET transaction_id = 'GPA.3374-2691-5912-99103'"),
    .problem("sales.orders", "more than the 2 decimals of USD", "UPDATE orders SET amount = 4.999"),
    .warning("sales.deliveries", "delivered_at", "UPDATE deliveries SET delivered_at = 'infinity'"),
    .warning("sales.receipts", "status", "UPDATE receipts SET status = 'odd'"),
    .warning("role auditor", "NOCREATEDB NOCREATEROLE", "ALTER ROLE auditor CREATEDB CREATEROLE"),
    .problem("database.url", "check database.url or libpq's PG* variables", "ALTER ROLE auditor NOLOGIN"),
  ]

  private static let hundred = """
    INSERT INTO sales.orders (order_id, user_id, product_id, quantity, amount, currency, status, created_at, verified_at,
      updated_at)
    SELECT 'o' || n, 'u' || n % 10, CASE WHEN n % 4 = 0 THEN 'gold.monthly' ELSE 'gems' END, 1, 4.99, 'USD', 'verified',
      now() - n * interval '5 hours', now() - n * interval '5 hours' + interval '4 seconds', now()
    FROM generate_series(1, 100) n;
    INSERT INTO sales.deliveries (delivery_id, order_id, user_id, product_id, quantity, delivered_at)
    SELECT 'd' || order_id, order_id, user_id, product_id, quantity, verified_at FROM sales.orders;
    INSERT INTO sales.receipts (receipt_id, order_id, user_id, payload, status, received_at)
    SELECT 'r' || order_id, order_id, user_id, '\(signed)', 'verified', verified_at FROM sales.orders;
    """

  /// A signed sandbox transaction. It is compared with no order, but shows that gems are a consumable.
  private static let signed =
    "eyJhbGciOiJFUzI1NiJ9."
    + Data(
      #"{"environment":"Sandbox","transactionId":"1","productId":"gems","bundleId":"com.example.game","type":"Consumable","signedDate":1}"#
        .utf8
    )
    .base64EncodedString()
    + "." + String(repeating: "A", count: 86)

  /// Apple has reported a price for the transaction of each order.
  private static func reported(_ price: String) -> String {
    """
    UPDATE sales.orders SET transaction_id = '2' || substr(order_id, 2);
    INSERT INTO night_audit.transactions (environment, transaction_id, product_id, purchased_at, price_milliunits,
      currency, tells_account_token, is_contradictory, channel, signed_at, checked_at)
    SELECT 'Production', transaction_id, product_id, created_at, \(price) * 1000, 'USD', false, false, 'serverApi', now(),
      now() FROM sales.orders;
    """
  }

  /// Amounts of six products. Each product has orders with the amounts of all six.
  private static let scatteredAmounts = """
    UPDATE sales.orders SET product_id = 'pack.' || substr(order_id, 2)::int % 6,
      amount = (ARRAY[0.99, 4.99, 9.99, 7.99, 19.99, 2.99])[1 + substr(order_id, 2)::int / 6 % 6];
    UPDATE sales.deliveries d SET product_id = o.product_id FROM sales.orders o WHERE o.order_id = d.order_id;
    """

  /// Orders and receipts older than the lookback. Everything in them is wrong.
  private static let old = """
    INSERT INTO sales.orders (order_id, user_id, product_id, quantity, amount, currency, status, transaction_id, created_at,
      updated_at)
    SELECT 'old' || n, 'v' || n, 'gems', 1, CASE WHEN n % 2 = 0 THEN 499 ELSE 0 END, 'USD',
      CASE WHEN n % 3 = 0 THEN 'PAID' ELSE 'refunded' END, 'GPA.' || n, now() - interval '200 days', now()
    FROM generate_series(1, 900) n;
    INSERT INTO sales.receipts (receipt_id, order_id, user_id, payload, status, received_at)
    SELECT 'old' || n, 'old' || n, 'app', 'rubbish', 'verified', now() - interval '200 days' FROM generate_series(1, 900) n;
    """

  static let mistakes: [Breakage] = [
    .problem(
      "sales.deliveries.user_id",
      "100 of 100 deliveries have another user than their order (a night would be held, each would be wrong_user)",
      "UPDATE deliveries SET user_id = 'U' || user_id"),
    .warning(
      "sales.deliveries.user_id", "20 of 100 deliveries have another user",
      "UPDATE deliveries SET user_id = 'U' || user_id WHERE right(order_id, 1) IN ('1', '2')"),
    .problem(
      "sales.deliveries.quantity",
      "more units in deliveries than in orders (a night would be held, each would be delivered_twice); count the same units",
      "UPDATE deliveries SET quantity = 80"),
    .problem(
      "sales.deliveries.quantity",
      "fewer units in deliveries than in orders (a night would be held, each would be partly_delivered)",
      "UPDATE orders SET quantity = 80"),
    .problem(
      "sales.deliveries.product_id",
      "100 of 100 deliveries have another product than their order; select Apple's product identifier",
      "UPDATE deliveries SET product_id = upper(product_id)"),
    .warning(
      "sales.deliveries.product_id", "20 of 100 deliveries have another product",
      "UPDATE deliveries SET product_id = upper(product_id) WHERE right(order_id, 1) IN ('1', '2')"),
    .problem(
      "sales.deliveries.quantity",
      "100 of 100 delivered orders have more units in deliveries than in orders (a night would be held",
      "\(deliveries) SELECT 'e' || order_id, order_id, user_id, product_id, quantity, delivered_at FROM deliveries"),
    .problem(
      "sales.deliveries.revoked_at",
      """
      75 of 75 verified orders, of products that are no subscriptions, have only deliveries that were taken back (a night \
      would be held, each would be paid_not_delivered)
      """, "UPDATE deliveries SET revoked_at = delivered_at + interval '30 days'"),
    .warning(
      "sales.deliveries.order_id", "24 of 124 deliveries have no order here (each would be",
      "\(deliveries) SELECT 'g' || n, 'GPA.' || n, 'u1', 'gems', 1, now() FROM generate_series(1, 24) n"),
    .problem(
      "sales.deliveries.order_id",
      "100 of 100 deliveries have no order here (a night would be held, each would be orphan_delivery)",
      "UPDATE deliveries SET order_id = 'x' || order_id"),
    .problem(
      "sales.deliveries", "25 of 100 orders are verified and have no delivery (a night would be held",
      "DELETE FROM deliveries WHERE product_id = 'gold.monthly'"),
    .warning(
      "sales.deliveries of season.pass", "20 of 20 verified orders of this product",
      """
      UPDATE orders SET product_id = 'season.pass' WHERE order_id IN (SELECT 'o' || n FROM generate_series(1, 20) n);
      DELETE FROM deliveries WHERE order_id IN (SELECT 'o' || n FROM generate_series(1, 20) n)
      """),
    .warning(
      "sales.orders.verified_at",
      "100 of 100 orders were verified before they were created; if one of the two columns is read in a wrong",
      "UPDATE orders SET created_at = created_at + interval '1 hour'"),
    .warning(
      "sales.deliveries.delivered_at", "half an hour later",
      "UPDATE orders SET created_at = created_at - interval '1 hour'"),
    .problem(
      "sales.deliveries.user_id", "100 of 100 deliveries have another user",
      "UPDATE deliveries SET user_id = 'U' || user_id, delivery_id = delivery_id || '-7'"),
    .warning(
      "sales.deliveries of gold.monthly", "25 of 25 verified orders of this product",
      """
      \(orders) SELECT 'f' || n, 'u1', 'gems', 1, 4.99, 'USD', 'failed', now(), now() FROM generate_series(1, 80) n;
      DELETE FROM deliveries WHERE product_id = 'gold.monthly'
      """),
    .warning(
      "sales.deliveries.user_id", "36 of 100 deliveries have another user",
      """
      \(orders) SELECT 'f' || n, 'u1', 'gems', 1, 4.99, 'USD', 'failed', now(), now() FROM generate_series(1, 80) n;
      UPDATE deliveries SET user_id = 'U' || user_id WHERE order_id IN (SELECT 'o' || n FROM generate_series(1, 36) n)
      """),
    .warning(
      "sales.deliveries.revoked_at", "deliveries were taken back before they were made",
      "UPDATE deliveries SET revoked_at = delivered_at - interval '1 hour' WHERE right(order_id, 1) IN ('1', '2')"),
    .problem(
      "sales.deliveries.revoked_at",
      "taken back within a day (a night would be held, each would be paid_not_delivered)",
      "UPDATE deliveries SET revoked_at = delivered_at + interval '1 hour'"),
    .problem(
      "sales.orders.status", "100 of 100 orders are refunded (a night would be held, each would be refund_only_here)",
      "UPDATE orders SET status = 'refunded'"),
    .warning(
      "sales.orders.updated_at", "orders were changed before they were created",
      "UPDATE orders SET updated_at = created_at - interval '1 hour'"),
    .warning(
      "sales.receipts.received_at", "100 of 100 orders have a receipt that is earlier than the order",
      "UPDATE receipts SET received_at = received_at - interval '1 hour'"),
    .warning(
      "sales.receipts.received_at", "100 of 100 orders have no receipt within half an hour",
      "UPDATE receipts SET received_at = received_at + interval '1 hour'"),
    .warning(
      "sales.receipts.checked_at", "checked before they were received",
      "UPDATE receipts SET checked_at = received_at - interval '1 hour'"),
    .problem(
      "sales.receipts.order_id",
      "100 of 100 verified orders have no receipt, no transaction ID and no account token (a night would be held",
      "UPDATE receipts SET order_id = 'x' || order_id"),
    .warning(
      "sales.receipts.order_id", "orders of receipts are not in orders",
      "UPDATE receipts SET order_id = 'x' || order_id; UPDATE orders SET transaction_id = '2' || substr(order_id, 2)"),
    .problem(
      "sales.orders.created_at", "100 of 100 orders are in the future",
      "UPDATE orders SET created_at = created_at + interval '1 year'"),
    .problem(
      "sales.deliveries", "rows break the contract (a night would be held, each would be bad_row); correct the view",
      "UPDATE deliveries SET quantity = 0 WHERE right(order_id, 1) < '4'"),
    .problem(
      "sales.deliveries.user_id", "of 100 deliveries have another user",
      """
      UPDATE deliveries SET quantity = 0 WHERE right(order_id, 1) < '4'; UPDATE deliveries SET user_id = 'U' ||
      user_id
      """),
    .problem(
      "sales.orders.amount", "looks like cents: 100 of 100 amounts are whole numbers such as 499 ",
      "UPDATE orders SET amount = 499"),
    .problem(
      "sales.orders.amount",
      "such as 4990 (a night would be held, each would be amount_mismatch); write amount / 1000.0 in the view",
      "UPDATE orders SET amount = 4990"),
    .problem(
      "sales.orders.amount",
      "such as 4990000 (a night would be held, each would be amount_mismatch); write amount / 1000000.0 in the view",
      "UPDATE orders SET amount = 4990000"),
    .problem(
      "sales.orders.amount", "100 of 100 orders with a transaction ID or a receipt have the amount 0; select the total",
      "UPDATE orders SET amount = 0"),
    .problem(
      "sales.orders.amount",
      "100 of 100 transactions that Apple reported have another price than their order (a night would be held",
      "\(reported("4.990")) UPDATE orders SET amount = 9.99"),
    .warning(
      "sales.receipts.user_id", "100 of 100 orders have receipts of another user; select the same kind of user id",
      "UPDATE receipts SET user_id = 'app'"),
    .problem(
      "sales.orders.amount",
      "of their product: they are of other orders, or in another currency than stated; select the total",
      scatteredAmounts),
    .problem(
      "sales.orders.user_id", "is the same in all orders",
      "\(old) UPDATE orders SET user_id = 'u1' WHERE order_id NOT LIKE 'old%'; UPDATE deliveries SET user_id = 'u1'"),
    .problem(
      "sales.orders.app_account_token", "is the same in the orders of different users",
      """
      \(old) UPDATE orders SET app_account_token = CASE WHEN order_id LIKE 'old%' THEN gen_random_uuid()::text ELSE
      '00000000-0000-4000-8000-000000000001' END
      """),
    .problem(
      "sales.orders.user_id", "is the same in all orders; select the column of the buyer",
      "UPDATE orders SET user_id = 'u1'; UPDATE deliveries SET user_id = 'u1'"),
    .problem(
      "sales.orders.app_account_token",
      "is the same in the orders of different users; select the UUID that the app gives to StoreKit",
      "UPDATE orders SET app_account_token = '00000000-0000-4000-8000-000000000001'"),
  ]

  @Test("a mistake in many rows is reported with examples, and is a problem if it holds a night", arguments: mistakes)
  func comparisons(_ mistake: Breakage) async throws {
    let found = try await diagnoses(rows: Self.hundred + mistake.change)
    expect(mistake, in: found)
    let match = try #require(found.first { $0.subject.hasPrefix(mistake.subject) && !$0.isFine })
    let text = match.problem ?? match.warning ?? ""
    #expect(text.components(separatedBy: "Examples: ").last?.components(separatedBy: "; ").count == 3, "\(text)")
    #expect(found.contains { $0.problem != nil } == mistake.isProblem, "\(found)")
  }

  @Test("with pseudonyms no example names a user, because nights print and mail the problems that hold them")
  func pseudonymised() async throws {
    let pseudonyms = try #require(Pseudonyms(key: Array("sixteen bytes ok".utf8)))
    let others = "UPDATE deliveries SET user_id = 'mallory.d'; UPDATE receipts SET user_id = 'mallory.r';"
    for (orders, subjects) in [
      (
        "UPDATE orders SET user_id = 'mallory.o';",
        ["sales.orders.user_id", "sales.deliveries.user_id", "sales.receipts.user_id"]
      ),
      (
        """
        UPDATE orders SET user_id = 'mallory.' || order_id, app_account_token = '00000000-0000-4000-8000-000000000001';
        """, ["sales.orders.app_account_token", "sales.deliveries.user_id", "sales.receipts.user_id"]
      ),
    ] {
      let found = try await diagnoses(
        Self.cleared + Self.hundred + orders + others, in: try await Self.rowsShop.value, pseudonyms: pseudonyms)
      for subject in subjects {
        let match = try #require(found.first { $0.subject == subject && !$0.isFine }, "\(subject): \(found)")
        let text = match.problem ?? match.warning ?? ""
        #expect(text.contains("Examples: order ") && !text.contains("mallory"), "\(text)")
      }
    }
  }

  @Test("a correct shop with aliases and orders with several deliveries has no warning")
  func soundComparisons() async throws {
    let found = try await diagnoses(
      Self.cleared + Self.hundred + """
        CREATE TABLE sales.user_aliases (user_id text, same_as text);
        INSERT INTO sales.user_aliases SELECT 'g' || n, 'u' || n FROM generate_series(0, 9) n;
        GRANT SELECT ON sales.user_aliases TO auditor;
        UPDATE sales.deliveries SET user_id = 'g' || right(user_id, 1);
        UPDATE sales.receipts SET user_id = 'g' || right(user_id, 1);
        UPDATE sales.orders SET quantity = 2, amount = 449, currency = 'INR';
        INSERT INTO sales.deliveries (delivery_id, order_id, user_id, product_id, quantity, delivered_at)
          SELECT 'e' || order_id, order_id, user_id, product_id, quantity, delivered_at FROM sales.deliveries;
        UPDATE sales.deliveries SET revoked_at = delivered_at + interval '30 days' WHERE product_id = 'gold.monthly'
        """)
    let odd = found.filter { $0.subject.hasPrefix("sales.") && !$0.isFine }
    #expect(odd.isEmpty, "\(odd)")
  }

  @Test("mistakes in rows beyond the lookback are not reported")
  func oldRows() async throws {
    let found = try await diagnoses(rows: Self.hundred + Self.old)
    let odd = found.filter { $0.subject.hasPrefix("sales.") && !$0.isFine }
    #expect(odd.isEmpty, "\(odd)")
    #expect(found.contains { $0.subject == "sales.receipts.payload (100 payloads: 100 signed)" }, "\(found)")
  }

  @Test("amounts are compared with Apple's prices where Apple states them, else with each other")
  func prices() async throws {
    let payload = """
      UPDATE sales.orders SET transaction_id = '2' || substr(order_id, 2);
      UPDATE sales.receipts r SET payload = 'eyJhbGciOiJFUzI1NiJ9.' || translate(encode(convert_to(json_build_object(
        'environment', 'Production', 'transactionId', o.transaction_id, 'productId', o.product_id, 'bundleId',
        'com.example.game', 'type', 'Consumable', 'purchaseDate', (extract(epoch FROM o.created_at) * 1000)::bigint,
        'signedDate', 1, 'price', (o.amount * 1000)::bigint, 'currency', 'USD')::text, 'UTF8'), 'base64'), E'+/=\\n', '-_')
        || '.' || repeat('A', 86) FROM sales.orders o WHERE o.order_id = r.order_id;
      """
    for prices in [payload, Self.reported("amount")] {
      let found = try await diagnoses(rows: Self.hundred + Self.scatteredAmounts + prices)
      #expect(!found.contains { $0.subject == "sales.orders.amount" }, "\(found)")
    }
    // A free month of everybody.
    let free = try await diagnoses(rows: Self.hundred + "UPDATE sales.orders SET amount = 0;" + Self.reported("0"))
    #expect(!free.contains { $0.subject == "sales.orders.amount" }, "\(free)")
  }

  @Test("the sample of orders has at least 5,000 of many, at even distances")
  func sample() throws {
    var sample = OrderSample()
    let amount = Money(minorUnits: 499, currency: try #require(Currency(code: "USD")))
    for number in 0..<70_000 {
      sample.add(
        .valid(
          Order(
            orderId: Identifier("\(number)"), userId: "u", productId: "p", quantity: 1, amount: amount,
            status: .verified, createdAt: Instant(seconds: 0))))
    }
    let numbers = sample.orders.compactMap { Int($0.orderId.text) }
    #expect((5_000...10_000).contains(numbers.count))
    #expect(Set(zip(numbers, numbers.dropFirst()).map { $1 - $0 }) == [8])
  }

  @Test("each fault is reported with its remedy", arguments: breakages)
  func broken(_ breakage: Breakage) async throws { expect(breakage, in: try await diagnoses(breakage.change)) }

  @Test("each fault of a few rows or of the role is reported with its remedy", arguments: oddRows)
  func odd(_ breakage: Breakage) async throws {
    expect(breakage, in: try await diagnoses(rows: Self.sound + breakage.change))
  }

  @Test(
    "settings of the role do not affect a night",
    arguments: [
      "statement_timeout TO '1ms'", "idle_in_transaction_session_timeout TO '1ms'", "search_path TO public",
      "quote_all_identifiers TO on",
    ])
  func settings(_ setting: String) async throws {
    let found = try await diagnoses(rows: Self.sound + "ALTER ROLE auditor SET \(setting)")
    #expect(found.compactMap(\.problem) == [])
  }

  @Test("a standby as our own store is a problem and a configuration error, because it cannot be written")
  func standby() async throws {
    let primary = try await PrivatePostgres.start()
    let store = primary.conninfo(database: "postgres")
    _ = try await withBlockingThread { try Migrator.migrate($0.connect(store, applicationName: "tests")) }
    let standby = try await primary.startStandby()
    try await standby.catchUp(with: primary)
    var settings = Settings()
    settings.databaseURL = standby.conninfo(database: "postgres")
    let found = await Doctor(settings: settings).databases()
    #expect(found.contains { $0.problem?.contains("is a standby, which cannot be written") == true })
    #expect(found.contains { $0.subject == "schema night_audit" && $0.problem == nil }, "\(found)")
    let conninfo = settings.databaseURL
    try await withBlockingThread { scope in
      let connection = try scope.connect(conninfo, applicationName: "tests")
      let begins: [(borrowing BlockingConnection) throws -> Void] = [
        { try $0.transaction { _ in } }, { _ = try $0.pipelinedTransaction { try $0.execute("SELECT 1") } },
      ]
      for begin in begins {
        let error = #expect(throws: PostgresError.self) { try begin(connection) }
        #expect(error?.exitStatus == .configuration)
        #expect(error?.description.contains("database.url must name one that may write") == true)
      }
    }
  }

  @Test("the list of indexes is exactly that of the migrated schema")
  func indexes() async throws {
    let conninfo = try await PrivatePostgres.storeDatabase()
    let present = try await withBlockingThread { scope in
      try scope.connect(conninfo, applicationName: "tests").execute(
        """
        SELECT c.relname::text FROM pg_class c JOIN pg_index i ON i.indexrelid = c.oid
        WHERE c.relnamespace = 'night_audit'::regnamespace AND NOT c.relispartition
          AND NOT EXISTS (SELECT 1 FROM pg_constraint k WHERE k.conindid = c.oid)
        """
      ).map { try $0.text(0) }
    }
    #expect(SchemaIndex.all.map(\.name).sorted() == present.sorted())
  }

  @Test("a connection to an unverified server is a warning", arguments: [("require", true), ("verify-full", false)])
  func encryption(_ mode: String, isOdd: Bool) async throws {
    let folder = try TemporaryDirectory()
    let certificate = try ServerCertificate(in: folder.path)
    let server = try await PrivatePostgres.start(certificate: certificate)
    var settings = Settings()
    settings.databaseURL = "host=localhost port=\(server.port) user=postgres dbname=postgres sslmode=\(mode)"
    if !isOdd { settings.databaseURL += " sslrootcert=\(certificate.path)" }
    let found = await Doctor(settings: settings).databases()
    #expect(
      found.contains { $0.warning?.contains("set sslmode=verify-full and sslrootcert") == true } == isOdd, "\(found)")
  }

  @Test("a pooler in transaction mode is a problem", .enabled(if: PrivatePooler.isInstalled))
  func pooler() async throws {
    let pooler = try await PrivatePooler.start(before: try await PrivatePostgres.shared(), mode: "transaction")
    var settings = Settings()
    settings.databaseURL = pooler.conninfo(database: "postgres")
    let found = await Doctor(settings: settings).databases()
    #expect(found.contains { $0.subject == "database.url" && $0.problem?.contains("pool_mode = session") == true })
    #expect(found.compactMap(\.problem).count == 1, "\(found)")
  }

  @Test("text that is not UTF-8, in a database without an encoding, is shown with its bytes and ends no examination")
  func noEncoding() async throws {
    var settings = Settings()
    settings.databaseURL = try await PrivatePostgres.shared().createDatabase(encoding: "SQL_ASCII")
    let examined = settings
    let found = try await withBlockingThread { scope in
      let connection = try scope.connect(examined.databaseURL, applicationName: "tests")
      try SalesSchema.create("sales", connection)
      try connection.executeScript(
        #"""
        INSERT INTO sales.orders
          (order_id, user_id, product_id, quantity, amount, currency, status, created_at, updated_at)
          SELECT 'o' || n, E'u\351', E'p\351', 1, 1, 'USD', 'verified', now() - interval '1 day', now()
          FROM generate_series(1, 30) n;
        INSERT INTO sales.deliveries SELECT 'd' || n, 'o' || n, E'u\351', E'q\351', 1, now(), NULL
          FROM generate_series(1, 30) n;
        INSERT INTO sales.receipts SELECT 'r' || n, 'o' || n, E'u\351', 'x', NULL, 'verified', NULL, now()
          FROM generate_series(1, 30) n
        """#)
      return try SalesHealth(settings: examined).examine(connection, scope)
    }
    let user = try #require(found.first { $0.subject == "sales.orders.user_id" })
    #expect((user.problem ?? user.warning)?.contains(#"user u\xE9"#) == true, "\(user)")
  }

  /// Roles belong to the cluster, so later tests would see a change of the role.
  private static let reset = """
    ALTER ROLE auditor LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE CONNECTION LIMIT -1; ALTER ROLE auditor RESET ALL;
    """
}
