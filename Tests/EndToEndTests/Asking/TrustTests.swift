import Foundation
import Testing

/// Failures of `night-audit trust`. Certificates that match Apple's pins cannot be made here.
@Suite struct TrustTests {
  private func trust(
    _ directory: TemporaryDirectory, roots: String, _ arguments: String...
  ) async throws -> Program.Result {
    let file = directory.file("config.yaml")
    try "app: {game: {bundleId: com.example.game}}\nappstore: {rootCertificates: \(roots)}"
      .write(toFile: file, atomically: true, encoding: .utf8)
    return try await Program.nightAudit.run(["trust", "--config", file] + arguments)
  }

  @Test func untrustedRootsAreNotInstalled() async throws {
    let directory = try TemporaryDirectory()
    let roots = directory.file("roots")
    let result = try await trust(directory, roots: roots, "--from", directory.url.path)
    #expect(result.status == 78 && result.output.isEmpty)
    #expect(result.errors.contains("63343abfb89a6a03ebb57e9b3f5fa7be7c4f5c756f3017b3a8c488c3653e9179"))
    #expect(result.errors.contains("https://www.apple.com/certificateauthority/AppleRootCA-G3.cer"))
    #expect(!FileManager.default.fileExists(atPath: roots))
  }

  @Test func anUnreachableMirrorIsNamed() async throws {
    let directory = try TemporaryDirectory()
    let result = try await trust(directory, roots: directory.file("roots"), "--from", "http://127.0.0.1:1/apple/")
    #expect(result.status == 78)
    #expect(result.errors.contains("http://127.0.0.1:1/apple/AppleRootCA-G3.cer"), "\(result.errors)")
  }

  @Test func plainHTTPIsForLoopback() async throws {
    let directory = try TemporaryDirectory()
    let result = try await trust(directory, roots: directory.file("roots"), "--from", "http://mirror.example.com/")
    #expect(result.status == 78 && result.errors.contains("--from"), "\(result.errors)")
  }
}
