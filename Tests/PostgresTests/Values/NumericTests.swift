import Postgres
import Testing

@Suite(.serialized, .timeLimit(.minutes(10))) struct NumericTests {
  static let literals = [
    "0", "0.00", "1", "-1", "0.1", "-0.05", "12.30", "9999", "10000", "10000.0001", "-99990000.5", "0.00000001",
    "0.000000010000", "123456789012345678.99", "9223372036854775807", "-9223372036854775808",
    "1000000000000000000000000000000", "99999999999999999999999999999999999999",
    "12345678901234567890123456789012345678901234567890.123456789", "1.50000000000000000000000000000000000000000000",
    "0.00000000000000000000000000000000000000000000000000001", "NaN", "Infinity", "-Infinity",
  ]

  @Test("a numeric has the server's text, and a parameter is returned unchanged", arguments: literals)
  func roundTrip(_ literal: String) async throws {
    try await onConnection { connection in
      let sent = try connection.execute("SELECT '\(literal)'::numeric AS n").single().numeric("n")
      #expect(sent.text == literal)
      let row = try connection.execute("SELECT $1, $1::text, ($2)[1]", [.numeric(sent), .numericArray([sent, nil])])
        .single()
      #expect(try row.numeric(0) == sent)
      #expect(try row.text(1) == literal)
      #expect(try row.numeric(2).text == literal)
    }
  }

  @Test("huge and tiny powers of ten keep all digits") func hugeExponents() async throws {
    try await onConnection { connection in
      let row = try connection.execute("SELECT 1e1000::numeric, 1e-1000::numeric").single()
      #expect(try row.numeric(0).text == "1" + String(repeating: "0", count: 1000))
      #expect(try row.numeric(1).text == "0." + String(repeating: "0", count: 999) + "1")
    }
  }

  typealias Conversion = Result<Int64, PostgresNumeric.ConversionError>

  @Test(
    "a conversion to minor units is exact or fails",
    arguments: [
      ("12.30", 2, .success(1230)), ("12.30", 1, .success(123)), ("12.30", 0, .failure(.tooManyDecimals)),
      ("12.345", 2, .failure(.tooManyDecimals)), ("-0.05", 2, .success(-5)), ("-0.05", 3, .success(-50)),
      ("500", 0, .success(500)), ("500.000", 0, .success(500)), ("0.000", 0, .success(0)),
      ("10000", 2, .success(1_000_000)), ("1.50000000000000000000000000000000000000000000", 2, .success(150)),
      ("92233720368547758.07", 2, .success(.max)), ("-92233720368547758.08", 2, .success(.min)),
      ("92233720368547758.08", 2, .failure(.outOfRange)), ("1000000000000000000000000000000", 0, .failure(.outOfRange)),
      ("12345678901234567890123456789012345678901234567890.5", 1, .failure(.outOfRange)),
      ("0.00000000000000000000000000000000000000000000000000001", 3, .failure(.tooManyDecimals)),
      ("12345678901234567890123456789012345678901234567890.5", 0, .failure(.tooManyDecimals)),
      ("12345678901234567890123456789012345678901234567890.50", 1, .failure(.outOfRange)),
      ("12345678901234567890123456789012345678901234567890.05", 1, .failure(.tooManyDecimals)),
      ("1.9900000000000000000000000000000000000000001", 2, .failure(.tooManyDecimals)),
      ("1.9900000000000000000000000000000000000000001", 43, .failure(.outOfRange)),
      ("NaN", 2, .failure(.notFinite)), ("-Infinity", 2, .failure(.notFinite)),
    ] as [(String, Int, Conversion)])
  func scaled(_ literal: String, decimals: Int, expected: Conversion) async throws {
    let value = try await onConnection { try $0.execute("SELECT '\(literal)'::numeric").single().numeric(0) }
    let result = Result { () throws(PostgresNumeric.ConversionError) in try value.scaledInt64(decimals: decimals) }
    #expect(result == expected)
    if case .success(let units) = expected { #expect(try value.scaledInt128(decimals: decimals) == Int128(units)) }
  }

  @Test("Int128 holds amounts beyond Int64") func scaledInt128() async throws {
    let value = try await onConnection { try $0.execute("SELECT -92233720368547758.09::numeric").single().numeric(0) }
    #expect(try value.scaledInt128(decimals: 2) == -9_223_372_036_854_775_809)
  }

  @Test(
    "minor units make an exact numeric",
    arguments: [
      (1230, 2, "12.30"), (-5, 2, "-0.05"), (500, 0, "500"), (0, 3, "0.000"), (1, 4, "0.0001"),
      (12_345_678, 5, "123.45678"),
      (.max, 3, "9223372036854775.807"), (.min, 0, "-9223372036854775808"),
    ] as [(Int64, Int, String)])
  func made(_ scaled: Int64, decimals: Int, text: String) async throws {
    let value = PostgresNumeric(scaled: scaled, decimals: decimals)
    #expect(value.text == text)
    #expect(try value.scaledInt64(decimals: decimals) == scaled)
    #expect(try await onConnection { try $0.execute("SELECT $1::text", [.numeric(value)]).single().text(0) } == text)
  }

  @Test(
    "128-bit minor units make a numeric if it can be read back",
    arguments: [
      ("-9223372036854775808", 6, "-9223372036854.775808"), ("9999999999990000000", 6, "9999999999990.000000"),
      ("-9999999999999999999999999999999999", 6, "-9999999999999999999999999999.999999"), ("0", 6, "0.000000"),
      ("10000000000000000000000000000000000", 6, nil), ("-170141183460469231731687303715884105728", 6, nil),
    ] as [(String, Int, String?)])
  func madeOfMore(_ scaled: String, decimals: Int, text: String?) async throws {
    let scaled = try #require(Int128(scaled))
    let value = PostgresNumeric(exactly: scaled, decimals: decimals)
    #expect(value?.text == text)
    guard let value else { return }
    let stored = try await onConnection { try $0.execute("SELECT $1", [.numeric(value)]).single().numeric(0) }
    #expect(try stored.scaledInt128(decimals: decimals) == scaled)
  }
}
