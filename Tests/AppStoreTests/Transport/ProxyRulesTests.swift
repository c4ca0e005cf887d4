import AsyncHTTPClient
import Foundation
import NIOHTTP1
import Testing

@testable import AppStore

struct ProxyRulesTests {
  private static let apple = "https://api.storekit.apple.com/inApps/v1/transactions/1"

  private func route(_ environment: [String: String], to url: String = apple) -> String {
    switch ProxyRules(environment: environment).route(to: url) {
    case .direct: "direct"
    case .proxy(let proxy):
      "\(proxy.kind) \(proxy.host):\(proxy.port)\(proxy.credentials == nil ? "" : " with credentials")"
    case .unusable(let variable): "unusable \(variable)"
    }
  }

  @Test(arguments: [
    ("http://proxy.example.com:3128", "http proxy.example.com:3128"),
    ("proxy.example.com:3128", "http proxy.example.com:3128"),
    ("http://proxy.example.com", "http proxy.example.com:80"), ("http://[::1]:3128/", "http ::1:3128"),
    ("http://me:secret@proxy.example.com:3128", "http proxy.example.com:3128 with credentials"),
    ("socks5://proxy.example.com", "socks proxy.example.com:1080"), (" ", "direct"), ("", "direct"),
    ("https://proxy.example.com:3128", "unusable HTTPS_PROXY"), ("http://", "unusable HTTPS_PROXY"),
    ("proxy.example.com:99999", "unusable HTTPS_PROXY"), ("://", "unusable HTTPS_PROXY"),
    ("socks5://me:secret@proxy.example.com", "unusable HTTPS_PROXY"),
  ])
  func everyFormOfAProxysAddressIsRead(text: String, expected: String) {
    #expect(route(["HTTPS_PROXY": text]) == expected)
  }

  @Test func theRequestSchemeSelectsTheProxy() {
    let both = ["HTTPS_PROXY": "a:1", "HTTP_PROXY": "b:2"]
    #expect(route(both) == "http a:1")
    #expect(route(both, to: "http://example.com/") == "http b:2")
    #expect(route(["HTTP_PROXY": "b:2"]) == "direct")
    #expect(route(["https_proxy": "c:3", "HTTPS_PROXY": "a:1"]) == "http c:3")
  }

  @Test(arguments: [
    ("api.storekit.apple.com", true), ("apple.com", true), (".apple.com", true), ("*.apple.com", true), ("*", true),
    ("example.com, apple.com", true), ("APPLE.COM", true), ("apple.com:443", true), ("apple.com:8443", false),
    ("apple.com:+443", false),
    ("ple.com", false), ("storekit", false), ("com.apple", false), (",", false), ("", false),
  ])
  func noProxyNamesHostsDomainsAndPorts(list: String, isDirect: Bool) {
    #expect((route(["HTTPS_PROXY": "a:1", "NO_PROXY": list]) == "direct") == isDirect)
    #expect((route(["HTTPS_PROXY": "a:1", "no_proxy": list]) == "direct") == isDirect)
  }

  @Test(arguments: ["http://127.0.0.1:8080/", "https://localhost/", "http://[::1]:1/", "http://127.9.9.9/"])
  func loopbackRequestsBypassTheProxy(url: String) {
    #expect(route(["HTTPS_PROXY": "a:1", "HTTP_PROXY": "a:1"], to: url) == "direct")
  }

  @Test func secretsOfAProxyAreNotShown() {
    let rules = ProxyRules(environment: ["HTTPS_PROXY": "http://me:hunter2@a:1"])
    var text = "\(rules.route(to: Self.apple))"
    dump(rules, to: &text)
    #expect(!text.contains("hunter2"))
  }

  @Test(.timeLimit(.minutes(10))) func everyCallGoesThroughTheProxy() async throws {
    try await ScriptedServer.run(["api.storekit.apple.com:443": [.http(502, [])]]) { proxy, port in
      let transport = HTTPTransport(
        proxies: ProxyRules(environment: ["HTTPS_PROXY": "http://me:secret@127.0.0.1:\(port)"]))
      // Repeated, because on a loaded machine the connect timeout may pass before the proxy reads.
      repeat {
        let result = try await transport.send(HTTPClientRequest(url: Self.apple))
        guard case .failure(let silence) = result, silence.reason == .unreachable else {
          Issue.record("\(result)")
          break
        }
      } while proxy.requests.isEmpty
      await transport.shutdown()
      let request = try #require(proxy.requests.first)
      #expect((request.method, request.path) == ("CONNECT", "api.storekit.apple.com:443"))
      #expect(request.headers["Proxy-Authorization"] == ["Basic bWU6c2VjcmV0"])
    }
  }

  @Test(.timeLimit(.minutes(10))) func requestsDoNotBypassAnUnusableProxy() async throws {
    let transport = HTTPTransport(proxies: ProxyRules(environment: ["https_proxy": "ftp://x"]))
    let result = try await transport.send(HTTPClientRequest(url: Self.apple))
    await transport.shutdown()
    guard case .failure(let silence) = result, silence.reason == .unreachable else {
      Issue.record("\(result)")
      return
    }
    #expect(silence.detail.hasPrefix("https_proxy is not a proxy's address"))
  }
}
