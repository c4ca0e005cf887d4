import Foundation
import Reconciliation
import Testing

@testable import Reporting

struct CSVTextTests {
  private func cell(_ write: (inout CSVText) -> Void) -> String {
    var text = CSVText(capacity: 64)
    write(&text)
    text.endRow()
    let row = String(decoding: text.bytes, as: UTF8.self)
    #expect(row.hasSuffix("\r\n"))
    return String(row.dropLast())
  }

  @Test(arguments: [
    ("", ""), ("plain", "plain"), (" padded ", " padded "), ("a,b", "\"a,b\""), ("say \"hi\"", "\"say \"\"hi\"\"\""),
    ("two\nlines", "\"two\nlines\""), ("two\r\nlines", "\"two\r\nlines\""),
    ("=1+1", "'=1+1"), ("+49", "'+49"), ("-5", "'-5"), ("@user", "'@user"), ("\ttab", "'\ttab"),
    ("\rreturn", "\"'\rreturn\""), ("=cmd(\"a\",1)", "\"'=cmd(\"\"a\"\",1)\""), ("-1,5", "\"'-1,5\""),
    ("a=b", "a=b"), ("'quoted", "'quoted"), ("0012345678901234567", "0012345678901234567"),
    ("\u{5E9}\u{5DC}\u{5D5}\u{5DD}", "\u{5E9}\u{5DC}\u{5D5}\u{5DD}"), ("👩‍👩‍👧", "👩‍👩‍👧"), ("e\u{301}", "e\u{301}"),
  ])
  func textIsQuotedIfNecessaryAndFormulasAreEscaped(_ raw: String, _ expected: String) {
    // Bytes, because String compares canonically equivalent texts as equal.
    #expect(Array(cell { $0.text(raw) }.utf8) == Array(expected.utf8))
  }

  @Test(
    "Amounts have exactly the digits of their currency, and no escape before a minus",
    arguments: [
      (300, 0, "300"), (199, 2, "1.99"), (5, 2, "0.05"), (0, 2, "0.00"), (0, 0, "0"), (-199, 2, "-1.99"),
      (-5, 2, "-0.05"), (1_250, 3, "1.250"), (-500, 3, "-0.500"), (12_345, 4, "1.2345"),
      (Int128(Int64.max), 2, "92233720368547758.07"), (Int128(Int64.min), 0, "-9223372036854775808"),
      (Int128(Int64.max) * 1_000 + 1, 2, "92233720368547758070.01"),
      (-(Int128(Int64.max) * 1_000), 0, "-9223372036854775807000"),
    ] as [(Int128, UInt8, String)])
  func amount(_ units: Int128, _ digits: UInt8, _ expected: String) {
    #expect(cell { $0.decimal(units, digits: digits) } == expected)
  }

  @Test(arguments: [
    ("1.999", "1.999"), ("-1.999", "-1.999"), ("-0", "-0"), ("NaN", ""), ("Infinity", ""), ("-Infinity", ""),
    ("-1e5", ""), ("=1", ""), ("", ""),
  ])
  func numericTextOfTheDatabaseStaysANumberOtherTextLeavesItsCellBlank(_ raw: String, _ expected: String) {
    let shown = Cell(figure: raw)
    #expect(cell { $0.put(shown, isId: false) } == expected)
  }

  @Test(arguments: [
    (0, "1970-01-01T00:00:00Z"), (-1, "1969-12-31T23:59:59Z"), (1_000_001, "1970-01-01T00:00:01Z"),
    (1_795_126_443_999_999, "2026-11-19T22:14:03Z"), (951_782_400_000_000, "2000-02-29T00:00:00Z"),
    (4_107_542_399_000_000, "2100-02-28T23:59:59Z"), (253_402_300_799_000_000, "9999-12-31T23:59:59Z"),
    (253_402_300_800_000_000, "10000-01-01T00:00:00Z"), (-62_135_596_800_000_000, "0001-01-01T00:00:00Z"),
    (Int64.max, "294247-01-10T04:00:54Z"), (Int64.min, "-290308-12-21T19:59:05Z"),
  ])
  func instantsAreWholeSecondsOfUTC(_ microseconds: Int64, _ expected: String) {
    #expect(cell { $0.instant(Instant(microseconds: microseconds)) } == expected)
  }

  @Test func instantsFrom1970To2100HaveTheSameTextAsInFoundation() throws {
    let style = Date.ISO8601FormatStyle()
    // A prime step visits every hour, minute and second of many days from 1970 to 2100.
    for seconds in stride(from: Int64(0), to: 4_102_444_800, by: 1_299_709) {
      let expected = style.format(Date(timeIntervalSince1970: Double(seconds)))
      #expect(Instant(seconds: seconds).text == expected)
    }
  }

  @Test func aRowEndsWithCRAndLFAndBlankCellsAreEmpty() {
    let row = cell {
      $0.text("a")
      $0.blank()
      $0.put(.count(-7), isId: false)
    }
    #expect(row == "a,,-7")
  }
}
