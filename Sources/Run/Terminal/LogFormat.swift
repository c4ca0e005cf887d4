import Foundation
import Logging
import Reconciliation

/// `--log-format`: the format of log lines on standard error.
package enum LogFormat: String, CaseIterable, Sendable {
  case text
  /// `key=value`, which Loki and Splunk parse by default.
  case logfmt
  case json

  package func logger(_ level: Logger.Level, write: @escaping @Sendable (String) -> Void) -> Logger {
    var logger = Logger(label: "night-audit") { _ in LineLogHandler(format: self, write: write) }
    logger.logLevel = level
    return logger
  }
}

struct LineLogHandler: LogHandler {
  let format: LogFormat
  let write: @Sendable (String) -> Void
  var logLevel = Logger.Level.info
  var metadata: Logger.Metadata = [:]

  subscript(metadataKey key: String) -> Logger.Metadata.Value? {
    get { metadata[key] }
    set { metadata[key] = newValue }
  }

  func log(event: LogEvent) {
    let all = metadata.merging(event.metadata ?? [:]) { $1 }.sorted { $0.key < $1.key }.map { ($0.key, "\($0.value)") }
    let fields = [
      ("time", Date().formatted(Date.ISO8601FormatStyle(includingFractionalSeconds: true))),
      ("level", event.level.rawValue), ("message", "\(event.message)"),
    ]
    write(LineLogHandler.line(fields + all, format) + "\n")
  }

  static func line(_ fields: [(String, String)], _ format: LogFormat) -> String {
    switch format {
    case .json: "{" + fields.map { "\(quoted($0.0)):\(quoted($0.1))" }.joined(separator: ",") + "}"
    case .text:
      // Unicode stays readable, but no text can forge a line or control a terminal.
      (fields.prefix(3).map(\.1).joined(separator: " ") + fields.dropFirst(3).map { " \($0.0)=\($0.1)" }.joined())
        .escapedForDisplay.replacing("\n", with: "\\n")
    case .logfmt: fields.map { "\($0.0)=\(isBare($0.1) ? $0.1 : quoted($0.1))" }.joined(separator: " ")
    }
  }

  private static func isBare(_ text: String) -> Bool {
    !text.isEmpty
      && text.unicodeScalars.allSatisfy { $0.value > 0x20 && $0.value < 0x7F && $0 != "\"" && $0 != "=" && $0 != "\\" }
  }

  // A JSON string in ASCII, so that no text can control a terminal.
  private static func quoted(_ text: String) -> String {
    var result = "\""
    for unit in text.utf16 {
      switch unit {
      case 0x22: result += "\\\""
      case 0x5C: result += "\\\\"
      case 0x0A: result += "\\n"
      case 0x20..<0x7F: result.unicodeScalars.append(Unicode.Scalar(UInt8(unit)))
      default:
        result += "\\u" + String(repeating: "0", count: 4 - String(unit, radix: 16).count) + String(unit, radix: 16)
      }
    }
    return result + "\""
  }
}
