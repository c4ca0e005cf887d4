import Foundation

/// What may be shown of a URL: neither user and password nor query and fragment, any of which may be a secret.
enum ShownURL {
  /// Nothing of what is no URL, or of one whose password has moved into its path because of a slash in it.
  static func text(_ url: String) -> String {
    guard var parts = URLComponents(string: url), parts.host?.isEmpty == false, !parts.path.contains("@") else {
      return "(hidden: it is no URL with a host)"
    }
    let (hasUser, hasQuery) = (parts.user != nil || parts.password != nil, parts.query != nil || parts.fragment != nil)
    guard hasUser || hasQuery else { return url }
    (parts.user, parts.password, parts.query, parts.fragment) = (nil, nil, nil, nil)
    return (parts.string ?? "").replacing("://", with: hasUser ? "://…@" : "://", maxReplacements: 1)
      + (hasQuery ? "?…" : "")
  }

  /// The address of a delivery: of http and https the host alone, because a path may hold a token.
  static func delivery(_ url: String) -> String {
    let isHTTP = ["http", "https"].contains(URLComponents(string: url)?.scheme?.lowercased())
    return isHTTP ? host(url) : text(url)
  }

  /// Where the path is the secret: the host alone.
  static func host(_ url: String) -> String {
    URLComponents(string: url).flatMap { parts in parts.host.map { "\(parts.scheme ?? "https")://\($0)/…" } }
      ?? "(hidden)"
  }
}
