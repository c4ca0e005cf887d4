import Foundation

/// A new directory that is removed with its last reference.
package final class TemporaryDirectory: Sendable {
  package let url: URL
  package var path: String { url.path }

  package init() throws {
    url = FileManager.default.temporaryDirectory.appendingPathComponent("night-audit-test-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
  }

  deinit { try? FileManager.default.removeItem(at: url) }

  package func file(_ name: String) -> String { url.appendingPathComponent(name).path }

  /// Writes a file that only its owner may read, unless `mode` says otherwise; returns its path.
  @discardableResult
  package func write(_ text: String, _ name: String, mode: Int = 0o600) throws -> String {
    try text.write(toFile: file(name), atomically: true, encoding: .utf8)
    try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: file(name))
    return file(name)
  }
}

/// Runs `body` with the path of a new directory, which is removed afterwards.
package func withTemporaryDirectory<Result>(_ body: (String) throws -> Result) throws -> Result {
  let directory = try TemporaryDirectory()
  return try withExtendedLifetime(directory) { try body(directory.path) }
}
