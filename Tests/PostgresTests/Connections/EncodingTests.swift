import Postgres
import TestSupport
import Testing

@Suite(.serialized, .timeLimit(.minutes(10)))
struct EncodingTests {
  private func inDatabase<R: Sendable>(
    _ encoding: String, _ body: @Sendable (borrowing BlockingConnection) throws -> R
  ) async throws -> R {
    let conninfo = try await PrivatePostgres.shared().createDatabase(encoding: encoding)
    return try await withBlockingThread { scope in try body(try scope.connect(conninfo, applicationName: "x")) }
  }

  @Test("a LATIN1 server returns Unicode, stores the characters of LATIN1, and rejects others")
  func latin1() async throws {
    try await inDatabase("LATIN1") { connection in
      try connection.executeScript("CREATE TABLE public.t (v text)")
      try connection.execute("INSERT INTO public.t VALUES ($1)", [.text("é")])
      try connection.copyIn(into: try PostgresIdentifier("public", "t"), columns: ["v"]) { writer in
        try writer.write(.text("ü"))
      }
      let rows = try connection.execute(#"SELECT v, octet_length(v) FROM public.t ORDER BY v COLLATE "C""#)
      #expect(try rows.map { try $0.text(0) } == ["é", "ü"])
      #expect(try rows.map { try $0.int64(1) } == [1, 1])
      let error = try postgresError { try connection.execute("INSERT INTO public.t VALUES ($1)", [.text("日")]) }
      #expect(error.sqlState == SQLState.untranslatableCharacter)
      #expect("\(error)".contains("encoding lacks a character"))
    }
  }

  @Test("a SQL_ASCII server stores and returns Unicode; invalid UTF-8 is an error, and the stream continues")
  func noEncoding() async throws {
    try await inDatabase("SQL_ASCII") { connection in
      try connection.executeScript(
        #"CREATE TABLE public.t (n int, v text); INSERT INTO public.t VALUES (2, E'caf\xe9')"#)
      try connection.execute("INSERT INTO public.t VALUES (1, $1)", [.text("日本")])
      var rows = try connection.copyOut("SELECT n, v FROM public.t ORDER BY n")
      #expect(try rows.advance())
      #expect(try rows.text(1) == "日本")
      #expect(try rows.isText(1))
      #expect(try rows.advance())
      #expect(try !rows.isText(1))
      do throws(PostgresError) {
        _ = try rows.text(1)
        Issue.record("invalid UTF-8 was read as text")
      } catch {
        #expect(error.kind == .unexpectedData && error.column == "v", "\(error)")
      }
      #expect(try rows.escapedText(1) == #"caf\xE9"#)
      #expect(try !rows.advance())
      let rest = try connection.execute("SELECT v FROM public.t ORDER BY n")
      #expect(try rest[0].text(0) == "日本")
      #expect(try postgresError { _ = try rest[1].text(0) }.kind == .unexpectedData)
    }
  }
}
