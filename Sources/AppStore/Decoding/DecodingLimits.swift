/// Limits of the decoders, which also read hostile input. Time and memory are proportional to them. A real transaction
/// has some 7 KB, a real app receipt some 5 KB plus 350 bytes per purchase.
enum DecodingLimits {
  /// Characters of a JWS. A notification contains two more signed documents.
  static let jwsLength = 256 * 1_024
  /// Characters of a base64 app receipt or old transaction receipt: 10 MiB.
  static let receiptLength = 10 << 20
  /// Bytes of one certificate; Apple's have less than 1,600.
  static let certificateLength = 8 * 1_024
  /// Certificates in an app receipt; Apple sends three.
  static let receiptCertificates = 8
  static let receiptPurchases = 30_000
  /// Entries of an old transaction receipt's lists; Apple's have some twenty.
  static let propertyListEntries = 256
  static let nesting = 24
  /// Bytes of a text that is stored as an identifier or name.
  static let textLength = 1_024
  /// Verified certificate chains in the cache. Apple changes its leaf about once a year.
  static let rememberedChains = 32
}
