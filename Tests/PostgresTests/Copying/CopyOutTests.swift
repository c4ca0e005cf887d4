import Postgres
import Testing

@Suite(.serialized, .timeLimit(.minutes(10)))
struct CopyOutTests {
  @Test("any number of rows is read in order", arguments: [0, 1, 2, 100_000] as [Int64])
  func counts(_ count: Int64) async throws {
    try await onConnection { connection in
      var rows = try connection.copyOut("SELECT n, n::text AS t FROM generate_series(1, \(count)) AS n ORDER BY n")
      var expected: Int64 = 0
      while try rows.advance() {
        expected += 1
        guard try rows.int64(0) == expected, try rows.text(1) == String(expected) else {
          Issue.record("row \(expected)")
          break
        }
      }
      #expect(expected == count)
      #expect(try connection.execute("SELECT 1").count == 1)
      #expect(rows.rowCount == Int(count))
      #expect(try !rows.advance())
    }
  }

  @Test("values and NULL of every type are read") func types() async throws {
    try await onConnection { connection in
      var rows = try connection.copyOut(
        """
        SELECT 'é''\\'::text AS t, 7::int2 AS i2, -7::int4 AS i4, 7000000000::int8 AS i8, true AS b,
          '2026-11-19 22:14:03.123456+00'::timestamptz AS z, -12.30::numeric AS n
        UNION ALL SELECT NULL, NULL, NULL, NULL, NULL, NULL, NULL
        """)
      #expect(rows.columns.map(\.name) == ["t", "i2", "i4", "i8", "b", "z", "n"])
      #expect(try rows.advance())
      #expect(try rows.text(0) == #"é'\"#)
      #expect(try rows.int32(1) == 7)
      #expect(try rows.int32(2) == -7)
      #expect(try rows.int64(3) == 7_000_000_000)
      #expect(try rows.bool(4))
      #expect(try rows.timestamp(5) == 1_795_126_443_123_456)
      #expect(try rows.numeric(6).text == "-12.30")
      #expect(try rows.advance())
      for column in 0..<7 { #expect(try rows.isNull(column)) }
      let (text, narrow, wide) = (try rows.optionalText(0), try rows.optionalInt32(2), try rows.optionalInt64(3))
      #expect(text == nil && narrow == nil && wide == nil)
      let (flag, date, number) = (try rows.optionalBool(4), try rows.optionalTimestamp(5), try rows.optionalNumeric(6))
      #expect(flag == nil && date == nil && number == nil)
      do throws(PostgresError) {
        _ = try rows.text(0)
        Issue.record("NULL was read as text")
      } catch {
        #expect(error.kind == .unexpectedData && error.column == "t", "\(error)")
      }
      #expect(try !rows.advance())
    }
  }

  @Test("infinite timestamps differ from NULL and from instants") func infinity() async throws {
    try await onConnection { connection in
      var rows = try connection.copyOut(
        "SELECT z FROM (VALUES (1, 'infinity'::timestamptz), (2, '-infinity'), (3, now()), (4, NULL)) v (n, z)"
          + " ORDER BY n")
      for expected in [true, true, false, false] {
        #expect(try rows.advance())
        #expect(try rows.isInfinite(0) == expected)
        if expected { #expect(throws: PostgresError.self) { _ = try rows.timestamp(0) } }
      }
    }
  }

  @Test("reading another type than the column's is an error that names the column") func mismatches() async throws {
    try await onConnection { connection in
      var rows = try connection.copyOut(
        "SELECT 3000000000 AS i, 'x'::text AS t, 'a'::bytea AS y, now()::timestamp AS local")
      #expect(try rows.advance())
      var columns: [String?] = []
      do throws(PostgresError) { _ = try rows.text(0) } catch { columns.append(error.column) }
      do throws(PostgresError) { _ = try rows.int32(0) } catch { columns.append(error.column) }
      do throws(PostgresError) { _ = try rows.int64(1) } catch { columns.append(error.column) }
      do throws(PostgresError) { _ = try rows.text(2) } catch { columns.append(error.column) }
      do throws(PostgresError) { _ = try rows.timestamp(3) } catch { columns.append(error.column) }
      do throws(PostgresError) { _ = try rows.numeric(0) } catch { columns.append(error.column) }
      do throws(PostgresError) { _ = try rows.bool(0) } catch { columns.append(error.column) }
      #expect(columns == ["i", "i", "t", "y", "local", "i", "i"])
      #expect(throws: PostgresError.self) { _ = try rows.text(4) }
      #expect(try !rows.advance())
      #expect(throws: PostgresError.self) { _ = try rows.isNull(0) }
    }
  }

  @Test("while a stream is open the connection refuses other work") func busy() async throws {
    try await onConnection { connection in
      var rows = try connection.copyOut("SELECT generate_series(1, 10)")
      #expect(try rows.advance())
      #expect(try postgresError { try connection.execute("SELECT 1") }.kind == .usage)
      #expect(try postgresError { _ = try connection.copyOut("SELECT 1") }.kind == .usage)
      #expect(try postgresError { try connection.executeScript("SELECT 1") }.kind == .usage)
      #expect(try rows.advance())
      #expect(try rows.int64(0) == 2)
    }
  }

  @Test("dropping a reader ends its query and frees the connection") func dropped() async throws {
    try await onConnection { connection in
      for rowsToRead in [0, 1, 5_000] {
        var rows = try connection.copyOut("SELECT repeat('x', 100), generate_series(1, 1000000000)")
        for _ in 0..<rowsToRead { #expect(try rows.advance()) }
        _ = consume rows
        #expect(try connection.execute("SELECT 1").count == 1)
      }
    }
  }

  @Test("a reader keeps its connection alive") func outlivesConnection() async throws {
    let conninfo = try await sharedConninfo()
    try await withBlockingThread { scope in
      func open() throws -> CopyReader {
        try scope.connect(conninfo, applicationName: "x").copyOut("SELECT generate_series(1, 100000)")
      }
      var rows = try open()
      while try rows.advance() {}
      #expect(rows.rowCount == 100_000)
    }
  }

  @Test("a server error within a stream is thrown after the rows before it") func errorInTheMiddle() async throws {
    try await onConnection { connection in
      var rows = try connection.copyOut("SELECT 1/(5000 - n) FROM generate_series(1, 10000) AS n")
      do throws(PostgresError) {
        while try rows.advance() {}
        Issue.record("the stream ended as if it were complete")
      } catch {
        #expect(error.sqlState == "22012" && error.kind == .server, "\(error)")
      }
      #expect(rows.rowCount == 4_999)
      #expect(try !rows.advance())
      #expect(try connection.execute("SELECT 1").count == 1)
    }
  }

  @Test("an invalid query throws before the first row") func refusedQuery() async throws {
    try await onConnection { connection throws in
      #expect(try postgresError { _ = try connection.copyOut("SELECT * FROM absent") }.sqlState == "42P01")
      #expect(try postgresError { _ = try connection.copyOut("CREATE TABLE x ()") }.kind == .server)
      #expect(try connection.execute("SELECT 1").count == 1)
    }
  }
}
