import Foundation
import TestSupport

/// A loopback server that receives reports: a Python program that writes its port into a file.
final class Receiver {
  let directory: TemporaryDirectory
  let port: Int
  private let running: Program.Running

  /// - Parameter arguments: further arguments, after the output directory and the port file.
  init(_ script: String, _ arguments: [String] = [], python: Program = Program(path: TestTools.python)) async throws {
    directory = try TemporaryDirectory()
    try FileManager.default.createDirectory(atPath: directory.file("got"), withIntermediateDirectories: true)
    running = try python.start(
      [Program.script("Receivers/\(script)"), directory.file("got"), directory.file("port")] + arguments,
      environment: ["PYTHONDONTWRITEBYTECODE": "1"])
    port = try await running.port(in: directory.file("port"))
  }

  /// A web server for monitors and chats.
  static func http(_ arguments: [String] = []) async throws -> Receiver {
    try await Receiver("http_receiver", arguments, python: .python)
  }

  // SIGKILL, because not all Python servers end on SIGTERM.
  deinit { running.kill() }

  func stop() { running.kill() }

  var got: String { directory.file("got") }

  /// The requests of `http`, in order.
  func posts() throws -> [(path: String, body: String)] {
    try FileManager.default.contentsOfDirectory(atPath: got).sorted().map { name in
      let post = try JSONDecoder().decode([String].self, from: Data(contentsOf: URL(filePath: "\(got)/\(name)")))
      return (post[0], post[1])
    }
  }
}

/// Tools that `make test` installs from PyPI (Tests/requirements.txt). Without a network their tests are skipped.
enum TestTools {
  static let python = Repository.tool("python3")

  static var areInstalled: Bool { FileManager.default.isExecutableFile(atPath: python) }
}
