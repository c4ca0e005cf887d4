import TestSupport
import Testing

@testable import Reconciliation
@testable import SampleWorlds

/// Amounts and currencies.
@Suite struct MoneyTests {
  @Test(
    "Milliunits are thousandths of the major unit in every currency",
    arguments: [
      ("JPY", 300_000, 300), ("USD", 1_990, 199), ("KWD", 1_250, 1_250), ("CLF", 1_250, 12_500), ("USD", 0, 0),
      ("USD", -1_990, -199), ("IQD", 1, 1),
    ] as [(String, Int64, Int64)])
  func milliunits(code: String, milliunits: Int64, expected: Int64) throws {
    #expect(Money(milliunits: milliunits, currency: Money.of(0, code).currency) == .of(expected, code))
  }

  @Test(
    "An amount that is no whole number of minor units is nil, never rounded",
    arguments: [
      ("JPY", 300_500), ("JPY", 1), ("USD", 1_995), ("USD", -5), ("CLF", Int64.max), ("CLF", .min),
    ] as [(String, Int64)])
  func noRounding(code: String, milliunits: Int64) {
    #expect(Money(milliunits: milliunits, currency: Money.of(0, code).currency) == nil)
  }

  @Test(
    "Shares are rounded half up, and a negative amount mirrors the positive one",
    arguments: [
      (1, 1, 2, 1), (3, 1, 2, 2), (1, 49, 100, 0), (1, 51, 100, 1), (-1, 1, 2, -1), (-3, 1, 2, -2), (-1, 49, 100, 0),
      (990, 2, 3, 660), (100, 1, 3, 33), (200, 1, 3, 67), (7, 0, 1, 0), (.max, 1, 1, .max), (.min, 1, 1, .min),
      (.max, 2, 1, .max), (.min, 2, 1, .min),
    ] as [(Int64, Int64, Int64, Int64)])
  func share(minorUnits: Int64, part: Int64, whole: Int64, expected: Int64) {
    #expect(Money.of(minorUnits).share(part, of: whole) == .of(expected))
  }

  @Test(
    "Decimal text has exactly the digits of the currency",
    arguments: [
      (199, "USD", "1.99"), (5, "USD", "0.05"), (0, "USD", "0.00"), (-5, "USD", "-0.05"), (300, "JPY", "300"),
      (0, "JPY", "0"), (-1_500, "KWD", "-1.500"), (12_500, "CLF", "1.2500"), (.min, "USD", "-92233720368547758.08"),
      (.max, "JPY", "9223372036854775807"),
    ] as [(Int64, String, String)])
  func text(minorUnits: Int64, code: String, expected: String) {
    #expect(Money.of(minorUnits, code).decimalText == expected)
  }

  @Test(
    "Decimal text without a sign is read in units of its last digit",
    arguments: [
      ("1.99", 2, 199), ("1.9", 2, 190), ("1.", 2, 100), ("007", 0, 7), ("0.000001", 6, 1), ("1.999", 2, nil),
      ("1.5", 0, nil), (".5", 2, nil), ("", 2, nil), ("1.+5", 2, nil), ("1.-5", 2, nil), ("-0.5", 2, nil),
      ("+1", 2, nil), ("1.2.3", 6, nil), ("1e3", 2, nil), ("٣", 0, nil), ("9223372036854775807", 0, .max),
      ("9223372036854775808", 0, nil),
    ] as [(String, Int, Int64?)])
  func decimalText(text: String, digits: Int, expected: Int64?) {
    #expect(Int64(decimalText: text, digits: digits) == expected)
  }

