import Foundation
import Reconciliation
import Testing

@testable import AppStore

@Suite("Base64, dates and ASN.1")
struct SignedFormTests {
  @Test("Base64 is read as by Foundation", arguments: 0..<200)
  func decodesBase64(length: Int) throws {
    let bytes = (0..<length).map { UInt8(truncatingIfNeeded: $0 &* 167 &+ length) }
    let standard = Data(bytes).base64EncodedString()
    #expect(Base64Text.decodePadded(Array(standard.utf8)[...]) == bytes)
    #expect(Base64Text.decodeReceipt(standard.utf8) == bytes)
    #expect(Base64Text.decodeURLSafe(Array(TestJWS.base64URL(bytes).utf8)[...]) == bytes)
  }

  @Test(
    "Other base64 is nil", arguments: ["A", "AAAAA", "AB", "AAB", "A=", "AA==", "AAA=", "AA A", "AA+A", "AA/A", "é"])
  func refusesBase64(text: String) {
    #expect(Base64Text.decodeURLSafe(Array(text.utf8)[...]) == nil)
  }

  @Test(
    "RFC 3339 dates are read",
    arguments: [
      ("1970-01-01T00:00:00Z", 0), ("2026-06-01T00:00:00Z", 1_780_272_000_000_000),
      ("2024-02-29T23:59:59.25Z", 1_709_251_199_250_000), ("2000-03-01T02:00:00+02:00", 951_868_800_000_000),
      ("1969-12-31T19:00:00-05:00", 0), ("0001-01-01T00:00:00Z", -62_135_596_800_000_000),
      ("9999-12-31T23:59:59.1234567Z", 253_402_300_799_123_456),
    ] as [(String, Int64)])
  func readsDate(text: String, microseconds: Int64) {
    #expect(Instant(rfc3339: text) == Instant(microseconds: microseconds))
  }

  @Test(
    "Other dates are refused",
    arguments: [
      "", "2026-06-01", "2026-06-01T00:00:00", "2026-13-01T00:00:00Z", "2026-02-29T00:00:00Z", "1900-02-29T00:00:00Z",
      "2026-06-01T24:00:00Z", "2026-06-01T00:60:00Z", "2026-06-01T00:00:00.Z", "2026-06-01T00:00:00+2:00",
      "2026-06-00T00:00:00Z", "2026-06-01T00:00:00Zx", "２０２６-06-01T00:00:00Z", "2026-06-01T00:00:00+24:00",
    ])
  func refusesDate(text: String) { #expect(Instant(rfc3339: text) == nil) }

  @Test("ASN.1 integers are read", arguments: [0, 1, -1, 127, 128, -128, -129, 255, 256, 65_535, 1 << 40, .max, .min])
  func readsInteger(value: Int) {
    #expect(BERElement(TestASN1.integer(value)[...])?.integerValue == Int64(value))
  }

  @Test(
    "Broken ASN.1 is refused",
    arguments: [
      [], [0x30], [0x30, 0x01], [0x30, 0x80], [0x30, 0x80, 0x00], [0x04, 0x80, 0x00, 0x00], [0x30, 0x81],
      [0x30, 0x85, 0, 0, 0, 0, 0],
      [0x30, 0x84, 0xFF, 0xFF, 0xFF, 0xFF], [0x1F, 0x81, 0x01, 0x00], [0x30, 0x00, 0x00],
    ] as [[UInt8]])
  func refusesASN1(bytes: [UInt8]) { #expect(BERElement(bytes[...]) == nil) }
}
