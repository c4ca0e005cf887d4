import AsyncHTTPClient
import Foundation
import Reconciliation

/// The proxies from `HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY`, also in lower case; never for loopback.
package struct ProxyRules: Hashable, Sendable {
  package struct Proxy: Hashable, Sendable {
    package enum Kind: Hashable, Sendable {
      /// By `CONNECT`.
      case http
      case socks
    }

    package var kind: Kind
    package var host: String
    package var port: Int
    var credentials: Secret?
  }

  package enum Route: Hashable, Sendable {
    case direct
    case proxy(Proxy)
    /// The variable's value is no proxy URL. Requests fail, because they must not bypass an intended proxy.
    case unusable(variable: String)
  }

  package static let none = ProxyRules(environment: [:])
  package static let ofThisProcess = ProxyRules(environment: ProcessInfo.processInfo.environment)

  private let routes: [String: Route]
  private let exceptions: [Exception]

  package init(environment: [String: String]) {
    let value = { (name: String) -> (name: String, text: String)? in
      for name in [name.lowercased(), name] {
        if let text = environment[name]?.trimmingCharacters(in: .whitespaces), !text.isEmpty { return (name, text) }
      }
      return nil
    }
    var routes: [String: Route] = [:]
    for (scheme, name) in [("https", "HTTPS_PROXY"), ("http", "HTTP_PROXY")] {
      guard let (name, text) = value(name) else { continue }
      routes[scheme] = Proxy(text).map(Route.proxy) ?? .unusable(variable: name)
    }
    self.routes = routes
    exceptions = (value("NO_PROXY")?.text ?? "").split(separator: ",").compactMap { Exception(String($0)) }
  }

  var everyRoute: Set<Route> { Set(routes.values).union([.direct]) }

  package func route(to url: String) -> Route {
    guard let parts = URLComponents(string: url), let scheme = parts.scheme?.lowercased(), let host = parts.host,
      let route = routes[scheme]
    else { return .direct }
    let name = host.lowercased().trimmingCharacters(in: CharacterSet(charactersIn: "[]"))
    let port = parts.port ?? (scheme == "https" ? 443 : 80)
    guard !EndpointURL.isLoopback(name), !exceptions.contains(where: { $0.covers(name, port: port) }) else {
      return .direct
    }
    return route
  }

  /// An entry of `NO_PROXY`: `*`, an address, or a domain with its subdomains, each with an optional port.
  private struct Exception: Hashable {
    private let name: String
    private let port: Int?

    init?(_ entry: String) {
      var name = entry.trimmingCharacters(in: .whitespaces).lowercased()
      var port: Int?
      // More than one colon means an IPv6 address.
      if let colon = name.lastIndex(of: ":"), name.firstIndex(of: ":") == colon || name.hasPrefix("[") {
        if let number = Int(digits: name[name.index(after: colon)...]) {
          port = number
          name = String(name[..<colon])
        }
      }
      name = name.trimmingCharacters(in: CharacterSet(charactersIn: "[]"))
      if name.hasPrefix("*.") { name.removeFirst() }
      while name.hasPrefix(".") { name.removeFirst() }
      guard !name.isEmpty else { return nil }
      (self.name, self.port) = (name, port)
    }

    func covers(_ host: String, port: Int) -> Bool {
      guard self.port == nil || self.port == port else { return false }
      return name == "*" || host == name || host.hasSuffix(".\(name)")
    }
  }
}

extension ProxyRules.Proxy {
  /// Parses `http://user:password@host:port`; the scheme, `http` or `socks5`, and the port are optional.
  fileprivate init?(_ text: String) {
    guard let parts = URLComponents(string: text.contains("://") ? text : "http://\(text)"), let host = parts.host,
      !host.isEmpty, parts.port.map({ (1...65_535).contains($0) }) ?? true
    else { return nil }
    switch parts.scheme?.lowercased() {
    case "http":
      kind = .http
      port = parts.port ?? 80
    case "socks5", "socks5h":
      guard parts.user == nil else { return nil }
      kind = .socks
      port = parts.port ?? 1_080
    default: return nil
    }
    self.host = host.trimmingCharacters(in: CharacterSet(charactersIn: "[]"))
    credentials = parts.user.map { Secret("\($0):\(parts.password ?? "")") }
  }

  var configuration: HTTPClient.Configuration.Proxy {
    switch kind {
    case .http:
      .server(
        host: host, port: port,
        authorization: credentials.map { .basic(credentials: Data($0.reveal().utf8).base64EncodedString()) })
    case .socks: .socksServer(host: host, port: port)
    }
  }
}