  @Test("Amounts for people have grouped thousands and the code of the currency")
  func amountsForPeople() {
    let cases: [(Int64, String, String)] = [
      (0, "USD", "0.00 USD"), (99_999, "USD", "999.99 USD"), (100_000, "USD", "1,000.00 USD"),
      (-123_456_789, "USD", "−1,234,567.89 USD"), (21_900, "JPY", "21,900 JPY"), (999, "JPY", "999 JPY"),
      (-50, "USD", "−0.50 USD"), (1_250_000, "KWD", "1,250.000 KWD"),
    ]
    for (minorUnits, code, expected) in cases { #expect(Money.of(minorUnits, code).text == expected) }
    for text in ["", "-", "n/a", "12ab5", "2026-11-19"] { #expect(Money.grouped(text) == text) }
    let prices = [("1990.000", "USD"), ("21900.000", "JPY"), ("1.995", "USD"), ("1.250", "KWD"), ("0.000", "USD")]
      .map { Money.text(price: $0, currency: $1) }
    #expect(prices == ["1,990.00 USD", "21,900 JPY", "1.995 USD", "1.250 KWD", "0.00 USD"])
    #expect(Money.grouped("1234.5") == "1,234.5" && Money.grouped("123456") == "123,456")
  }

  @Test("Among all words of three capital letters, exactly the codes of the table are currencies")
  func everyWord() {
    let letters = (65...90).map { String(UnicodeScalar(UInt8($0))) }
    let words = letters.flatMap { one in letters.flatMap { two in letters.map { one + two + $0 } } }
    #expect(words.filter { Currency(code: $0) != nil } == Currency.all.map(\.code))
    for currency in Currency.all {
      let (first, second, third) = currency.letters
      #expect(String(decoding: [first, second, third], as: UTF8.self) == currency.code)
      #expect(Currency(code: currency.code) == currency)
    }
  }

  @Test func secondsAreWhole() {
    for seconds: Int64 in [0, 1_795_132_800, -1] { #expect(Instant(seconds: seconds).seconds == seconds) }
  }

  @Test("Powers of ten match the number of digits")
  func powers() {
    var power: Int64 = 1
    for digits in 0...9 {
      #expect(Money.powersOfTen[digits] == power)
      #expect(
        Money.decimalText(Int128(power), digits: UInt8(digits))
          == (digits == 0 ? "1" : "1." + String(repeating: "0", count: digits)))
      power *= 10
    }
    #expect(Money.powersOfTen.count == 10)
  }

  @Test("Sums exceed 64 bits without overflow, and compare equal whatever the order of addition")
  func sums() {
    var sum = MoneyByCurrency()
    for _ in 0..<3 { sum.add(.of(.max)) }
    sum.add(.of(7, "EUR"))
    #expect(sum.sorted.map(\.currency.code) == ["EUR", "USD"])
    #expect(sum.sorted.map(\.minorUnits) == [7, 3 * Int128(Int64.max)])
    // Equality does not depend on the order of addition.
    #expect(sum == MoneyByCurrency(sum.minorUnits))
    var other = MoneyByCurrency()
    other.add(.of(7, "EUR"))
    #expect(sum != other)
    for _ in 0..<3 { other.add(.of(.max)) }
    #expect(sum == other)
  }

  @Test(
    "Currencies have the number of digits of ISO 4217",
    arguments: [
      ("JPY", 0), ("KRW", 0), ("VND", 0), ("USD", 2), ("LBP", 2), ("MGA", 2), ("IQD", 3), ("KWD", 3), ("TND", 3),
      ("CLF", 4),
    ] as [(String, UInt8)])
  func digits(code: String, expected: UInt8) {
    #expect(Currency(code: code)?.digits == expected)
    #expect(Currency(code: code)?.code == code)
  }

  // XXX is ISO 4217's own code for a transaction without a currency.
  @Test(
    "A code outside the table is no currency",
    arguments: [
      "", "US", "USDX", "usd", "XXX", "ÜSD", "U\0D", "🪙", "A[M", "MF[", "[AA", "UR_", "@SD", "U@D", "US@", "DOL",
    ])
  func unknown(code: String) { #expect(Currency(code: code) == nil) }
}

@Suite struct InstantTests {
  @Test(
    "Apple's milliseconds are clamped to the range of an instant",
    arguments: [
      (0, 0), (1, 1_000), (-1, -1_000), (-62_135_769_600_000, -62_135_769_600_000_000), (.max, .max), (.min, .min),
    ] as [(Int64, Int64)])
  func milliseconds(milliseconds: Int64, microseconds: Int64) {
    #expect(Instant(milliseconds: milliseconds).microseconds == microseconds)
  }

  @Test("Whole seconds and milliseconds are rounded toward the past")
  func rounding() {
    #expect(Instant(microseconds: -1).seconds == -1)
    #expect(Instant(microseconds: -1_000_000).seconds == -1)
    #expect(Instant(microseconds: 1_999_999).seconds == 1)
    #expect(Instant(microseconds: -1).milliseconds == -1)
    #expect(Span(microseconds: -1).wholeDays == -1)
    #expect(Span.days(2).wholeDays == 2)
    #expect(Instant(seconds: .max).microseconds == .max)
  }

  @Test("Spans have the lengths of their names")
  func lengths() {
    #expect(Span.seconds(1).microseconds == 1_000_000 && Span.minutes(1) == .seconds(60))
    #expect(Span.hours(1) == .minutes(60) && Span.days(1) == .hours(24))
  }

  @Test("Arithmetic with extreme values clamps and does not trap")
  func extremes() {
    let ends = [Int64.min, .min + 1, -1, 0, 1, .max - 1, .max]
    for left in ends {
      for right in ends {
        let difference = Instant(microseconds: left) - Instant(microseconds: right)
        let exact = Int128(left) - Int128(right)
        #expect(abs(Int128(difference.microseconds) - Int128(Int64(clamping: exact))) <= 1)
        let sum = Instant(microseconds: left) + Span(microseconds: right)
        #expect(sum.microseconds == Int64(clamping: Int128(left) + Int128(right)))
        let rest = Instant(microseconds: left) - Span(microseconds: right)
        #expect(abs(Int128(rest.microseconds) - Int128(Int64(clamping: exact))) <= 1)
        #expect(difference.magnitude.microseconds >= 0)
      }
      #expect(Span.days(left).microseconds == Int64(clamping: Int128(left) * 86_400_000_000))
    }
  }
}

@Suite struct IdentifierTests {
  @Test("Identifiers of every length equal their bytes, and sort like them")
  func everyLength() {
    var random = SeededGenerator(seed: 3)
    var ids: [[UInt8]] = []
    for length in 0...40 {
      for _ in 0..<6 { ids.append((0..<length).map { _ in UInt8(random.number(0...2)) * 63 }) }
      ids.append(Array(repeating: 0, count: length))
      ids.append(Array(repeating: 127, count: length))
    }
    let made = ids.map { bytes in bytes.withUnsafeBytes { Identifier(utf8: $0) } }
    for (one, bytes) in zip(made, ids) {
      #expect(one.bytes == bytes && one.isEmpty == bytes.isEmpty && one.text == String(decoding: bytes, as: UTF8.self))
      var lent: [UInt8] = [1]
      one.withUTF8 { lent = Array($0) }
      #expect(lent == bytes)
      let isConsistent = zip(made, ids).allSatisfy { other, otherBytes in
        (one < other) == bytes.lexicographicallyPrecedes(otherBytes) && (one == other) == (bytes == otherBytes)
          && (one != other || one.hashValue == other.hashValue) && (one.compareBytes(other) == 0) == (one == other)
      }
      #expect(isConsistent, "\(bytes)")
    }
    // Hash values are well distributed.
    #expect(Set(made.map(\.hashValue)).count > Set(ids).count * 9 / 10)
  }

  @Test("Identifiers sort by their bytes")
  func order() {
    let ids: [Identifier] = ["b", "a", "Z", "é", "aa", "10", "9", "", "\u{1F600}", "\u{FFFD}"]
    #expect(ids.sorted().map(\.text) == ["", "10", "9", "Z", "a", "aa", "b", "é", "\u{FFFD}", "\u{1F600}"])
  }

  @Test("Canonically equivalent spellings are different identifiers")
  func spelling() {
    let (composed, decomposed) = (Identifier("\u{E9}"), Identifier("e\u{301}"))
    #expect(composed.text == decomposed.text)
    #expect(composed != decomposed)
    #expect(Set([composed, decomposed]).count == 2)
    #expect((composed < decomposed) != (decomposed < composed))
  }

  @Test("Identifiers with equal bytes are equal, however the string is stored")
  func storage() {
    let long = String(repeating: "7", count: 40)
    let bridged = Identifier(String(long.reversed().reversed()))
    #expect(bridged == Identifier(long))
    #expect(bridged.hashValue == Identifier(long).hashValue)
  }
}
