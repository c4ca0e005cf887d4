import Postgres
import Testing

@Suite(.serialized, .timeLimit(.minutes(10))) struct CopyInTests {
  private static let columns = ["t", "i2", "i4", "i8", "b", "z", "n"]

  /// Runs `body` with a new table `facts`.
  private func withTable(_ body: @Sendable (borrowing BlockingConnection) throws -> Void) async throws {
    try await onConnection { connection in
      try connection.executeScript(
        """
        CREATE TEMPORARY TABLE facts (
          t text, i2 int2, i4 int4 CONSTRAINT positive CHECK (i4 > 0), i8 int8, b bool, z timestamptz, n numeric)
        """)
      try body(connection)
    }
  }

  @Test("values and NULL of every type are stored") func types() async throws {
    try await withTable { connection in
      let count = try connection.copyIn(into: try PostgresIdentifier("facts"), columns: Self.columns) { writer in
        try writer.write(
          .text("it's\\\t\n日"), .int(-7), .int(7), .int(.min), .bool(false), .timestamp(1_795_126_443_123_456),
          .numeric(PostgresNumeric(scaled: -5, decimals: 2)))
        try writer.write(
          .text(nil), .int(nil), .int(nil), .int(nil), .bool(nil), .timestamp(nil), .numeric(nil))
      }
      #expect(count == 2)
      let rows = try connection.execute("SELECT *, n::text AS nt FROM facts ORDER BY t NULLS LAST")
      #expect(try rows[0].text("t") == "it's\\\t\n日" && rows[0].text("nt") == "-0.05")
      #expect(try rows[0].int64("i2") == -7 && rows[0].int64("i4") == 7 && rows[0].int64("i8") == .min)
      #expect(try !rows[0].bool("b") && rows[0].timestamp("z") == 1_795_126_443_123_456)
      for column in Self.columns { #expect(try rows[1].isNull(column)) }
    }
  }

  @Test("no rows, one row, and more rows than a buffer holds are stored", arguments: [0, 1, 200_000])
  func counts(_ count: Int) async throws {
    try await withTable { connection in
      let written = try connection.copyIn(into: try PostgresIdentifier("facts"), columns: ["i8", "t"]) { writer in
        for number in 0..<count { try writer.write(.int(Int64(number)), .text("row \(number)")) }
      }
      #expect(written == count)
      let row = try connection.execute(
        "SELECT count(*), coalesce(sum(i8), 0)::int8, count(*) FILTER (WHERE t = 'row ' || i8) FROM facts"
      ).single()
      #expect(try row.int64(0) == Int64(count) && row.int64(2) == Int64(count))
      #expect(try row.int64(1) == Int64(count * max(0, count - 1) / 2))
    }
  }

  struct Refusal: Error {}

  @Test("a violated constraint and a body that throws store no row") func nothingStored() async throws {
    try await withTable { connection in
      let facts = try PostgresIdentifier("facts")
      let error = try postgresError {
        try connection.copyIn(into: facts, columns: ["i4"]) { writer in
          for number in [3, 2, 1, 0, -1] as [Int64] { try writer.write(.int(number)) }
        }
      }
      #expect(error.sqlState == "23514" && error.constraint == "positive" && error.table == "facts", "\(error)")
      #expect(throws: Refusal.self) {
        try connection.copyIn(into: facts, columns: ["t"]) { writer in
          try writer.write(.text("x"))
          throw Refusal()
        }
      }
      #expect(try connection.execute("SELECT 1 FROM facts").isEmpty)
    }
  }

  @Test("a rejected row is left out, and the other rows are stored") func refusedRow() async throws {
    try await withTable { connection in
      try connection.copyIn(into: try PostgresIdentifier("facts"), columns: ["t", "i2"]) { writer in
        for (text, number) in [("a", 1), ("nul \0", 2), ("too large", 40_000), ("b", 3)] as [(String, Int64)] {
          try? writer.write(.text(text), .int(number))
        }
        #expect(writer.rowCount == 2)
      }
      let rows = try connection.execute("SELECT t, i2 FROM facts ORDER BY t")
      #expect(try rows.map { "\(try $0.text(0))\(try $0.int64(1))" } == ["a1", "b3"])
    }
  }

  @Test("a value that does not match its column is rejected with the column's name") func mismatches() async throws {
    try await withTable { connection in
      try connection.copyIn(into: try PostgresIdentifier("facts"), columns: ["t", "i4"]) { writer in
        var errors: [PostgresError] = []
        do throws(PostgresError) { try writer.write(.int(1)) } catch { errors.append(error) }
        do throws(PostgresError) { try writer.write(.text("x")) } catch { errors.append(error) }
        do throws(PostgresError) { try writer.write(.text("x"), .timestamp(1)) } catch { errors.append(error) }
        do throws(PostgresError) { try writer.write(.text("x"), .int(1), .int(1)) } catch { errors.append(error) }
        do throws(PostgresError) { try writer.text(nil) } catch { errors.append(error) }
        #expect(errors.map(\.kind) == Array(repeating: .usage, count: 5))
        #expect(errors.map(\.column) == ["t", "i4", "i4", nil, nil])
      }
      #expect(try connection.execute("SELECT 1 FROM facts").isEmpty)
    }
  }

  @Test("names are quoted, and unknown names are the server's error") func names() async throws {
    try await onConnection { connection in
      try connection.executeScript(#"CREATE TEMPORARY TABLE "Odd ""name" ("a;b" int)"#)
      try connection.copyIn(into: try PostgresIdentifier("pg_temp", #"Odd "name"#), columns: ["a;b"]) { writer in
        try writer.write(.int(1))
      }
      let error = try postgresError {
        try connection.copyIn(into: try PostgresIdentifier("absent"), columns: ["a"]) { _ in }
      }
      #expect(error.sqlState == "42P01")
    }
  }

  @Test("a role with INSERT but not SELECT can copy rows in") func writeOnlyRole() async throws {
    try await onConnection { connection in
      try connection.executeScript(
        """
        DROP TABLE IF EXISTS public.inbox; DROP ROLE IF EXISTS writer;
        CREATE TABLE public.inbox (n int); CREATE ROLE writer; GRANT INSERT ON public.inbox TO writer;
        SET ROLE writer;
        """)
      try connection.copyIn(into: try PostgresIdentifier("public", "inbox"), columns: ["n"]) { writer in
        try writer.write(.int(1))
      }
      #expect(try postgresError { try connection.execute("SELECT n FROM public.inbox") }.sqlState == "42501")
    }
  }
}
