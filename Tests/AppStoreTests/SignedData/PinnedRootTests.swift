import Foundation
import NIOHTTP1
import Reconciliation
import SwiftASN1
import Testing
import X509

@testable import AppStore

private typealias Authority = TestCertificateAuthority

/// A pin of a test certificate, because only Apple has certificates for its own pins.
private func pin(_ certificate: [UInt8], address: String = "https://example.com/a/Root.cer") -> TrustedRoots.PinnedRoot
{
  TrustedRoots.PinnedRoot(name: "Test Root", fingerprint: TrustedRoots.fingerprint(certificate), address: address)
}

@Suite("Pinned root certificates")
struct PinnedRootTests {
  @Test("A pinned root is accepted as DER and PEM, and returned as DER")
  func acceptsBothForms() throws {
    let root = Authority.transactions.root
    let pin = try pin(root.der)
    let pem = try root.certificate.serializeAsPEM().pemString
    #expect(try pin.certificate(in: root.der) == root.der)
    #expect(try pin.certificate(in: Array(pem.utf8)) == root.der)
    #expect(try pin.certificate(in: Array("subject=Test\n\(pem)\n".utf8)) == root.der)
  }

  @Test("Other content is refused")
  func refusesOthers() throws {
    let root = try Authority.transactions.root.der
    let other = try Authority().root
    let pin = pin(root)
    typealias Mismatch = TrustedRoots.PinnedRoot.Mismatch
    let another = Mismatch.otherCertificate(fingerprint: TrustedRoots.fingerprint(try other.der))
    #expect(throws: another) { try pin.certificate(in: other.der) }
    #expect(throws: another) { try pin.certificate(in: Array(other.certificate.serializeAsPEM().pemString.utf8)) }
    let longer = Mismatch.otherCertificate(fingerprint: TrustedRoots.fingerprint(root + [0]))
    #expect(throws: longer) { try pin.certificate(in: root + [0]) }
    for content in ["", "<html>moved</html>", "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----"] {
      #expect(throws: Mismatch.noCertificate) { try pin.certificate(in: Array(content.utf8)) }
    }
    let both =
      try Authority.transactions.root.certificate.serializeAsPEM().pemString + "\n"
      + other.certificate.serializeAsPEM().pemString
    #expect(throws: Mismatch.noCertificate) { try pin.certificate(in: Array(both.utf8)) }
    #expect(throws: Mismatch.tooLong) { try pin.certificate(in: [UInt8](repeating: 0x30, count: 100_000)) }
  }

  @Test("Apple's pins refuse every other root")
  func refusesOursAsApples() throws {
    for pin in TrustedRoots.applePins {
      #expect(pin.fingerprint.count == 64 && pin.address.hasPrefix("https://www.apple.com/"))
      #expect(throws: TrustedRoots.PinnedRoot.Mismatch.self) {
        try pin.certificate(in: Authority.transactions.root.der)
      }
    }
    #expect(TrustedRoots.applePins.map(\.fileName) == ["AppleRootCA-G3.cer", "AppleIncRootCertificate.cer"])
  }
}

@Suite("Download of root certificates", .timeLimit(.minutes(10)))
struct RootCertificateDownloadTests {
  private let pin = TrustedRoots.PinnedRoot(
    name: "Test Root", fingerprint: "00", address: "https://example.com/certificates/Root.cer")

  private func content(
    _ reply: ScriptedServer.Reply, timeout: Span = .seconds(30)
  ) async throws -> (Result<[UInt8], Silence>, [ScriptedServer.Request]) {
    try await ScriptedServer.run(["/mirror/Root.cer": [reply]]) { server, port in
      let transport = HTTPTransport(timeout: timeout)
      let download = RootCertificateDownload(
        transport: transport, mirror: try EndpointURL("http://127.0.0.1:\(port)/mirror"), version: "9.9")
      let content = try await download.content(of: pin)
      await transport.shutdown()
      return (content, server.requests)
    }
  }

  @Test("The request has Apple's file name, and the content is returned")
  func fetches() async throws {
    let (content, requests) = try await content(.http(200, [1, 2, 3]))
    #expect(content == .success([1, 2, 3]))
    #expect(requests.map(\.method) == ["GET"] && requests[0].headers["User-Agent"] == ["night-audit/9.9"])
  }

  @Test(
    "A failed download states its reason",
    arguments: [
      (ScriptedServer.Reply.http(404, []), "HTTP 404"), (.http(503, []), "HTTP 503"),
      (.http(302, [], headers: ["Location": "http://127.0.0.1/elsewhere"]), "HTTP 302"),
      (
        .bytesThenEnd(Array("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort".utf8)),
        "connection closed within the answer"
      ),
    ])
  func fails(reply: ScriptedServer.Reply, reason: String) async throws {
    guard case .failure(let silence) = try await content(reply).0 else {
      Issue.record("the content was returned")
      return
    }
    #expect(silence.detail == reason)
  }

  @Test("Without a mirror, Apple's addresses are used")
  func asksApple() async {
    let transport = HTTPTransport()
    let download = RootCertificateDownload(transport: transport, mirror: nil, version: "9.9")
    #expect(TrustedRoots.applePins.map(download.address) == TrustedRoots.applePins.map(\.address))
    await transport.shutdown()
  }
}
