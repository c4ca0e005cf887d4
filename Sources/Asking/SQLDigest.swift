/// Digests that the server computes. SHA-256 is there on servers in FIPS mode, which have no MD5.
enum SQLDigest {
  /// Half of the SHA-256 of a text, as 32 hexadecimal digits.
  ///
  /// The bytes are those of the database's own encoding, because a text of SQL_ASCII need not be valid UTF-8.
  ///
  /// - Parameter text: an SQL expression of the type text.
  static func of(_ text: String) -> String {
    "left(encode(sha256(convert_to(\(text), getdatabaseencoding())), 'hex'), 32)"
  }
}
