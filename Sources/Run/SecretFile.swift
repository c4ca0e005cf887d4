import AppStore
import Foundation

/// Secrets are files: never flags, never logged.
package enum SecretFile {
  /// What a key file holds, without the line break at its end.
  package static func read(_ path: String, key: String) throws(ConfigurationError) -> Secret {
    guard let text = try? String(contentsOfFile: path, encoding: .utf8) else {
      throw ConfigurationError(key: key, problem: "\(path) cannot be read; check that it exists and who may read it")
    }
    let trimmed = text.trimmingCharacters(in: .whitespacesAndNewlines)
    guard !trimmed.isEmpty else { throw ConfigurationError(key: key, problem: "\(path) is empty") }
    return Secret(trimmed)
  }
}
