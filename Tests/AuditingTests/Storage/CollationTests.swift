import Foundation
import Postgres
import Reconciliation
import Settings
import ShopDatabases
import TestSupport
import Testing

@testable import AuditStore
@testable import Auditing
@testable import Run
@testable import SampleWorlds

/// IDs compare byte by byte, whatever the collation, because merge joins depend on it.
@Suite struct CollationTests {
  @Test func everyTextComparisonNamesItsCollation() async throws {
    let url = try await PrivatePostgres.storeDatabase()
    let session = try await PostgresSession.connect(url, applicationName: "night-audit tests")
    let otherwise = try await session.execute(
      """
      SELECT coalesce(string_agg(format('%s.%s %s', c.relname, a.attname, l.collname), ', ' ORDER BY 1), '')
      FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_collation l ON l.oid = a.attcollation
      WHERE c.relnamespace = 'night_audit'::regnamespace AND c.relkind IN ('r', 'p') AND a.attnum > 0
        AND NOT a.attisdropped AND l.collname <> 'C'
        AND EXISTS (SELECT 1 FROM pg_index i WHERE i.indrelid = c.oid AND a.attnum = ANY (i.indkey::int2[]))
      """
    ).single().text(0)
    await session.close()
    #expect(otherwise.isEmpty)
  }

  /// Fails if a query uses the database's collation for the order or comparison of IDs.
  @Test func reportsAreEqualUnderALanguageCollation() async throws {
    let folder = try TemporaryDirectory()
    var expected: [String: Data] = [:]
    for locale in [nil, "en-US-u-ka-shifted-ks-level4"] {
      let settings = try await CrowdedShop.load(
        wide: 0..<8, reports: folder.file(""),
        database: try await PrivatePostgres.shared().createDatabase(locale: locale),
        arrival: CrowdedShop.Arrival(seed: 1, nights: 2)
      ) { settings, asOf in try await CrowdedShop.audit(settings, asOf, folder.file("first \(locale ?? "C")")) }
      let report = folder.file(locale ?? "C")
      try await CrowdedShop.audit(settings, CrowdedShop.asOf, report)
      for name in CrowdedShop.files + ["changes.csv"] {
        let bytes = try CrowdedShop.bytes(report, name)
        #expect(bytes == expected[name, default: bytes], "\(name), \(locale ?? "by bytes")")
        expected[name] = bytes
      }
    }
    #expect(expected["findings.csv"].map { $0.count > 10_000 } ?? false)
  }

  /// The shop's columns have a case-insensitive collation, with which the server rejects searches in text.
  @Test func columnCollationsChangeNeitherAuditNorExplain() async throws {
    let folder = try TemporaryDirectory()
    let shop = CrowdedShop(seed: 3)
    var (files, explanations): ([[String: [[String]]]], [[String]]) = ([], [])
    for isLoose in [false, true] {
      let settings = try await shop.load(reports: folder.file(""))
      try await execute(
        settings.databaseURL,
        """
        CREATE COLLATION public.loose (provider = icu, locale = 'und-u-ks-level1', deterministic = false);
        DO $$ DECLARE c record; BEGIN
          FOR c IN SELECT a.attrelid::regclass AS t, a.attname FROM pg_attribute a JOIN pg_class r ON r.oid = a.attrelid
            WHERE \(isLoose) AND r.relnamespace = 'sales'::regnamespace AND r.relkind = 'r' AND a.atttypid = 'text'::regtype
              AND a.attnum > 0 AND NOT a.attisdropped
          LOOP EXECUTE format('ALTER TABLE %s ALTER %I TYPE text COLLATE public.loose', c.t, c.attname); END LOOP; END $$
        """)
      files.append(try await CrowdedShop.audit(settings, CrowdedShop.asOf, folder.file("\(isLoose)")))
      let explain = Explain(settings: settings)
      var said: [String] = []
      for place in stride(from: 0, to: shop.orderIds.count, by: 4) {
        let id = shop.orderIds[place]
        let explanation = try await explain.order(Identifier(id), asOf: CrowdedShop.asOf)
        let findings = explanation.findings.filter(\.stands).map(\.findingId).sorted()
        said.append("\(id) \(explanation.disposition.rawValue) \(findings.joined(separator: " "))")
      }
      let missing = await #expect(throws: Explain.Missing.self) {
        try await explain.order("ORDER-17", asOf: CrowdedShop.asOf)
      }
      explanations.append(said + (missing?.similarIDs ?? []))
    }
    #expect(files[0] == files[1])
    #expect(explanations[0] == explanations[1])
    #expect(explanations[0].contains("There is an order order-17."))
  }
}
