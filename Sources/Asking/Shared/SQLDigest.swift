/// Digests that the server computes: SHA-256, because servers in FIPS mode have no MD5.
enum SQLDigest {
  /// Half of the SHA-256 of an SQL text expression, as 32 hexadecimal digits. The bytes are in the database's own
  /// encoding, because a text of SQL_ASCII need not be valid UTF-8.
  static func of(_ text: String) -> String {
    "left(encode(sha256(convert_to(\(text), getdatabaseencoding())), 'hex'), 32)"
  }
}
