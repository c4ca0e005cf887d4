import Postgres
import TestSupport
import Testing

@testable import AuditStore

/// Ids compare byte by byte, whatever a server's collation makes of them: a merge of ordered streams depends on it.
@Suite struct CollationTests {
  /// A column that is in no index is written and read, and compared by nobody.
  @Test func everyTextThatIsSearchedForSaysHowItCompares() async throws {
    let url = try await PrivatePostgres.shared().createDatabase()
    let session = try await PostgresSession.connect(url, applicationName: "night-audit tests")
    _ = try await session.withConnection { try Migrator.migrate($0) }
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
}
