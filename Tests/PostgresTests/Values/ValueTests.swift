import Postgres
import Testing

@Suite(.serialized, .timeLimit(.minutes(10))) struct ValueTests {
  static let instants: [(String, Int64)] = [
    ("1970-01-01 00:00:00+00", 0), ("1969-12-31 23:59:59.999999+00", -1),
    ("2000-01-01 00:00:00+00", 946_684_800_000_000), ("1999-12-31 23:59:59.999999+00", 946_684_799_999_999),
    ("2026-11-19 22:14:03.123456+00", 1_795_126_443_123_456), ("2024-02-29 12:00:00+05:30", 1_709_188_200_000_000),
    ("0001-01-01 00:00:00+00", -62_135_596_800_000_000), ("9999-12-31 23:59:59.999999+00", 253_402_300_799_999_999),
  ]

  @Test("timestamptz is sent and read as microseconds since 1970", arguments: instants)
  func timestamps(_ literal: String, _ microseconds: Int64) async throws {
    try await onConnection { connection in
      let constant = try PostgresLiteral.timestamp(microseconds)
      let row = try connection.execute(
        "SELECT t, t = $1, t = \(constant), t = ($2)[2] FROM (SELECT '\(literal)'::timestamptz AS t) AS x",
        [.timestamp(microseconds), .timestampArray([nil, microseconds])]
      ).single()
      #expect(try row.timestamp("t") == microseconds)
      for column in 1...3 { #expect(try row.bool(column)) }
    }
  }

  @Test("timestamps that instants cannot hold fail", arguments: ["infinity", "-infinity", "294276-12-31 23:59:59+00"])
  func endsOfTime(_ literal: String) async throws {
    try await onConnection { connection in
      let row = try connection.execute("SELECT '\(literal)'::timestamptz AS t").single()
      let error = try postgresError { _ = try row.timestamp(0) }
      #expect(error.kind == .unexpectedData && error.column == "t", "\(error)")
    }
  }

  @Test(
    "instants beyond the range of Postgres are rejected",
    arguments: [.min, .min + 1, .min + 946_684_800_000_000] as [Int64])
  func unsendable(_ microseconds: Int64) async throws {
    let error = try await postgresError {
      _ = try await onConnection { try $0.execute("SELECT $1", [.timestamp(microseconds)]) }
    }
    #expect(error.kind == .usage)
  }

  static let texts = [
    "", "plain", "it's", #"back\slash"#, #"\' OR 1=1 --"#, "\"quoted\"", "{a,b}", "NULL", "null", "Ünïcödé", "日本語", "👩‍👩‍👧‍👦",
    "e\u{301}", "'\u{301}", "\"\u{301}", "\u{1}\u{7f}\u{feff}\u{ffff}", "tab\tnew\nline\r", "$1 %s ;",
    String(repeating: "é", count: 500_000),
  ]

  @Test("text is unchanged as parameter, array element and literal", arguments: texts)
  func text(_ text: String) async throws {
    try await onConnection { connection in
      let literal = try PostgresLiteral.text(text)
      let row = try connection.execute(
        "SELECT $1, $2,\(literal)::text, octet_length($1)", [.text(text), .textArray([text, nil, text])]
      ).single()
      // Compared as bytes, because String's == ignores normalization.
      #expect(try Array(row.text(0).utf8) == Array(text.utf8))
      #expect(try row.textArray(1).map { $0.map { Array($0.utf8) } } == [Array(text.utf8), nil, Array(text.utf8)])
      #expect(try Array(row.text(2).utf8) == Array(text.utf8))
      #expect(try row.int64(3) == Int64(text.utf8.count))
    }
  }

  @Test(
    "integers are sent and read in every width",
    arguments: [0, 1, -1, 32_767, -32_768, 2_147_483_647, -2_147_483_648, .max, .min] as [Int64])
  func integers(_ value: Int64) async throws {
    try await onConnection { connection in
      let row = try connection.execute(
        "SELECT $1, ($2)[1], \(value < 0 ? "(\(value))" : "\(value)")", [.int(value), .intArray([value])]
      ).single()
      for column in 0..<2 { #expect(try row.int64(column) == value) }
      if let small = Int32(exactly: value) {
        #expect(try row.int32(0) == small)
      } else {
        #expect(try postgresError { _ = try row.int32(0) }.kind == .unexpectedData)
      }
    }
  }

  @Test("booleans and bytes are sent and read") func booleansAndBytes() async throws {
    try await onConnection { connection in
      let bytes: [UInt8] = [0, 39, 92, 255, 0]
      let row = try connection.execute(
        "SELECT $1, $2, $3, ($4)[1], ($5)[2], $6",
        [.bool(true), .bool(false), .bytes(bytes), .boolArray([true]), .bytesArray([nil, bytes]), .bytes([])]
      ).single()
      #expect(try row.bool(0) && !row.bool(1) && row.bool(3))
      #expect(try row.bytes(2) == bytes && row.bytes(4) == bytes && row.bytes(5) == [])
    }
  }

  @Test(
    "array parameters are arrays of their type",
    arguments: [
      (.textArray([]), "{}"),
      (.textArray(["a", nil, "", "NULL", "c,d", "\"", "\\"]), #"{a,NULL,"","NULL","c,d","\"","\\"}"#),
      (.intArray([1, nil, -2]), "{1,NULL,-2}"), (.intArray([]), "{}"), (.boolArray([true, nil, false]), "{t,NULL,f}"),
      (.bytesArray([[0, 255], nil]), #"{"\\x00ff",NULL}"#),
      (.numericArray([PostgresNumeric(scaled: 150, decimals: 2), nil]), "{1.50,NULL}"),
      (.timestampArray([0, nil]), #"{"1970-01-01 00:00:00+00",NULL}"#),
    ] as [(PostgresValue, String)])
  func arrays(_ value: PostgresValue, text: String) async throws {
    #expect(try await onConnection { try $0.execute("SELECT $1::text", [value]).single().text(0) } == text)
  }

  @Test(
    "a nil is a NULL of its type",
    arguments: [
      (.text(nil), "text"), (.int(nil), "bigint"), (.bool(nil), "boolean"), (.bytes(nil), "bytea"),
      (.timestamp(nil), "timestamp with time zone"), (.numeric(nil), "numeric"),
    ] as [(PostgresValue, String)])
  func nulls(_ value: PostgresValue, type: String) async throws {
    try await onConnection { connection in
      let row = try connection.execute("SELECT $1 AS v, pg_typeof($1)::text AS type", [value]).single()
      #expect(try row.isNull("v") && row.text("type") == type)
      // An untyped NULL gets its type from the statement.
      #expect(try connection.execute("SELECT coalesce($1, 7::int4) AS v", [.null]).single().int32("v") == 7)
    }
  }

  @Test("NULL differs from the empty value, and accessors of required values reject it")
  func nullAccess() async throws {
    try await onConnection { connection in
      let row = try connection.execute(
        """
        SELECT NULL::text AS t, NULL::int8 AS i, NULL::bool AS b, NULL::timestamptz AS z, NULL::numeric AS n,
          NULL::bytea AS y, '' AS empty
        """
      ).single()
      #expect(try row.optionalText("t") == nil && row.optionalInt64("i") == nil && row.optionalInt32("i") == nil)
      #expect(try row.optionalBool("b") == nil && row.optionalTimestamp("z") == nil && row.optionalNumeric("n") == nil)
      #expect(try row.optionalText("empty") == "" && !row.isNull("empty"))
      for error in [
        try postgresError { _ = try row.text("t") }, try postgresError { _ = try row.int64("i") },
        try postgresError { _ = try row.bool("b") }, try postgresError { _ = try row.timestamp("z") },
        try postgresError { _ = try row.numeric("n") }, try postgresError { _ = try row.bytes("y") },
      ] {
        #expect(error.kind == .unexpectedData && error.message.contains("NULL"), "\(error)")
      }
    }
  }

  @Test("reading another type than the column's is an error that names the column") func mismatches() async throws {
    try await onConnection { connection in
      let row = try connection.execute("SELECT 1::int4 AS i, 'x'::text AS t, now()::timestamp AS local").single()
      #expect(try postgresError { _ = try row.text("i") }.column == "i")
      #expect(try postgresError { _ = try row.int64("t") }.column == "t")
      #expect(try postgresError { _ = try row.timestamp("local") }.column == "local")
      #expect(try postgresError { _ = try row.numeric(0) }.kind == .unexpectedData)
      #expect(try postgresError { _ = try row.text("absent") }.kind == .usage)
      #expect(try postgresError { _ = try row.text(3) }.kind == .usage)
    }
  }

  @Test("enums, varchar and name are read as text") func textLikeTypes() async throws {
    try await onConnection { connection in
      try connection.executeScript("CREATE TYPE pg_temp.mood AS ENUM ('fine', 'so-so')")
      let row = try connection.execute("SELECT 'so-so'::pg_temp.mood, 'v'::varchar(3), 'c'::char(3), 'n'::name")
        .single()
      #expect(try (0..<4).map { try row.text($0) } == ["so-so", "v", "c  ", "n"])
    }
  }

  @Test(
    "NUL is rejected before the statement is sent", arguments: [PostgresValue.text("a\0b"), .textArray(["a", "\0"])])
  func nul(_ value: PostgresValue) async throws {
    let error = try await postgresError { _ = try await onConnection { try $0.execute("SELECT $1", [value]) } }
    #expect(error.kind == .usage && error.message.contains("$1") && error.message.contains("NUL"), "\(error)")
  }
}
