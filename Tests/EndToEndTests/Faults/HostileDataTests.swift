import Foundation
import TestSupport
import Testing

/// Nights over hostile rows: each row affects at most itself.
@Suite(.serialized) struct HostileDataTests {
  /// Strings that break formats, parsers, terminals, spreadsheets and queries. Text in Postgres has no NUL.
  private static let strings: [String] =
    (1...31).map { String(UnicodeScalar(UInt8($0))) + "x" }
    + [
      "", " ", "  leading", "trailing  ", "'", "''", "\"", "\"\"", "`", ",", ";", "\t", "\n", "\r\n", "a\rb", "\\",
      "\\.",
      "\\N", "\\copy", "NULL", "null", "nil", "NaN", "Infinity", "true", "0", "-0", "00012", "1e999", "0x10", "1,5",
      "1.5",
      "2026-11-19", "1/2", "=1+1", "+1", "-1", "@SUM(1)", "=cmd|' /C calc'!A0", "\t=1+1", "\r=1+1", "'=1+1", "＝1+1",
      "'; DROP TABLE sales.orders; --", "$1", "$$", "%s%n", "{}", "{0}", "${HOME}", "$(id)", "`id`", "&amp;",
      "<b>x</b>",
      "<script>alert(1)</script>", "]]>", "<!--", "<?xml?>", "&x;", "../../etc/passwd", "/dev/null", "con", "a/b", "..",
      "http://example.com/?a=b&c=d", "x@example.com", "\u{7F}", "\u{80}", "\u{85}", "\u{9B}31m", "\u{1B}[31m", "\u{A0}",
      "\u{AD}", "\u{200B}", "\u{200D}", "\u{2028}", "\u{2029}", "\u{202E}abc", "\u{2066}", "\u{FEFF}", "\u{FFFD}",
      "\u{FFFE}", "\u{FFFF}", "\u{1FFFF}", "\u{10FFFF}", "\u{E000}", "e\u{301}", "é", "ß", "İ", "ﬁ", "Å", "\u{212B}",
      "\u{212A}", "K", "٣",
      "名前", "שלום", "مرحبا", "👩‍👩‍👧‍👦", "🇩🇪", "\u{1D11E}", "a" + String(repeating: "\u{301}", count: 200),
      String(repeating: "x", count: 900), String(repeating: "👻", count: 225), "_x000D_", "_x0041_", "#REF!", "ＡＢＣ",
    ]

