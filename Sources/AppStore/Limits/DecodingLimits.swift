/// What decoding may cost at most, whoever sent the bytes.
///
/// Real transactions are some 7 KB and real app receipts some 5 KB plus 350 bytes a purchase. Every reader works in one
/// pass over input that is at most this long, so its time and memory are proportional to these numbers.
enum DecodingLimits {
  /// Characters of a JWS. A notification holds two more signed documents within itself.
  static let jwsLength = 256 * 1_024
  /// Characters of a base64 app receipt or old transaction receipt: 10 MiB.
  static let receiptLength = 10 << 20
  /// Bytes of one certificate; Apple's have less than 1,600.
  static let certificateLength = 8 * 1_024
  /// Certificates that come with an app receipt; Apple sends three.
  static let receiptCertificates = 8
  /// Purchases in one app receipt.
  static let receiptPurchases = 30_000
  /// Entries of an old transaction receipt's lists; Apple's have some twenty.
  static let propertyListEntries = 256
  /// Levels of nested JSON values or ASN.1 elements.
  static let nesting = 24
  /// Bytes of a text that becomes an identifier, a name or a word of Apple's in our tables.
  static let textLength = 1_024
  /// Verified certificate chains that are remembered. Apple changes its leaf about once a year.
  static let rememberedChains = 32
}
