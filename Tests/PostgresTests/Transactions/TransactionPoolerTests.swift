import Postgres
import TestSupport
import Testing

@Suite(.serialized, .timeLimit(.minutes(10)), .enabled(if: PrivatePooler.isInstalled, "PgBouncer is not installed"))
struct TransactionPoolerTests {
  @Test(
    "a pooler without session mode is rejected before any setting",
    arguments: [("transaction", 1), ("transaction", 20), ("statement", 20)])
  func refused(_ mode: String, size: Int) async throws {
    let cluster = try await PrivatePostgres.shared()
    let pooler = try await PrivatePooler.start(before: cluster, mode: mode, size: size)
    let error = try await postgresError {
      _ = try await PostgresSession.connect(pooler.conninfo(database: "postgres"), applicationName: "x")
    }
    // In statement mode the pooler refuses the transaction of the check itself.
    #expect(error.kind == .misconfigured && error.message.contains("pool_mode = session"), "\(error)")
  }

  @Test("a pooler in session mode is accepted, also with a single connection", arguments: [1, 20])
  func accepted(size: Int) async throws {
    let cluster = try await PrivatePostgres.shared()
    let pooler = try await PrivatePooler.start(before: cluster, mode: "session", size: size)
    let session = try await PostgresSession.connect(pooler.conninfo(database: "postgres"), applicationName: "x")
    #expect(try await session.execute("SHOW search_path").single().text(0) == "pg_catalog, pg_temp")
  }
}
