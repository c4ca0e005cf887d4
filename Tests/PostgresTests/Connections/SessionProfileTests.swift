import Postgres
import Synchronization
import TestSupport
import Testing

@Suite(.serialized, .timeLimit(.minutes(10))) struct SessionProfileTests {
  // All settings of a role that could change results.
  private static let hostileRole = """
    DROP ROLE IF EXISTS hostile; CREATE ROLE hostile LOGIN SUPERUSER;
    ALTER ROLE hostile SET search_path TO public, pg_catalog;
    ALTER ROLE hostile SET DateStyle TO 'German, DMY';
    ALTER ROLE hostile SET IntervalStyle TO 'sql_standard';
    ALTER ROLE hostile SET TimeZone TO 'Pacific/Chatham';
    ALTER ROLE hostile SET bytea_output TO 'escape';
    ALTER ROLE hostile SET extra_float_digits TO -15;
    ALTER ROLE hostile SET standard_conforming_strings TO off;
    ALTER ROLE hostile SET quote_all_identifiers TO on;
    ALTER ROLE hostile SET statement_timeout TO '60s';
    ALTER ROLE hostile SET idle_in_transaction_session_timeout TO '60s';
    ALTER ROLE hostile SET idle_session_timeout TO '60s';
    ALTER ROLE hostile SET lock_timeout TO '60s';
    ALTER ROLE hostile SET default_transaction_isolation TO 'serializable';
    ALTER ROLE hostile SET transform_null_equals TO on;
    ALTER ROLE hostile SET client_encoding TO 'LATIN1';
    ALTER ROLE hostile SET client_min_messages TO 'error';
    """

  private func connectAsHostile<R: Sendable>(
    _ profile: SessionProfile, _ body: @Sendable (borrowing BlockingConnection) throws -> R
  ) async throws -> R {
    let conninfo = try await sharedConninfo()
    return try await withBlockingThread { scope in
      try scope.connect(conninfo, applicationName: "x").executeScript(Self.hostileRole)
      return try body(try scope.connect(conninfo + " user=hostile", applicationName: "x", profile: profile))
    }
  }

  @Test(
    "a session overrides the settings of its role",
    arguments: [
      ("search_path", "pg_catalog, pg_temp"), ("DateStyle", "ISO, YMD"), ("IntervalStyle", "postgres"),
      ("TimeZone", "UTC"), ("bytea_output", "hex"), ("extra_float_digits", "1"), ("standard_conforming_strings", "on"),
      ("quote_all_identifiers", "off"), ("statement_timeout", "0"),
      ("idle_in_transaction_session_timeout", "0"), ("idle_session_timeout", "0"),
      ("lock_timeout", "0"), ("default_transaction_isolation", "read committed"), ("transform_null_equals", "off"),
      ("client_encoding", "UTF8"), ("client_min_messages", "notice"), ("row_security", "on"),
      ("default_transaction_read_only", "off"),
    ])
  func settings(_ name: String, value: String) async throws {
    #expect(
      try await connectAsHostile(.store) {
        try $0.execute("SELECT current_setting($1)", [.text(name)]).single().text(0)
      } == value)
  }

  @Test("the server ends a session that waits in a transaction for too long") func idleInTransaction() async throws {
    let conninfo = try await sharedConninfo()
    try await withBlockingThread { scope in
      var profile = SessionProfile.store
      profile.idleInTransactionTimeout = .milliseconds(100)
      let holder = try scope.connect(conninfo, applicationName: "x", profile: profile)
      let other = try scope.connect(conninfo, applicationName: "x")
      let error = try postgresError {
        try holder.transaction { connection in
          try connection.execute("SELECT pg_advisory_xact_lock(7, 7)")
          // Waits for ever if the lock is kept.
          try other.execute("SELECT pg_advisory_lock(7, 7)")
          try connection.execute("SELECT 1")
        }
      }
      #expect(error.isConnectionLost, "\(error)")
    }
  }

  @Test("a user's function is never called in place of the server's") func searchPath() async throws {
    let isServers = try await connectAsHostile(.store) { connection in
      // The parameter is bigint, so the server would prefer it to its own function with integer.
      try connection.executeScript(
        """
        CREATE OR REPLACE FUNCTION public.make_interval(bigint) RETURNS interval LANGUAGE plpgsql AS
          $$ BEGIN RAISE EXCEPTION 'caught you'; END $$
        """)
      return try connection.execute("SELECT make_interval(1::int8::int) = interval '1 year'").single().bool(0)
        && (try postgresError { try connection.execute("SELECT make_interval(1::bigint)") }).sqlState == "42883"
    }
    #expect(isServers)
  }

  @Test("a session for sales is read-only, and fails where row-level security would hide rows")
  func reader() async throws {
    let conninfo = try await sharedConninfo()
    try await withBlockingThread { scope in
      let owner = try scope.connect(conninfo, applicationName: "x")
      try owner.executeScript(
        """
        DROP TABLE IF EXISTS public.guarded, public.open; DROP ROLE IF EXISTS limited; CREATE ROLE limited LOGIN;
        CREATE TABLE public.open (n int); GRANT INSERT ON public.open TO limited;
        CREATE TABLE public.guarded (n int); INSERT INTO public.guarded VALUES (1);
        ALTER TABLE public.guarded ENABLE ROW LEVEL SECURITY; GRANT SELECT, INSERT ON public.guarded TO limited;
        """)
      let limited = conninfo + " user=limited"
      let silent = try scope.connect(limited, applicationName: "x")
      #expect(try silent.execute("SELECT count(*) FROM public.guarded").single().int64(0) == 0)
      let reader = try scope.connect(limited, applicationName: "x", profile: .salesReader)
      let hidden = try postgresError { try reader.execute("SELECT count(*) FROM public.guarded") }
      #expect(hidden.sqlState == SQLState.insufficientPrivilege)
      let written = try postgresError { try reader.execute("INSERT INTO public.open VALUES (2)") }
      #expect(written.sqlState == SQLState.readOnlyTransaction)
      #expect("\(written)".contains("database.url"))
    }
  }
}
