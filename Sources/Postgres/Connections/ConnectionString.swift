import CLibPQ

/// Checks a connection string before libpq. After a typing error, libpq's messages may quote the password.
struct ConnectionString {
  private let text: String
  /// Possible parts of the password, longest first.
  private let secrets: [String]

  /// Throws `.misconfigured`, without quoting the string, if it is invalid or ambiguous.
  init(_ text: String) throws(PostgresError) {
    self.text = text
    if let address = Self.address(of: text) {
      try Self.refuseAmbiguity(in: address)
    } else if !text.contains("="), text.contains("@") || text.contains("/") {
      throw PostgresError(
        .misconfigured,
        "the connection string is neither a URL that begins with postgresql:// nor a list of keyword=value")
    }
    secrets = Self.secrets(of: text)
  }

  func redacted(_ message: String) -> String {
    secrets.reduce(message) { message, secret in message.replacing(secret, with: "…") }
  }

  private static func address(of text: String) -> Substring? {
    for scheme in ["postgresql://", "postgres://"] where text.hasPrefix(scheme) { return text.dropFirst(scheme.count) }
    return nil
  }

  // An unescaped special character in a URL's password moves the border to the host, or makes the password a port.
  private static func refuseAmbiguity(in address: Substring) throws(PostgresError) {
    let path = address.prefix { $0 != "?" }
    let parts = path.split(separator: "@", omittingEmptySubsequences: false)
    let authority = path.prefix { $0 != "/" }
    // Several hosts are separated by commas, an IPv6 address is in brackets.
    let hosts = (authority.split(separator: "@", omittingEmptySubsequences: false).last ?? "").split(separator: ",")
    let hasNonDefaultPort = hosts.contains { host in
      let afterAddress = host.split(separator: "]", omittingEmptySubsequences: false).last ?? host
      guard let colon = afterAddress.firstIndex(of: ":") else { return false }
      return !afterAddress[afterAddress.index(after: colon)...].allSatisfy { $0.isASCII && $0.isNumber }
    }
    // A question mark or slash in a password leaves the rest of it, and the @, behind the apparent end.
    let hasTruncatedPassword = hasNonDefaultPort && address.contains("@") && !authority.contains("@")
    if parts.count > 2 || hasTruncatedPassword || (hasNonDefaultPort && authority.contains("@")) {
      throw PostgresError(
        .misconfigured,
        """
        the connection URL cannot be told apart into user, password and host; in a URL the special characters of a \
        password are percent-encoded: @ as %40, : as %3A, / as %2F, ? as %3F, # as %23, % as %25
        """)
    }
  }

  private static func secrets(of text: String) -> [String] {
    var secrets: Set<String> = []
    if let address = address(of: text), let at = address.lastIndex(of: "@") {
      let account = address[..<at]
      if let colon = account.firstIndex(of: ":") {
        let password = account[account.index(after: colon)...]
        secrets.insert(String(password))
        for piece in password.split(whereSeparator: { "@:/?#&=".contains($0) }) { secrets.insert(String(piece)) }
      }
    }
    if let options = unsafe PQconninfoParse(text, nil) {
      let settings = unsafe ConnectionParameters.settings(of: options)
      for (keyword, value) in settings where ["password", "sslpassword"].contains(keyword) { secrets.insert(value) }
    }
    // One or two letters reveal nothing, and their removal would make every message unreadable.
    return secrets.filter { $0.utf8.count > 2 }.sorted { ($0.utf8.count, $0) > ($1.utf8.count, $1) }
  }
}
