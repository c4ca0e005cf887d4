/// The comparison of account tokens: UUIDs in any case, with hyphens, braces or `urn:uuid:`.
public enum AccountToken {
  /// True if two tokens are equal; nil if only one is a UUID, because StoreKit accepts UUIDs alone.
  public static func isSame(_ left: String, _ right: String) -> Bool? {
    // Most tokens are spelt alike, and every pair of an order and a payment of one user is compared.
    if left == right { return true }
    let (left, right) = (spelling(left), spelling(right))
    if left == right { return true }
    return isUUID(left[...]) == isUUID(right[...]) ? false : nil
  }

  public static func spelling(_ token: String) -> String {
    // Bytes in one allocation, because every order and purchase with a token comes here.
    let hyphen = UInt8(ascii: "-")
    var isPlainUUID = true
    let plain = String(unsafeUninitializedCapacity: token.utf8.count) { text in
      var count = 0
      for byte in token.utf8 where byte != hyphen {
        let small = small(byte)
        isPlainUUID = isPlainUUID && isDigit(small)
        text[count] = small
        count += 1
      }
      isPlainUUID = isPlainUUID && count == 32
      return count
    }
    if isPlainUUID { return plain }
    var digits = plain[...]
    if digits.hasPrefix("urn:uuid:") { digits = digits.dropFirst("urn:uuid:".count) }
    if digits.hasPrefix("{"), digits.hasSuffix("}") { digits = digits.dropFirst().dropLast() }
    return isUUID(digits) ? String(digits) : plain
  }

  public static func fingerprint(_ token: String) -> UInt64 {
    var token = token
    return token.withUTF8 { fingerprint(BorrowedText(UnsafeRawBufferPointer($0))) }
  }

  /// A hash that all spellings of a token share.
  public static func fingerprint(_ token: BorrowedText) -> UInt64 {
    // Nearly every token is a UUID, whose spelling is not needed as text.
    var (fingerprint, count, isUUID) = (BorrowedText.fingerprintOfNothing, 0, true)
    for byte in token.bytes where byte != UInt8(ascii: "-") {
      let small = small(byte)
      isUUID = isUUID && isDigit(small)
      fingerprint = BorrowedText.fingerprint(fingerprint, small)
      count += 1
    }
    if isUUID, count == 32 { return fingerprint }
    var spelling = spelling(token.text)
    return spelling.withUTF8 { BorrowedText(UnsafeRawBufferPointer($0)).fingerprint }
  }

  /// The relation of an order's token to a transaction's. The better one is the smaller one.
  public enum Relation: Int, Sendable { case same, unknown, other }

  static func relation(of order: Order, to transaction: TransactionRecord) -> Relation {
    guard let own = order.appAccountToken, case .stated(.some(let token)) = transaction.appAccountToken else {
      return .unknown
    }
    return switch isSame(own, token) {
    case .some(true): .same
    case .some(false): .other
    case .none: .unknown
    }
  }

  private static func isUUID(_ spelling: Substring) -> Bool {
    spelling.utf8.count == 32 && spelling.utf8.allSatisfy(isDigit)
  }

  private static func small(_ byte: UInt8) -> UInt8 {
    (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte) ? byte | 0x20 : byte
  }

  private static func isDigit(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "f"): true
    default: false
    }
  }
}
