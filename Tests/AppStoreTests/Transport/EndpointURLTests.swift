import AppStore
import Testing

struct EndpointURLTests {
  @Test(arguments: [
    "https://buy.itunes.apple.com/verifyReceipt", "HTTPS://example.com/path?x=1",
    "https://example.com:8443", "http://localhost:8080/production/verifyReceipt", "http://127.0.0.1:1/x",
    "http://127.200.0.9/x", "http://[::1]:9000/x", "http://LOCALHOST/",
  ])
  func httpsAndLoopbackURLsAreAccepted(text: String) throws {
    #expect(try EndpointURL(text).text == text)
  }

  @Test(arguments: [
    ("http://buy.itunes.apple.com/verifyReceipt", EndpointURLError.isPlainHTTP),
    ("http://127.0.0.1.evil.com/", .isPlainHTTP),
    ("http://128.0.0.1/", .isPlainHTTP), ("http://127.0.0/", .isPlainHTTP), ("http://127.0.0.256/", .isPlainHTTP),
    ("http://127.-0.0.1/", .isPlainHTTP),
    ("http://[::2]/", .isPlainHTTP), ("http://localhost.example.com/", .isPlainHTTP),
    ("ftp://example.com/", .hasOtherScheme),
    ("file:///etc/passwd", .hasNoHost), ("https:///x", .hasNoHost), ("https://", .hasNoHost),
    ("example.com/x", .unreadable),
    ("", .unreadable), ("https://user:secret@example.com/", .hasCredentials), ("http://x@localhost/", .hasCredentials),
    ("https://example.com/#part", .hasFragment), ("https://example.com:0/", .hasBadPort),
    ("https://example.com:70000/", .hasBadPort),
  ])
  func otherURLsAreRefusedWithTheirReason(text: String, reason: EndpointURLError) {
    #expect(throws: reason) { try EndpointURL(text) }
  }

  @Test(arguments: [
    ("https://example.com", "https://example.com"), ("https://example.com/", "https://example.com"),
    ("https://example.com//", "https://example.com"), ("https://example.com/a/b", "https://example.com/a/b"),
    ("https://example.com/a/b/", "https://example.com/a/b"), ("http://[::1]:9000/", "http://[::1]:9000"),
    ("https://example.com/a//b///", "https://example.com/a//b"),
  ])
  func aBaseURLHasNoSlashesAtItsEnd(text: String, base: String) throws {
    #expect(try EndpointURL(text).base == base)
  }
}

struct SecretTests {
  private struct Holder {
    var name = "app"
    var secret = Secret("hush-hush")
  }

  @Test func aSecretIsNeverShown() {
    let holder = Holder()
    var dumped = ""
    dump(holder, to: &dumped)
    let shown = [
      "\(holder)", String(reflecting: holder), "\(holder.secret)", String(describing: [holder.secret]), dumped,
    ]
    for text in shown { #expect(!text.contains("hush")) }
    #expect(holder.secret.reveal() == "hush-hush")
  }
}
