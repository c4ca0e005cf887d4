import Foundation

/// URLs without the parts that may be secret: user, password, query and fragment.
package enum ShownURL {
  /// The URL to show. Hidden if it is malformed, or if a slash in the password moved part of it into the path.
  package static func text(_ url: String) -> String {
    guard var parts = URLComponents(string: url), parts.host?.isEmpty == false, !parts.path.contains("@") else {
      return "(hidden: it is not a URL with a host)"
    }
    let (hasUser, hasQuery) = (parts.user != nil || parts.password != nil, parts.query != nil || parts.fragment != nil)
    guard hasUser || hasQuery else { return url }
    (parts.user, parts.password, parts.query, parts.fragment) = (nil, nil, nil, nil)
    return (parts.string ?? "").replacing("://", with: hasUser ? "://…@" : "://", maxReplacements: 1)
      + (hasQuery ? "?…" : "")
  }

  /// The URL of a delivery: only the host with http and https, because the path may hold a token.
  package static func delivery(_ url: String) -> String {
    let isHTTP = ["http", "https"].contains(URLComponents(string: url)?.scheme?.lowercased())
    return isHTTP ? host(url) : text(url)
  }

  package static func host(_ url: String) -> String {
    URLComponents(string: url).flatMap { parts in parts.host.map { "\(parts.scheme ?? "https")://\($0)/…" } }
      ?? "(hidden)"
  }
}
