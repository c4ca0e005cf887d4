import Foundation
import Reconciliation

/// A URL to which secrets and receipts may be sent: https, or http on loopback.
package struct EndpointURL: Hashable, Sendable, CustomStringConvertible {
  package let text: String

  /// Throws if secrets may not be sent to the URL. The message does not repeat it, because it may contain a password.
  package init(_ text: String) throws(EndpointURLError) {
    guard let parts = URLComponents(string: text), let scheme = parts.scheme?.lowercased() else { throw .unreadable }
    guard parts.user == nil, parts.password == nil else { throw .hasCredentials }
    guard parts.fragment == nil else { throw .hasFragment }
    guard let host = parts.host, !host.isEmpty else { throw .hasNoHost }
    if let port = parts.port, !(1...65_535).contains(port) { throw .hasBadPort }
    switch scheme {
    case "https": break
    case "http": guard Self.isLoopback(host) else { throw .isPlainHTTP }
    default: throw .hasOtherScheme
    }
    self.text = text
  }

  package var description: String { text }

  /// The URL without slashes at its end, for a path that begins with one.
  package var base: String {
    var base = text
    while base.hasSuffix("/") { base.removeLast() }
    return base
  }

  /// `localhost`, 127.0.0.0/8 (RFC 1122, 3.2.1.3) and ::1 (RFC 4291).
  package static func isLoopback(_ host: String) -> Bool {
    let name = host.lowercased()
    if ["localhost", "[::1]", "::1"].contains(name) { return true }
    let octets = name.split(separator: ".", omittingEmptySubsequences: false)
    return octets.count == 4 && octets[0] == "127" && octets.allSatisfy { UInt8(digits: $0) != nil }
  }
}

extension String {
  /// This text for a query (RFC 3986, 2.3). Cursors contain `+` and `/`, which must be escaped.
  var percentEncoded: String {
    addingPercentEncoding(
      withAllowedCharacters: CharacterSet(
        charactersIn: "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")) ?? ""
  }
}

package enum EndpointURLError: String, Error, CustomStringConvertible {
  case unreadable = "not a URL with a scheme, such as https://example.com/path"
  case hasCredentials = "a URL must not carry a user name or password"
  case hasFragment = "a URL to call must not have a fragment (#…)"
  case hasNoHost = "the URL names no host"
  case hasBadPort = "the URL's port is not between 1 and 65535"
  case hasOtherScheme = "only https URLs are accepted (http on loopback)"
  case isPlainHTTP = "plain http would show secrets to the network: use https (http is for loopback only)"

  package var description: String { rawValue }
}
