import Foundation
import TestSupport
import Testing

@Suite struct DoctorOnlineTests {
  @Test("doctor --online reports accepted credentials and a refused shared secret")
  func credentials() async throws {
    let shop = try await Rehearsal.sampleShop(simulator: [])
    try shop.configure(shop.connectSection)
    let sound = try await shop.nightAudit("doctor", "--online", exits: [0])
    #expect(sound.output.contains("app.game, asked of Apple (the newest app receipt and the shared secret"))
    #expect(sound.output.contains("vendor 80012345, asked of Apple (key, role and vendor number are accepted)"))
    let asked = try shop.requests()
    #expect((2...4).contains(asked), "\(asked)")

    try shop.directory.write("another", "shop/shared-secret")
    try await shop.nightAudit(
      "doctor", "--online", exits: [78], says: "does not accept the app's shared secret")
    let before = try shop.requests()
    try await shop.nightAudit("doctor", exits: [0])
    #expect(try shop.requests() == before)
  }

  @Test(
    "a revoked key is reported",
    arguments: [
      (false, 0, "(key, issuer and bundle are accepted)"), (true, 78, "does not accept our token (HTTP 401)"),
    ] as [(Bool, Int32, String)])
  func serverAPIKey(_ isRevoked: Bool, status: Int32, says text: String) async throws {
    var app = SignedShop.game
    app.isKeyRevoked = isRevoked
    let shop = try await SignedShop(apps: [app], transactions: [])
    try await shop.nightAudit("doctor", "--online", "--json", exits: [status], says: text)
  }

  @Test("a wrong clock and an unreachable Apple are each reported once")
  func clock() async throws {
    let shop = try await Rehearsal.unchanged.value
    let past = try await Receiver.http(["Sun, 06 Nov 1994 08:49:37 GMT"])
    defer { past.stop() }
    func doctor(port: Int) async throws -> String {
      try await shop.nightAudit(
        "doctor", "--online", "--quiet",
        environment: ["NIGHT_AUDIT_APPSTORE_VERIFY_RECEIPT_URL": "http://127.0.0.1:\(port)/verifyReceipt"],
        exits: [78]
      ).output
    }
    let late = try await doctor(port: past.port)
    #expect(late.contains("clock: this host is ") && late.contains(" s ahead of Apple"), "\(late)")
    let gone = try await doctor(port: 1)
    #expect(gone.split(separator: "\n").filter { $0.contains("PROBLEM") }.count == 1, "\(gone)")
    #expect(gone.contains("HTTPS_PROXY"), "\(gone)")
  }
}
