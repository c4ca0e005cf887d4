import Foundation
import Testing

@Suite struct DoctorOnlineTests {
  @Test("doctor --online reports accepted credentials and a refused shared secret")
  func credentials() async throws {
    let shop = try await Rehearsal.sampleShop()
    let connect = """

      appStoreConnect:
        issuerId: 57246542-96fe-1a63-e053-0824d011072a
        keyId: SAMPLE
        privateKeyFile: \(shop.directory.file("shop"))/AuthKey_SAMPLE.p8
        vendorNumbers: ["80012345"]
        url: http://127.0.0.1:\(shop.port)
      """
    let configuration = try shop.configuration() + connect
    try configuration.write(toFile: shop.directory.file("night-audit.yaml"), atomically: true, encoding: .utf8)
    let sound = try await shop.nightAudit("doctor", "--online")
    #expect(sound.status == 0, "\(sound.output)")
    #expect(sound.output.contains("app.game, asked of Apple (the newest app receipt and the shared secret"))
    #expect(sound.output.contains("vendor 80012345, asked of Apple (key, role and vendor number are accepted)"))
    let asked = try shop.requests().count
    #expect((2...4).contains(asked), "\(asked)")

    try "another".write(toFile: shop.directory.file("shop") + "/shared-secret", atomically: false, encoding: .utf8)
    let refused = try await shop.nightAudit("doctor", "--online")
    #expect(refused.status == 78 && refused.output.contains("does not accept the app's shared secret"), "\(refused)")
    let before = try shop.requests().count
    #expect(try await shop.nightAudit("doctor").status == 0)
    #expect(try shop.requests().count == before)
  }

  @Test("a revoked key is reported", arguments: [false, true])
  func serverAPIKey(_ isRevoked: Bool) async throws {
    var app = SignedShop.game
    app.isKeyRevoked = isRevoked
    let shop = try await SignedShop(apps: [app], transactions: [])
    let found = try await shop.nightAudit("doctor", "--online", "--json")
    #expect(found.status == (isRevoked ? 78 : 0), "\(found.output)")
    let said = isRevoked ? "does not accept our token (HTTP 401)" : "(key, issuer and bundle are accepted)"
    #expect(found.output.contains(said), "\(found.output)")
  }

  @Test("a wrong clock and an unreachable Apple are each reported once")
  func clock() async throws {
    let shop = try await Rehearsal.sampleShop()
    // Always answers with a date in 1994.
    let past = #"""
      import http.server, os, sys
      class Handler(http.server.BaseHTTPRequestHandler):
          def do_GET(self):
              self.send_response(405)
              self.end_headers()
          def date_time_string(self, timestamp=None):
              return "Sun, 06 Nov 1994 08:49:37 GMT"
          def log_message(self, *arguments):
              pass
      server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
      with open(sys.argv[1] + ".new", "w") as file:
          file.write(str(server.server_port))
      os.rename(sys.argv[1] + ".new", sys.argv[1])
      server.serve_forever()
      """#
    let portFile = shop.directory.file("past-port")
    let server = try Program(path: "/usr/bin/python3").start(["-c", past, portFile])
    defer { server.kill() }
    let port = try await Rehearsal.port(in: portFile, of: server)
    let late = try await shop.nightAudit(
      "doctor", "--online", "--quiet",
      environment: ["NIGHT_AUDIT_APPSTORE_VERIFY_RECEIPT_URL": "http://127.0.0.1:\(port)/verifyReceipt"])
    #expect(late.status == 78, "\(late.output)")
    #expect(late.output.contains("clock: this host and Apple differ by"), "\(late.output)")
    let gone = try await shop.nightAudit(
      "doctor", "--online", "--quiet",
      environment: ["NIGHT_AUDIT_APPSTORE_VERIFY_RECEIPT_URL": "http://127.0.0.1:1/verifyReceipt"])
    #expect(gone.status == 78, "\(gone.output)")
    #expect(gone.output.split(separator: "\n").filter { $0.contains("PROBLEM") }.count == 1, "\(gone.output)")
    #expect(gone.output.contains("HTTPS_PROXY"), "\(gone.output)")
  }
}
