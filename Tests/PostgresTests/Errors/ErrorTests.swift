import Postgres
import TestSupport
import Testing

@Suite(.serialized, .timeLimit(.minutes(10))) struct ErrorTests {
  @Test("an error names the violated constraint, but no values") func constraint() async throws {
    let error = try await postgresError {
      try await onConnection { connection in
        try connection.executeScript("CREATE TEMPORARY TABLE users (name text CONSTRAINT one_name UNIQUE)")
        try connection.execute("INSERT INTO users VALUES ($1)", [.text("s3cret")])
        try connection.execute("INSERT  INTO users\n  VALUES ($1)", [.text("s3cret")])
      }
    }
    #expect(error.kind == .server && error.sqlState == "23505" && error.constraint == "one_name", "\(error)")
    #expect(error.table == "users")
    #expect(error.schema?.hasPrefix("pg_temp") == true)
    #expect(error.statement == "INSERT INTO users VALUES ($1)")
    #expect(error.detail?.contains("s3cret") == true)
    #expect(!error.isConnectionLost)
    for text in ["\(error)", String(reflecting: error)] {
      #expect(!text.contains("s3cret"))
      #expect(text.contains("23505"))
      #expect(text.contains("constraint one_name"))
      #expect(text.contains("in: INSERT INTO users VALUES ($1)"))
    }
  }

  @Test(
    "an error has the server's SQLSTATE",
    arguments: [
      ("SELEC 1", "42601"), ("SELECT * FROM absent", "42P01"), ("SELECT absent FROM pg_class", "42703"),
      ("SELECT 1/0", "22012"),
      ("SELECT 'x'::int", "22P02"), ("SELECT 1e40::int8", "22003"), ("SELECT 'now'::timestamptz + '1 aeon'", "22007"),
      ("BEGIN READ ONLY; CREATE TABLE public.x ()", "25006"), ("SELECT nextval('absent')", "42P01"),
      ("SET statement_timeout = 1; SELECT pg_sleep(600)", "57014"),
    ])
  func states(_ sql: String, state: String) async throws {
    let error = try await postgresError { try await onConnection { try $0.executeScript(sql) } }
    // A statement_timeout has the SQLSTATE of a cancellation.
    #expect(error.kind == .server && error.sqlState == state, "\(error)")
  }

  @Test("an error for want of the right TEMPORARY names its grant") func temporary() async throws {
    let error = try await postgresError {
      try await onConnection { connection in
        try connection.executeScript(
          """
          BEGIN; CREATE ROLE without_temporary;
          DO $$ BEGIN EXECUTE format('REVOKE TEMPORARY ON DATABASE %I FROM PUBLIC', current_database()); END $$;
          SET ROLE without_temporary; CREATE TEMPORARY TABLE t (n int)
          """)
      }
    }
    #expect(error.sqlState == "42501" && "\(error)".contains("GRANT TEMPORARY ON DATABASE"), "\(error)")
  }

  @Test("a NOT NULL violation names its column") func notNull() async throws {
    let error = try await postgresError {
      try await onConnection { connection in
        try connection.executeScript("CREATE TEMPORARY TABLE t (required int NOT NULL)")
        try connection.execute("INSERT INTO t VALUES ($1)", [.int(nil)])
      }
    }
    #expect(error.sqlState == "23502" && error.column == "required", "\(error)")
  }

  @Test("the advice follows the statement") func advice() {
    var error = PostgresError(.server, "permission denied for view orders", statement: "SELECT 1")
    error.sqlState = SQLState.insufficientPrivilege
    let words = "Postgres error 42501: permission denied for view orders in: SELECT 1; the role lacks a right"
    #expect("\(error)".hasPrefix(words) && "\(error)".hasSuffix("; night-audit doctor prints the grants"), "\(error)")
    #expect(!error.description(inDoctor: true).contains("night-audit doctor"))
  }

  @Test(
    "the advice for a statement that reads the shop names the cause",
    arguments: [
      ("40001", "canceling statement due to conflict with recovery", "hot_standby_feedback", "other sessions changed"),
      ("42883", "function price(integer) does not exist", "pg_catalog", ""),
      ("22P05", "character has no equivalent in encoding UTF8", "the page Configuration", "encoding lacks"),
      ("08P01", "query_wait_timeout", "pool_size", "pool_size"),
    ])
  func adviceOfReader(_ state: String, _ message: String, advice: String, otherwise: String) {
    var error = PostgresError(.connectionLost, message)
    error.sqlState = state
    #expect("\(error)".contains(otherwise) || otherwise.isEmpty, "\(error)")
    error.isOfReader = true
    #expect("\(error)".contains(advice), "\(error)")
  }

  @Test("constants in the text of a statement are masked") func masking() async throws {
    let error = try await postgresError {
      try await onConnection { connection in
        _ = try connection.copyOut(
          "SELECT 1 FROM absent WHERE a =\(PostgresLiteral.text(#"s'3cr\et"#)) AND b = \(PostgresLiteral.text("3cret"))"
        )
      }
    }
    #expect(error.statement == "SELECT 1 FROM absent WHERE a = E'…' AND b = '…'")
  }

  @Test("expecting a single row fails for none and for several", arguments: [0, 2])
  func single(_ count: Int64) async throws {
    let error = try await postgresError {
      _ = try await onConnection { try $0.execute("SELECT generate_series(1, $1)", [.int(count)]).single() }
    }
    #expect(error.kind == .unexpectedData)
  }

  @Test("COPY and NUL in a statement are usage errors") func usage() async throws {
    try await onConnection { connection throws in
      #expect(try postgresError { try connection.execute("COPY (SELECT 1) TO STDOUT") }.kind == .usage)
      #expect(try postgresError { try connection.executeScript("COPY (SELECT 1) TO STDOUT") }.kind == .usage)
      #expect(try postgresError { try connection.execute("SELECT 1\0") }.kind == .usage)
      #expect(try connection.execute("SELECT 1").count == 1)
    }
  }

  @Test("too many parameters are an error, not a crash") func tooManyParameters() async throws {
    let error = try await postgresError {
      _ = try await onConnection { try $0.execute("SELECT 1", Array(repeating: .int(1), count: 70_000)) }
    }
    #expect(error.kind == .unexpectedData && error.message.contains("65535"), "\(error)")
  }
}
