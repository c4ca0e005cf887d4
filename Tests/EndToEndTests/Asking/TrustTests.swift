import Foundation
import TestSupport
import Testing

/// Failures of `night-audit trust`. Certificates that match Apple's pins cannot be made here.
@Suite struct TrustTests {
  @Test(
    arguments: [
      (
        nil,
        [
          "63343abfb89a6a03ebb57e9b3f5fa7be7c4f5c756f3017b3a8c488c3653e9179",
          "https://www.apple.com/certificateauthority/AppleRootCA-G3.cer",
        ]
      ),
      ("http://127.0.0.1:1/apple/", ["http://127.0.0.1:1/apple/AppleRootCA-G3.cer"]),
      // Plain HTTP is for loopback.
      ("http://mirror.example.com/", ["--from"]),
    ] as [(String?, [String])])
  func rootsThatAreNotTrustedOrReachedAreNotInstalled(from mirror: String?, says: [String]) async throws {
    let directory = try TemporaryDirectory()
    let roots = directory.file("roots")
    let file = try directory.write(
      "app: {game: {bundleId: com.example.game}}\nappstore: {rootCertificates: \(roots)}", "config.yaml")
    let result = try await Program.nightAudit.run(
      ["trust", "--config", file, "--from", mirror ?? directory.url.path])
    #expect(result.status == 78 && result.output.isEmpty, "\(result)")
    for text in says { #expect(result.errors.contains(text), "\(result.errors)") }
    #expect(!FileManager.default.fileExists(atPath: roots))
  }
}