  private static func sql(_ text: String) -> String { "'\(text.replacing("'", with: "''"))'" }

  private static func statements() -> String {
    var statements = [
      """
      CREATE TABLE sales.user_aliases (user_id text, same_as text);
      CREATE TABLE sales.products (product_id text, type text, name text, sold_from timestamptz, sold_until timestamptz);
      """
    ]
    let time = "'2026-11-18T12:00:00Z'"
    for (number, string) in strings.enumerated() {
      let s = sql(string)
      func order(
        _ letter: String, bundle: String = "NULL", currency: String = "'USD'", status: String = "'verified'"
      ) -> String {
        """
        INSERT INTO sales.orders VALUES ('\(letter)\(number):' || \(s), \(s), \(bundle), \(s), 1, 9.90, \(currency),
          \(status), \(s), \(s), \(time), \(time), \(time));
        """
      }
      statements += [order("A"), order("B", bundle: s), order("C", currency: s), order("D", status: s)]
      // Without a prefix: the string is the whole ID, and the reference of all rows.
      statements.append(
        """
        INSERT INTO sales.orders VALUES (\(s), \(s), 'com.example.game', \(s), 1, 9.90, 'USD', 'verified', \(s), NULL,
          \(time), \(time), \(time));
        INSERT INTO sales.receipts VALUES (\(s), \(s), \(s), \(s), \(s), 'timeout', NULL, \(time));
        INSERT INTO sales.deliveries VALUES (\(s), \(s), \(s), \(s), 1, \(time), NULL);
        """)
      func receipt(_ letter: String, order: String, status: String) -> String {
        """
        INSERT INTO sales.receipts VALUES ('\(letter)\(number):' || \(s), \(order), \(s), \(s), \(s), \(status), NULL,
          \(time));
        """
      }
      statements += [
        receipt("A", order: "'A\(number):' || \(s)", status: "'unverified'"), receipt("B", order: s, status: s),
        """
        INSERT INTO sales.deliveries VALUES ('A\(number):' || \(s), 'A\(number):' || \(s), \(s), \(s), 1, \(time), NULL),
          ('B\(number):' || \(s), \(s), \(s), \(s), 1, \(time), NULL);
        INSERT INTO sales.user_aliases VALUES (\(s), 'alias of ' || \(s)), (\(s), \(s));
        INSERT INTO sales.products VALUES (\(s), \(s), \(s), NULL, NULL);
        """,
      ]
    }
    return statements.joined(separator: "\n")
  }

  private static let limits: [(column: String, values: [String])] = [
    (
      "amount",
      [
        "'NaN'", "'Infinity'", "'-Infinity'", "-1", "0", "0.001", "0.005", "92233720368547758.07",
        "92233720368547758.08",
        "9223372036854775807", "1e100", "'1e-100'", "-0.00",
      ]
    ),
    ("quantity", ["0", "-1", "2147483647", "-2147483648"]),
    (
      "created_at",
      [
        "'infinity'", "'-infinity'", "'4713-01-01 BC'", "'294276-12-31'", "'1899-12-31T23:59:59Z'",
        "'1900-01-01T00:00:00Z'",
        "'9999-12-31T23:59:59Z'", "'10000-01-01T00:00:00Z'", "'1970-01-01T00:00:00Z'", "'0001-01-01'",
      ]
    ),
    ("verified_at", ["'infinity'", "'-infinity'", "'294276-12-31'"]),
    ("updated_at", ["'infinity'", "'-infinity'", "'4713-01-01 BC'"]),
  ]

  /// A leading quote defuses spreadsheet formulas.
  private static func defused(_ text: String) -> String {
    "=+-@\t\r".utf8.contains(text.utf8.first ?? 0) ? "'" + text : text
  }

  @Test func hostileTextAffectsOnlyItsOwnRow() async throws {
    #expect(Set(Self.strings.map { Array($0.utf8) }).count >= 100)
    let products = [
      ("201", "late", "'infinity'", "NULL"), ("202", "gone", "NULL", "'-infinity'"),
      ("203", "ever", "'-infinity'", "'infinity'"), ("204", "far", "'4713-01-01 BC'", "'294276-12-31'"),
    ]
    let sold = products.map { id, product, _, _ in SignedShop.gems(id).merging(["productId": product]) { $1 } }
    let others = ["101", "301", "302", "303"].map { SignedShop.gems($0) }
    let shop = try await SignedShop(transactions: others + sold, audit: "systemicShare: 1")
    try await shop.execute(Self.statements())
    for (id, order) in [("301", "twin \u{E9}"), ("302", "twin e\u{301}")] {
      try await shop.order(order)
      try await shop.receipt(try await shop.signed(id), for: order)
    }
    // An order with an empty bundle ID, and one whose stated ID no index can hold.
    try await shop.order("nameless", transaction: "303")
    try await shop.execute("UPDATE sales.orders SET bundle_id = '' WHERE order_id = 'nameless'")
    let marks = (0..<5_000).map { String(UnicodeScalar(0x300 + UInt32($0 * 7_919 % 112)) ?? "?") }.joined()
    try await shop.order("marked", transaction: "a" + marks)
    try await shop.order(
      "marked less", transaction: "a" + marks.prefix(1).unicodeScalars.prefix(400).map(String.init).joined())
    // An empty ID is no alias.
    try await shop.execute("INSERT INTO sales.user_aliases VALUES ('user of ever', ''), ('stranger', '')")
    for (id, product, from, until) in products {
      try await shop.order(product, transaction: id)
      try await shop.execute(
        """
        INSERT INTO sales.products VALUES ('\(product)', 'Consumable', NULL, \(from), \(until));
        UPDATE sales.orders SET product_id = '\(product)' WHERE order_id = '\(product)';
        UPDATE sales.deliveries SET product_id = '\(product)' WHERE order_id = '\(product)';
        """)
    }
    try await shop.execute("UPDATE sales.deliveries SET user_id = 'stranger' WHERE order_id = 'ever'")
    let limits = Self.limits.flatMap { limit in limit.values.map { "\(limit.column) = \($0)" } }
    let limited = limits.enumerated().map { number, change in
      SignedShop.orderStatements("L\(number + 1)", isDelivered: false)
        + "UPDATE sales.orders SET \(change) WHERE order_id = 'L\(number + 1)';"
    }
    try await shop.execute(limited.joined())
    try await shop.order("sound", transaction: "101")
    let place = shop.directory.file("hostile")
    func night(_ asOf: String, _ place: String) async throws {
      let (result, peak) = try await Program.nightAudit.measured(
        [
          "run", "--as-of", asOf, "--since", "2026-11-01", "--until", "2026-11-30", "--out", place, "--config",
          shop.directory.file("night-audit.yaml"),
        ], environment: ["NIGHT_AUDIT_REPORT_FORMATS": "csv,xlsx"])
      #expect(result.status == 0, "\(result.errors)")
      #expect(peak < 400 << 20, "\(peak)")
    }
    func table(_ name: String, in place: String) throws -> [[String: String]] {
      rows(try Data(contentsOf: URL(fileURLWithPath: "\(place)/\(name)")))
    }
    func table(_ name: String) throws -> [[String: String]] { try table(name, in: place) }
    try await night(SignedShop.asOf, place)
    let orders = try table("orders.csv")
    let byId = Dictionary(grouping: orders) { $0["order_id"] ?? "" }
    for (number, string) in Self.strings.enumerated() {
      for letter in ["A", "B", "C", "D"] {
        let found = byId["\(letter)\(number):\(string)"] ?? []
        #expect(found.count == 1, "\(letter)\(number) \(string.debugDescription)")
        for column in ["user_id", "product_id"] {
          let said = found.first?[column]
          #expect(said == Self.defused(string), "\(column) \(string.debugDescription) \(said ?? "")")
        }
      }
    }
    // Compared by bytes: canonically equivalent IDs are two IDs.
    let bare = Dictionary(grouping: orders) { Array(($0["order_id"] ?? "").utf8) }.mapValues(\.count)
    let wanted = Dictionary(grouping: Self.strings) { Array(Self.defused($0).utf8) }.mapValues(\.count)
    for (id, count) in wanted { #expect(bare[id] == count, "\(String(decoding: id, as: UTF8.self).debugDescription)") }
    let found = try table("findings.csv")
    let outside = found.filter { $0["kind"] == "sold_outside_catalogue" }.compactMap { $0["order_id"] }
    #expect(Set(outside) == ["late", "gone"], "\(outside)")
    #expect(found.contains { $0["kind"] == "wrong_user" && $0["order_id"] == "ever" })
    for id in ["sound", "nameless"] { #expect(byId[id]?.first?["disposition"] == "settled", "\(byId[id] ?? [])") }
    #expect(byId["twin \u{E9}"]?.map { $0["disposition"] ?? "" } == ["settled", "settled"])
    #expect(byId["marked"]?.first?["disposition"] == "bad_row", "\(byId["marked"] ?? [])")
    #expect(byId["marked less"]?.first?["payment_reason"] == "no_evidence", "\(byId["marked less"] ?? [])")
    // Amounts that are no numbers: NaN, Infinity, -Infinity.
    for id in ["L1", "L2", "L3"] {
      let row = byId[id]?.first
      #expect(row?["disposition"] == "bad_row" && row?["amount"] == "", "\(id): \(row ?? [:])")
    }
    let summary = try #require(
      try JSONSerialization.jsonObject(with: Data(contentsOf: URL(fileURLWithPath: place + "/summary.json")))
        as? [String: Any])
    let read = (summary["orders"] as? [String: Any])?["read"] as? Int
    #expect(read == orders.count, "\(read ?? 0) \(orders.count)")
    let bad = Set(try table("findings.csv").filter { $0["kind"] == "bad_row" }.compactMap { $0["order_id"] })
    let sound = (1...limits.count).filter { !bad.contains("L\($0)") }
    // Amounts 0, the largest that fits, and -0.00; the largest quantity; the year 1970.
    #expect(sound == [5, 8, 13, 16, 26])
    for arguments in [["verify", place], ["explain", "A0:\u{1}x"], ["explain", "A31:"], ["rebuild"]] {
      try await shop.nightAudit(more: arguments, exits: [0])
    }
    for number in stride(from: 0, to: Self.strings.count, by: TortureSettings.effort > 1 ? 1 : 16) {
      let string = Self.strings[number]
      let said = try await Program.nightAudit.run(
        ["explain", "--config", shop.directory.file("night-audit.yaml"), "--", string])
      #expect(said.status == 0, "\(string.debugDescription): \(said)")
      let controls = said.output.replacing("\r\n", with: "\n").unicodeScalars.filter {
        $0 != "\n" && $0 != "\t" && $0.properties.generalCategory == .control
      }
      #expect(controls.isEmpty, "\(string.debugDescription): \(controls.map(\.value))")
    }
    // The next night has the same findings, and the import of the unchanged workbook makes no change.
    let next = shop.directory.file("next")
    try await night("2026-11-20T04:00:00Z", next)
    func ids(_ findings: [[String: String]]) -> Set<String> { Set(findings.compactMap { $0["finding_id"] }) }
    let again = try table("findings.csv", in: next)
    #expect(ids(again) == ids(found) && again.count == found.count)
    let book = try #require(try FileManager.default.contentsOfDirectory(atPath: next).first { $0.hasSuffix(".xlsx") })
    let imported = try await shop.nightAudit("findings", "import", next + "/" + book, "--by", "finance", exits: [0])
    #expect(imported.output.contains("\(again.count) findings read: 0 entries of 0 findings changed, 0 refused."))
  }

  /// Ten megabytes in each shape that a payload may have.
  private static let hugePayloads = [
    "'eyJhbGciOiJFUzI1NiJ9.' || repeat('e', 10000000) || '.' || repeat('A', 86)", "repeat('A', 10000000)",
    "'MIIT' || repeat('A', 10000000)", "'eyJ' || repeat('a', 10000000)", "repeat('.', 10000000)",
    "repeat(' ', 10000000)", "repeat('\"', 10000000)", "'ewoJInNpZ25hdHVyZSIgPSAi' || repeat('QUFB', 2500000)",
    "repeat('[', 10000000)", "repeat('👻', 2500000)", "'{\"payload\":\"' || repeat('A', 10000000) || '\"}'",
    "repeat('MA', 5000000)",
  ]

  @Test(arguments: hugePayloads.prefix(TortureSettings.effort > 1 ? hugePayloads.count : 1))
  func hugePayloadsAreReadWithinTheStatedMemory(_ shape: String) async throws {
    let shop = try await SignedShop(transactions: [], audit: "systemicShare: 1")
    let count = TortureSettings.effort > 1 ? 6 : 1
    try await shop.execute(
      """
      INSERT INTO sales.receipts SELECT 'r' || n, NULL, 'user', \(shape) || n, NULL, 'unverified', NULL,
        '2026-11-18T12:00:00Z' FROM generate_series(1, \(count)) n
      """)
    let (result, peak) = try await Program.nightAudit.measured(
      ["run", "--as-of", SignedShop.asOf, "--config", shop.directory.file("night-audit.yaml")])
    #expect(result.status == 0, "\(result.errors)")
    #expect(peak < 500 << 20, "\(peak)")
    #expect(
      try await shop.value("SELECT count(*) FROM night_audit.receipt_checks WHERE outcome = 'rejected'") == "\(count)")
    print("HostileDataTests: \(peak >> 20) MiB for \(shape.prefix(30))")
  }

  /// As many rows as a sheet can have, each with the longest text; fewer by default. Shared strings keep the file
  /// small.
  @Test func theLargestWorkbookIsReadWithinTheStatedMemory() async throws {
    let count = TortureSettings.effort > 1 ? 1_048_575 : 3_000
    let shop = try await SignedShop(transactions: [])
    try await shop.order("unpaid", transaction: nil, created: "2026-11-18T11:59:59Z")
    #expect(try await shop.night().result.status == 0)
    let book = shop.directory.file("huge.xlsx")
    try await Program.runScript("huge_workbook", book, String(count))
    let began = ContinuousClock.now
    let (result, peak) = try await Program.nightAudit.measured(
      [
        "findings", "import", "--by", "finance", "--config", shop.directory.file("night-audit.yaml"), book,
      ])
    #expect(result.status == 1, "\(result.errors)")
    #expect(result.output.contains("\(count) findings read: 0 entries of 0 findings changed, \(count) refused."))
    #expect(peak < 1 << 30, "\(peak)")
    print("HostileDataTests: \(peak >> 20) MiB and \(ContinuousClock.now - began) for \(count) rows of a workbook")
  }

  @Test func manyOrdersClaimOnePayment() async throws {
    let claims = TortureSettings.effort > 1 ? 10_000 : 500
    let shop = try await SignedShop(transactions: [SignedShop.gems("101")])
    try await shop.order("first", transaction: "101", created: "2026-11-18T11:59:59Z")
    try await shop.execute(
      """
      INSERT INTO sales.orders
      SELECT 'claimant ' || n, 'user ' || n, NULL, 'gems.100', 1, 9.90, 'USD', 'verified', '101', NULL,
        timestamptz '2026-11-18T12:00:00Z' + n * interval '1 second', NULL, '2026-11-18T12:00:00Z'
      FROM generate_series(1, \(claims)) n
      """)
    let night = try await shop.night(exits: 0)
    #expect(night.payments["first"] == "paid")
    #expect(night.payments.values.filter { $0 == "unpaid duplicate" }.count == claims)
    #expect(night.findings.filter { $0["kind"] == "duplicate_claim" }.count == claims)
    #expect(try shop.timesAsked()["101", default: 0] <= 1)
  }
}
