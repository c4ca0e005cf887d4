/// A currency of ISO 4217 with the decimal digits of its minor unit.
public struct Currency: Hashable, Comparable, Sendable, CustomStringConvertible {
  /// The three letters in one number, which is compared and hashed a million times a night.
  private let packed: UInt32
  /// Decimal digits of the minor unit: JPY 0, USD 2, KWD 3, CLF 4.
  public let digits: UInt8

  /// nil: not in the table of ISO 4217. Codes are upper case.
  public init?(code: String) { self.init(Identifier(code)) }

  public init?(_ code: Identifier) {
    guard let currency = code.withUTF8({ Currency(BorrowedText($0)) }) else { return nil }
    self = currency
  }

  private static func packed(_ code: UnsafeRawBufferPointer) -> UInt32 {
    code.count == 3 ? UInt32(code[0]) << 16 | UInt32(code[1]) << 8 | UInt32(code[2]) : 0
  }

  public init?(_ code: BorrowedText) {
    let packed = Currency.packed(code.bytes)
    guard let place = Currency.place(of: packed) else { return nil }
    let digits = Currency.digitsByPlace[place]
    if digits == Currency.unknown { return nil }
    self.packed = packed
    self.digits = digits
  }

  public var code: String {
    String(unsafeUninitializedCapacity: 3) { code in
      for place in 0..<3 { code[place] = UInt8(truncatingIfNeeded: packed >> UInt32(16 - 8 * place)) }
      return 3
    }
  }

  public var description: String { code }

  func hasCode(_ text: BorrowedText) -> Bool { Currency.packed(text.bytes) == packed }

  public var letters: (UInt8, UInt8, UInt8) {
    (UInt8(truncatingIfNeeded: packed >> 16), UInt8(truncatingIfNeeded: packed >> 8), UInt8(truncatingIfNeeded: packed))
  }

  public static func == (left: Currency, right: Currency) -> Bool { left.packed == right.packed }
  public static func < (left: Currency, right: Currency) -> Bool { left.packed < right.packed }
  public func hash(into hasher: inout Hasher) { hasher.combine(packed) }

  public static var all: [Currency] {
    digitsByCode.keys.sorted().compactMap { key in digitsByCode[key].map { Currency(packed: key, digits: $0) } }
  }

  /// No currency, to be read into.
  public static let blank = Currency(packed: 0, digits: 0)

  private init(packed: UInt32, digits: UInt8) {
    self.packed = packed
    self.digits = digits
  }

  // ISO 4217 list one as of 2026-01-01. ANG and BGN left it in 2025 and 2026, and stay for older orders. ICU is not
  // used: it has the digits of daily life (IQD 0), not those of the standard (IQD 3).
  private static let listing: [(digits: UInt8, codes: String)] = [
    (0, "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF"),
    (
      2,
      """
      AED AFN ALL AMD ANG AOA ARS AUD AWG AZN BAM BBD BDT BGN BMD BND BOB BOV BRL BSD BTN BWP BYN BZD CAD CDF CHE CHF \
      CHW CNY COP COU CRC CUP CVE CZK DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GTQ GYD HKD HNL HTG HUF \
      IDR ILS INR IRR JMD KES KGS KHR KPW KYD KZT LAK LBP LKR LRD LSL MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN \
      MXV MYR MZN NAD NGN NIO NOK NPR NZD PAB PEN PGK PHP PKR PLN QAR RON RSD RUB SAR SBD SCR SDG SEK SGD SHP SLE SOS \
      SRD SSP STN SVC SYP SZL THB TJS TMT TOP TRY TTD TWD TZS UAH USD USN UYU UZS VED VES WST XCD XCG YER ZAR ZMW ZWG
      """
    ),
    (3, "BHD IQD JOD KWD LYD OMR TND"),
    (4, "CLF UYW"),
  ]

  private static let digitsByCode: [UInt32: UInt8] = {
    var table: [UInt32: UInt8] = [:]
    for (digits, codes) in listing {
      for code in codes.split(separator: " ") {
        table[code.utf8.reduce(0) { $0 << 8 | UInt32($1) }] = digits
      }
    }
    return table
  }()

  /// One byte for each triple of letters, because every amount looks its currency up.
  private static let digitsByPlace: [UInt8] = {
    var table = [UInt8](repeating: unknown, count: 26 * 26 * 26)
    for (code, digits) in digitsByCode { if let place = place(of: code) { table[place] = digits } }
    return table
  }()

  private static let unknown = UInt8.max

  private static func place(of packed: UInt32) -> Int? {
    func letter(_ shift: UInt32) -> Int { Int(packed >> shift & 0xFF) - 65 }
    let (one, two, three) = (letter(16), letter(8), letter(0))
    guard (0..<26).contains(one), (0..<26).contains(two), (0..<26).contains(three) else { return nil }
    return (one * 26 + two) * 26 + three
  }
}
