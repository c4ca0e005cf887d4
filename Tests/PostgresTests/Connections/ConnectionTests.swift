import Foundation
import Postgres
import Synchronization
import TestSupport
import Testing

@Suite(.serialized, .timeLimit(.minutes(10))) struct ConnectionTests {
  @Test("an application name in the connection string takes precedence") func applicationName() async throws {
    let conninfo = try await sharedConninfo()
    for (suffix, name) in [("", "night-audit/1"), (" application_name=mine", "mine")] {
      let session = try await PostgresSession.connect(conninfo + suffix, applicationName: "night-audit/1")
      #expect(try await session.execute("SHOW application_name").single().text(0) == name)
    }
  }

  @Test(
    "a connection attempt ends after 15 seconds, unless the string or its service sets a timeout",
    arguments: [
      ("", "15"), ("dbname=x", "15"), ("x", "15"), ("host=a connect_timeout=3", nil),
      ("postgresql://a/b?connect_timeout=3", nil), ("service=own_bounds", nil),
    ])
  func bounds(_ conninfo: String, timeout: String?) throws {
    let parameters = try ConnectionParameters(conninfo: conninfo, applicationName: "me")
    let pairs = zip(parameters.keywords, parameters.values)
    #expect(pairs.first { $0.0 == "connect_timeout" }?.1 == timeout)
    #expect(pairs.first { $0.0 == "dbname" }?.1 == (conninfo.isEmpty ? nil : conninfo))
    #expect(pairs.first { $0.0 == "fallback_application_name" }?.1 == "me")
    #expect(parameters.keywords.last == "client_encoding")
  }

  // Set if the tests run against one server version after another.
  private static let meant = ProcessInfo.processInfo.environment["POSTGRES_VERSION"]

  @Test("the server has the requested version", .enabled(if: meant != nil)) func version() async throws {
    try await onConnection { #expect(String($0.serverVersion / 10_000) == ConnectionTests.meant) }
  }

  @Test("a connection knows the server's version and the backend's process ID") func facts() async throws {
    try await onConnection { connection in
      let row = try connection.execute("SELECT pg_backend_pid(), current_setting('server_version_num')").single()
      #expect(try row.int32(0) == connection.backendProcessId)
      #expect(try row.text(1) == String(connection.serverVersion))
      #expect(connection.isInTransaction == false)
    }
  }

  @Test(
    "a missing user or database is reported with the parameter to check, and a missing server without SQLSTATE",
    arguments: [
      ("dbname=absent", "3D000", ["check dbname", "\"absent\" does not exist", "FATAL:  "]),
      ("user=absent", "28000", ["check the user", "FATAL:  "]), ("host=/nonexistent", nil, ["/nonexistent"]),
    ] as [(String, String?, [String])])
  func refused(_ option: String, _ sqlState: String?, _ words: [String]) async throws {
    let conninfo = try await PrivatePostgres.shared().conninfo(database: "postgres")
    let error = try await postgresError {
      _ = try await PostgresSession.connect("\(conninfo) \(option)", applicationName: "x")
    }
    #expect(error.kind == .connectionFailed && error.sqlState == sqlState, "\(error)")
    #expect(words.allSatisfy("\(error)".contains) && !"\(error)".contains("LOCATION"), "\(error)")
  }

  @Test("notices are passed to their handler") func notices() async throws {
    let conninfo = try await sharedConninfo()
    let notices = Mutex<[PostgresNotice]>([])
    try await withBlockingThread { scope in
      let connection = try scope.connect(conninfo, applicationName: "x") { notice in
        notices.withLock { $0.append(notice) }
      }
      try connection.executeScript("DO $$ BEGIN RAISE WARNING 'careful' USING ERRCODE = '01234'; END $$")
      try connection.executeScript("DROP TABLE IF EXISTS absent")
    }
    #expect(
      notices.withLock { $0.map { "\($0.connection): \($0.severity) \($0.sqlState) \($0.message)" } } == [
        "x: WARNING 01234 careful", "x: NOTICE 00000 table \"absent\" does not exist, skipping",
      ])
  }

  @Test("a warning while connecting is passed to the handler, too") func noticeWhileConnecting() async throws {
    let conninfo = try await PrivatePostgres.shared().createDatabase()
    let session = try await PostgresSession.connect(conninfo, applicationName: "x")
    // The state after a library upgrade: the server warns at each connection to the database.
    try await session.execute("UPDATE pg_database SET datcollversion = 'old' WHERE datname = current_database()")
    let notices = Mutex<[PostgresNotice]>([])
    _ = try await PostgresSession.connect(conninfo, applicationName: "x") { notice in
      notices.withLock { $0.append(notice) }
    }
    #expect(notices.withLock { $0.map(\.severity) } == ["WARNING"])
  }

  @Test("binary data of a user-defined type cannot be read as text") func composite() async throws {
    try await onConnection { connection in
      try connection.executeScript("CREATE TYPE pg_temp.pair AS (a int, b bytea)")
      let row = try connection.execute(#"SELECT (1, '\xff')::pg_temp.pair AS p"#).single()
      #expect(try postgresError { _ = try row.text("p") }.column == "p")
    }
  }
}
