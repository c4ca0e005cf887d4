import AppStore
import Foundation
import Run

/// Reads secrets, which are only in files: never in flags, never logged.
package enum SecretFile {
  package static func read(_ path: String, key: String) throws(ConfigurationError) -> Secret {
    let file: RegularFile
    do throws(RegularFile.Failure) { file = try RegularFile(path) } catch {
      throw ConfigurationError(
        key: key,
        problem: """
          \(shown(path)) cannot be read: it \(error.problem); create it, owned by the user that runs night-audit, mode 0600
          """)
    }
    guard let text = String(validating: file.content, as: UTF8.self) else {
      throw ConfigurationError(key: key, problem: "\(shown(path)) is not text; put the secret into it as it was given")
    }
    let trimmed = text.trimmingCharacters(in: .whitespacesAndNewlines)
    guard !trimmed.isEmpty else {
      throw ConfigurationError(key: key, problem: "\(shown(path)) is empty; put the key into it")
    }
    return Secret(trimmed)
  }

  /// Returns a path for display, or a placeholder. The configured value may be the secret itself.
  package static func shown(_ path: String) -> String {
    let isPath = ["/", "./", "../", "~"].contains { path.hasPrefix($0) }
    let isPlain = path.utf8.count <= 255 && path.unicodeScalars.allSatisfy { $0.properties.generalCategory != .control }
    if isPath, isPlain { return path }
    // A bare name is a path if the file exists in the working directory.
    if isPlain, FileManager.default.fileExists(atPath: path) { return path }
    return "(a value that is not a path, not shown because it may be the secret itself)"
  }
}
