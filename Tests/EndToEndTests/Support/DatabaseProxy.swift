import Foundation
import TestSupport

/// A proxy to the database that counts what a program sends. At a given count it kills, signals, pauses or cuts off the
/// program, or ends one connection at one message; no clock is needed.
final class DatabaseProxy {
  /// A message of the protocol (PostgreSQL, "Message Formats"). `>Q` is a query, `<Z` ReadyForQuery, `>` the startup.
  struct Message: CustomStringConvertible {
    var kind: String
    var number: Int
    var isHalf: Bool

    var description: String { "\(isHalf ? "within" : "before") the \(number). \(kind)" }
  }

  enum Ending: String {
    /// SIGKILL to the sender.
    case kill
    case terminate
    case hangUp
    /// Notifies the test and holds everything until `goOn`.
    case hold
    /// Forwards nothing more, in either direction; connections stay open.
    case stall
  }

  private let directory: TemporaryDirectory
  private let running: Program.Running
  let conninfo: String

  /// - Parameter last: the count of the first message that is not forwarded; 0: forwards everything.
  init(to conninfo: String, _ ending: Ending = .kill, at last: Int = 0, cut: Message? = nil) async throws {
    directory = try TemporaryDirectory()
    let host = conninfo.split(separator: " ").first { $0.hasPrefix("host=") }?.dropFirst(5) ?? ""
    running = try Program.python.start([
      Program.script("database_proxy"), directory.file(".s.PGSQL.5432"), "\(host)/.s.PGSQL.5432", ending.rawValue,
      "\(last)", directory.file("count"), cut?.kind ?? "", "\(cut?.number ?? 0)", cut?.isHalf == true ? "half" : "",
    ])
    self.conninfo = conninfo.replacing("host=\(host)", with: "host=\(directory.url.path)")
    while !FileManager.default.fileExists(atPath: directory.file("count")) {
      guard running.process.isRunning else { throw Program.Failure(await running.finish().errors) }
      await pause()
    }
  }

  func stop() { running.kill() }

  deinit { stop() }

  var count: Int {
    let text = try? String(contentsOfFile: directory.file("count"), encoding: .utf8)
    return text.flatMap { Int($0.trimmingCharacters(in: .whitespacesAndNewlines)) } ?? 0
  }

  func goOn() throws { try Data().write(to: URL(fileURLWithPath: directory.file("count.go"))) }

  func messages() async throws -> [String: Int] {
    while true {
      let kinds = try JSONDecoder().decode(
        [String: Int].self, from: Data(contentsOf: URL(fileURLWithPath: directory.file("count.kinds"))))
      if kinds["begun"] == kinds["ended"] { return kinds }
      await pause()
    }
  }

  func total() async throws -> Int {
    _ = try await messages()
    return count
  }
}
