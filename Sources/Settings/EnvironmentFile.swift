import Foundation
import Glibc
import Run

/// `/etc/night-audit/environment`: systemd passes it to a night; cron and manual runs read it here.
package enum EnvironmentFile {
  package static let path = "/etc/night-audit/environment"

  package struct Outcome: Sendable {
    package var source: Settings.Source?
    /// Variables that were set from the file because the process did not have them.
    package var adopted: Set<String> = []
    package var warning: String?

    package init() {}
  }

  /// Sets variables of the file that the process lacks; in the process, because libpq reads them there.
  package static func adopt(_ path: String = path) throws(ConfigurationError) -> Outcome {
    var outcome = Outcome()
    guard access(path, F_OK) == 0 else { return outcome }
    let file: RegularFile
    do throws(RegularFile.Failure) { file = try RegularFile(path) } catch {
      outcome.warning = """
        \(path) \(error.problem), so its settings are missing here; run the command as the user that runs the nights, \
        or give this user read access
        """
      return outcome
    }
    guard let text = String(validating: file.content, as: UTF8.self) else {
      throw ConfigurationError(key: path, problem: "is not UTF-8; save it as UTF-8")
    }
    let assignments = try assignments(in: text, path: path)
    for (name, value) in assignments where getenv(name) == nil {
      setenv(name, value, 1)
      outcome.adopted.insert(name)
    }
    outcome.source = .init(
      path: path, holdsSecret: assignments.contains { SettingKey.isSecret(variable: $0.key, value: $0.value) })
    return outcome
  }

  /// Parses the lines `NAME=value` that a shell and systemd read alike; a later line wins.
  static func assignments(in text: String, path: String) throws(ConfigurationError) -> [String: String] {
    var assignments: [String: String] = [:]
    for (index, line) in text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline).enumerated() {
      let line = line.trimmingCharacters(in: .whitespacesAndNewlines)
      if line.isEmpty || line.hasPrefix("#") || line.hasPrefix(";") { continue }
      guard let equals = line.firstIndex(of: "="), line[..<equals].wholeMatch(of: /[A-Za-z_][A-Za-z0-9_]*/) != nil,
        let value = unquoted(String(line[line.index(after: equals)...]))
      else {
        throw ConfigurationError(
          key: path, problem: "line \(index + 1) is not NAME=value, without blanks around the sign")
      }
      assignments[String(line[..<equals])] = value
    }
    return assignments
  }

  private static func unquoted(_ text: String) -> String? {
    guard let quote = text.first, quote == "\"" || quote == "'" else { return text }
    guard text.count > 1, text.last == quote else { return nil }
    let content = text.dropFirst().dropLast()
    if quote == "'" { return String(content) }
    return String(content).replacing("\\\"", with: "\"").replacing("\\\\", with: "\\")
  }
}
