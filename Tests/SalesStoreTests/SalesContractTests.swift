import Postgres
import Run
import Settings
import TestSupport
import Testing

@testable import SalesStore

@Suite(.serialized, .timeLimit(.minutes(10)))
struct SalesContractTests {
  /// The database of all cases, because a new one takes longer than new tables.
  private static let shop = Task { try await TestShop.make() }

  /// The defects of the sales schema after `change` to the plain tables.
  private func defects(_ change: String, conninfo suffix: String = "") async throws -> [String] {
    let shop = try await Self.shop.value
    try await shop.makePlain(change)
    var settings = shop.settings
    settings.databaseURL += suffix
    do {
      try await shop.reading(settings) { _ in }
      return []
    } catch let error as SalesContractError {
      #expect(error.exitStatus == .configuration)
      return error.defects.map(\.description)
    }
  }

  @Test("the plain tables satisfy the sales contract")
  func plain() async throws { #expect(try await defects("SELECT 1").isEmpty) }

  @Test(
    "columns of equivalent types are accepted",
    arguments: [
      "ALTER TABLE sales.orders ALTER user_id TYPE varchar(40)", "ALTER TABLE sales.orders ALTER user_id TYPE char(9)",
      "DROP INDEX sales.orders_token; ALTER TABLE sales.orders ALTER app_account_token TYPE uuid USING app_account_token::uuid",
      "CREATE TYPE public.state AS ENUM ('x'); ALTER TABLE sales.orders ALTER status TYPE public.state USING NULL",
      "CREATE DOMAIN public.a AS text; CREATE DOMAIN public.b AS public.a; ALTER TABLE sales.orders ALTER user_id TYPE public.b",
      "CREATE TYPE public.e AS ENUM ('x'); CREATE DOMAIN public.d AS public.e; ALTER TABLE sales.orders ALTER status TYPE public.d USING NULL",
      "ALTER TABLE sales.orders ALTER quantity TYPE bigint", "ALTER TABLE sales.orders ALTER quantity TYPE smallint",
      "ALTER TABLE sales.orders ALTER amount TYPE bigint", "ALTER TABLE sales.orders ALTER amount TYPE numeric(12, 2)",
      "CREATE DOMAIN public.price AS numeric(12, 2); ALTER TABLE sales.orders ALTER amount TYPE public.price",
      "CREATE VIEW sales.user_aliases AS SELECT 'a'::text AS user_id, 'b'::varchar AS same_as",
    ])
  func accepted(_ change: String) async throws { #expect(try await defects(change).isEmpty) }

  @Test(
    "a column of another type is reported with its type and the cast to write",
    arguments: [
      ("orders", "amount", "money", "money", "amount::numeric AS amount"),
      ("orders", "amount", "double precision", "double precision", "round(amount::numeric, 4) AS amount"),
      ("orders", "amount", "real", "real", "round(amount::numeric, 4) AS amount"),
      ("orders", "amount", "text", "text", "nullif(amount, '')::numeric AS amount"),
      ("orders", "created_at", "timestamp", "timestamp without time zone", "created_at AT TIME ZONE '<zone>'"),
      ("orders", "created_at", "date", "date", "created_at::timestamp AT TIME ZONE '<zone>'"),
      ("orders", "created_at", "bigint", "bigint", "to_timestamp(created_at) AS created_at"),
      ("orders", "created_at", "smallint", "smallint", "to_timestamp(created_at) AS created_at"),
      ("orders", "created_at", "numeric", "numeric", "to_timestamp(created_at) AS created_at"),
      ("orders", "created_at", "float8", "double precision", "to_timestamp(created_at) AS created_at"),
      ("orders", "created_at", "text", "text", "created_at::timestamp AT TIME ZONE '<zone>'"),
      ("orders", "quantity", "numeric", "numeric", "quantity::integer AS quantity"),
      ("orders", "user_id", "bigint", "bigint", "user_id::text AS user_id"),
      ("orders", "status", "bytea", "bytea", "status::text AS status"),
      ("receipts", "payload", "bytea", "bytea", "payload::text AS payload"),
      ("deliveries", "quantity", "text", "text", "quantity::integer AS quantity"),
    ])
  func wrongType(_ table: String, column: String, type: String, shown: String, cast: String) async throws {
    let found = try await defects("ALTER TABLE sales.\(table) DROP \(column), ADD \(column) \(type)")
    #expect(found.count == 1)
    let defect = try #require(found.first)
    #expect(defect.hasPrefix("sales.\(table).\(column) is of type \(shown), but must be "))
    // The zone of a time without one is known to its writers only.
    let zone =
      " AS created_at; for <zone> write the zone that the column's times are in, such as Europe/Berlin or UTC: "
      + "ask the team that writes them"
      + (type == "text" ? "; if each text ends with Z or an offset, write created_at::timestamptz" : "")
    let milliseconds =
      ["bigint", "numeric", "float8"].contains(type) && cast.hasPrefix("to_timestamp")
      ? "; if the numbers are milliseconds since 1970, write to_timestamp(created_at / 1000.0)" : ""
    #expect(defect.hasSuffix(cast.contains("<zone>") ? cast + zone : cast + milliseconds))
  }

  @Test("every cast that a defect names is one that the server has")
  func casts() async throws {
    let shop = try await Self.shop.value
    let types = [
      "name", "bytea", "json", "jsonb", "xml", "text[]", "boolean", "inet", "oid", "interval", "time", "money", "date",
      "timestamp", "text", "varchar(9)", "char(5)", "int2", "int4", "int8", "numeric", "float4", "float8", "bit(4)",
    ]
    var refused: [String] = []
    for type in types {
      let typeName = try await shop.connected {
        try $0.execute("SELECT typname::text FROM pg_type WHERE oid = '\(type)'::regtype").single().text(0)
      }
      for kind in SalesContract.Kind.allCases where !kind.accepts(typeName: typeName, isEnum: false) {
        guard let cast = kind.cast("x", from: typeName) else { continue }
        let sql = "SELECT \(cast.replacing("<zone>", with: "Europe/Berlin")) FROM (SELECT NULL::\(type) AS x) t"
        do { try await shop.connected { _ = try $0.execute(sql) } } catch { refused.append("\(type): \(cast)") }
      }
    }
    #expect(refused == [])
  }

  @Test("a column without a cast asks for other values")
  func noCast() async throws {
    let found = try await defects("ALTER TABLE sales.orders DROP created_at, ADD created_at interval")
    #expect(found.first?.hasSuffix("; no cast gives that, so select other values as created_at in the view") == true)
  }

  @Test("a view that fails on a row is an error of the configuration")
  func failingView() async throws {
    let shop = try await Self.shop.value
    try await shop.makePlain("SELECT 1")
    let error = await #expect(throws: PostgresError.self) {
      try await shop.reading { _ = try $0.execute("SELECT 1 / 0") }
    }
    #expect(error?.sqlState == "22012" && error?.exitStatus == .configuration)
  }

  @Test(
    "missing relations, columns and rights are reported with their remedy",
    arguments: [
      ("DROP SCHEMA sales CASCADE", "", "schema sales does not exist"),
      ("DROP TABLE sales.deliveries", "", "sales.deliveries does not exist"),
      ("ALTER TABLE sales.orders DROP verified_at", "", "NULL::timestamptz AS verified_at"),
      ("ALTER TABLE sales.orders DROP amount", "", "sales.orders.amount does not exist; add the column"),
      ("SELECT 1", " user=stranger", "GRANT USAGE ON SCHEMA \"sales\" TO stranger"),
      ("GRANT USAGE ON SCHEMA sales TO stranger", " user=stranger", "GRANT SELECT ON \"sales\".\"orders\" TO stranger"),
      (
        """
        GRANT USAGE ON SCHEMA sales TO stranger; GRANT SELECT ON ALL TABLES IN SCHEMA sales TO stranger;
        ALTER TABLE sales.orders ENABLE ROW LEVEL SECURITY
        """, " user=stranger", "ALTER ROLE stranger BYPASSRLS"
      ),
      (
        """
        GRANT USAGE ON SCHEMA sales TO stranger; GRANT SELECT ON ALL TABLES IN SCHEMA sales TO stranger;
        ALTER TABLE sales.orders RENAME TO kept;
        CREATE VIEW sales.orders AS SELECT * FROM sales.kept; ALTER VIEW sales.orders OWNER TO stranger;
        REVOKE SELECT ON sales.kept FROM stranger
        """, " user=stranger", "a view reads with its owner's rights"
      ),
      (
        "CREATE TABLE sales.products (product_id integer, type text, name text, sold_from date, sold_until timestamptz)",
        "", "product_id::text AS product_id"
      ),
    ])
  func missing(_ change: String, suffix: String, remedy: String) async throws {
    let prepared =
      "DO $$ BEGIN CREATE ROLE stranger LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$; \(change)"
    let found = try await defects(prepared, conninfo: suffix)
    #expect(found.contains { $0.contains(remedy) }, "\(found)")
  }

  /// The deliveries are those of another database, which `viewer` reads there.
  private func foreignDeliveries(_ there: TestShop, options: String) -> String {
    let database = there.conninfo.split(separator: " ").first { $0.hasPrefix("dbname=") }?.dropFirst(7) ?? ""
    return """
      CREATE EXTENSION IF NOT EXISTS postgres_fdw; DROP SERVER IF EXISTS "There" CASCADE;
      CREATE SERVER "There" FOREIGN DATA WRAPPER postgres_fdw
        OPTIONS (host '\(there.cluster.directory)', port '\(there.cluster.port)', dbname '\(database)'\(options));
      CREATE USER MAPPING FOR CURRENT_USER SERVER "There" OPTIONS (user 'viewer');
      ALTER SCHEMA sales RENAME TO plain; CREATE SCHEMA sales;
      CREATE VIEW sales.orders AS SELECT * FROM plain.orders; CREATE VIEW sales.receipts AS SELECT * FROM plain.receipts;
      IMPORT FOREIGN SCHEMA sales LIMIT TO (deliveries) FROM SERVER "There" INTO plain_deliveries;
      CREATE VIEW sales.deliveries AS SELECT * FROM plain_deliveries.deliveries
      """
  }

  @Test(
    "row-level security behind a foreign table is reported, and so is a server whose sessions would apply it",
    arguments: [
      ("", #"ALTER SERVER "There" OPTIONS (ADD options '-c row_security=off')"#),
      (
        ", options '-c row_security=on -c geqo=off'",
        #"ALTER SERVER "There" OPTIONS (SET options '-c row_security=on -c geqo=off -c row_security=off')"#
      ), (", options '-c geqo=off -c row_security=off'", "sales.deliveries has row-level security"),
    ])
  func foreignRowSecurity(_ options: String, remedy: String) async throws {
    let there = try await TestShop.make(
      """
      DO $$ BEGIN CREATE ROLE viewer LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$;
      GRANT USAGE ON SCHEMA sales TO viewer; GRANT SELECT ON ALL TABLES IN SCHEMA sales TO viewer;
      ALTER TABLE sales.deliveries ENABLE ROW LEVEL SECURITY
      """)
    let prepared = "DROP SCHEMA IF EXISTS plain, plain_deliveries CASCADE; CREATE SCHEMA plain_deliveries; "
    let found = try await defects(prepared + foreignDeliveries(there, options: options))
    #expect(found.count == 1 && found[0].contains(remedy), "\(found)")
  }

  @Test("the sales schema may have any name, with quotes and spaces")
  func otherSchema() async throws {
    let shop = try await TestShop.make(#"ALTER SCHEMA sales RENAME TO "Shop's ""data""""#)
    var settings = shop.settings
    settings.salesSchema = #"Shop's "data""#
    try await shop.reading(settings) { _ in }
  }

  @Test("the plain tables are created in an existing schema without the right to create schemas")
  func existingSchema() async throws {
    let shop = try await TestShop.make(
      isPlain: false,
      """
      DO $$ BEGIN CREATE ROLE tables_only LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$;
      CREATE SCHEMA sales; GRANT ALL ON SCHEMA sales TO tables_only
      """)
    let conninfo = shop.conninfo + " user=tables_only"
    for _ in 0..<2 {
      try await withBlockingThread { scope in
        try SalesSchema.create("sales", try scope.connect(conninfo, applicationName: "tests"))
      }
    }
    try await shop.reading { _ in }
  }

  @Test("a role that may not create the plain tables learns who may, and the grant")
  func missingRight() async throws {
    let shop = try await TestShop.make(
      isPlain: false,
      "DO $$ BEGIN CREATE ROLE tables_only LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$")
    let conninfo = shop.conninfo + " user=tables_only"
    for (change, grant) in [
      ("SELECT 1", "GRANT CREATE ON DATABASE "),
      ("CREATE SCHEMA sales", "GRANT USAGE, CREATE ON SCHEMA sales TO tables_only"),
    ] {
      try await shop.connected { try $0.executeScript(change) }
      let error = await #expect(throws: ConfigurationError.self) {
        try await withBlockingThread { scope in
          try SalesSchema.create("sales", try scope.connect(conninfo, applicationName: "tests"))
        }
      }
      #expect(error?.problem.contains("or a superuser, whom database.url names for this once") == true, "\(change)")
      #expect(error?.problem.contains(grant) == true, "\(error?.problem ?? "")")
    }
  }

  @Test("an unreachable store is reported with its setting key")
  func unreachable() async throws {
    let shop = try await TestShop.make()
    var settings = shop.settings
    settings.salesURL = "host=/nonexistent"
    let error = await #expect(throws: PostgresError.self) { try await shop.reading(settings) { _ in } }
    #expect("\(try #require(error))".contains("(database.salesUrl)"))
    #expect(error?.kind == .connectionFailed)
  }
}
