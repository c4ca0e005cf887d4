import Foundation
import Synchronization
import TestSupport
import Testing

/// Programs as users run them, from the build folder of this test program.
struct Program {
  struct Result {
    var status: Int32
    var output: String
    var errors: String

    /// The JSON document of the output.
    func json() throws -> [String: Any] { try document() }

    func document<Document>(_ type: Document.Type = Document.self) throws -> Document {
      try #require(try JSONSerialization.jsonObject(with: Data(output.utf8)) as? Document, "\(self)")
    }
  }

  let executable: URL

  init(path: String) { executable = URL(fileURLWithPath: path) }

  init(_ name: String) {
    let tests = URL(fileURLWithPath: CommandLine.arguments[0]).resolvingSymlinksInPath()
    executable = tests.deletingLastPathComponent().appendingPathComponent(name)
  }

  static let nightAudit = Program("night-audit")
  static let simulator = Program("app-store-simulator")
  /// Debian installs openpyxl for its own Python only, which may not be the first in `PATH`.
  static let python = Program(path: "/usr/bin/python3")

  /// The path of a program of the folder `Programs`.
  static func script(_ name: String) -> String {
    Repository.root.appending(path: "Tests/EndToEndTests/Programs/\(name).py").path
  }

  /// Runs a program of the folder `Programs`, and returns its output. Throws if it fails.
  @discardableResult
  static func runScript(_ name: String, python: Program = .python, _ arguments: String...) async throws -> Result {
    let result = try await python.run([script(name)] + arguments)
    guard result.status == 0 else { throw Failure(result.errors) }
    return result
  }

  struct Failure: Error, CustomStringConvertible {
    var description: String
    init(_ description: String) { self.description = description }
  }

  /// Runs to the end. Output goes through files, so that no full pipe can block the program.
  func run(_ arguments: [String], environment: [String: String] = [:]) async throws -> Result {
    let running = try start(arguments, environment: environment)
    return await running.finish()
  }

  func measured(
    _ arguments: [String], environment: [String: String] = [:]
  ) async throws -> (result: Result, peak: Int) {
    let directory = try TemporaryDirectory()
    let script = """
      import os, resource, subprocess, sys
      status = subprocess.call(sys.argv[2:])
      with open(sys.argv[1], "w") as file:
          file.write(str(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss))
      sys.exit(status if status >= 0 else 128 - status)
      """
    let result = try await Program.python.run(
      ["-c", script, directory.file("peak"), executable.path] + arguments, environment: environment)
    let peak = try String(contentsOfFile: directory.file("peak"), encoding: .utf8)
    return (result, (Int(peak) ?? .max >> 10) << 10)
  }

  func start(_ arguments: [String], environment: [String: String] = [:]) throws -> Running {
    let directory = try TemporaryDirectory()
    let output = directory.file("output")
    let errors = directory.file("errors")
    for file in [output, errors] { try Data().write(to: URL(fileURLWithPath: file)) }
    let process = Process()
    process.executableURL = executable
    process.arguments = arguments
    process.currentDirectoryURL = directory.url
    process.environment = ProcessInfo.processInfo.environment.filter { !$0.key.hasPrefix("NIGHT_AUDIT_") }
      .merging(Program.waitLimit(arguments)) { $1 }.merging(environment) { $1 }
    process.standardInput = FileHandle.nullDevice
    let handles = try [output, errors].map { try FileHandle(forWritingTo: URL(fileURLWithPath: $0)) }
    // Foundation would keep the files open, and a server with a thousand inherited descriptors does not start.
    defer { for handle in handles { try? handle.close() } }
    process.standardOutput = handles[0]
    process.standardError = handles[1]
    let (ended, bell) = AsyncStream.makeStream(of: Int32.self)
    process.terminationHandler = { process in
      Program.unfinished.withLock { _ = $0.remove(process.processIdentifier) }
      bell.yield(process.terminationReason == .exit ? process.terminationStatus : 128 + process.terminationStatus)
      bell.finish()
    }
    try process.run()
    Program.unfinished.withLock { _ = $0.insert(process.processIdentifier) }
    _ = Program.killsUnfinished
    return Running(process: process, ended: ended, directory: directory, output: output, errors: errors)
  }

  /// Programs of shared fixtures, which are never released, run until the tests end.
  private static let unfinished = Mutex<Set<pid_t>>([])
  private static let killsUnfinished = atexit {
    // 0: still a running child.
    for process in Program.unfinished.withLock({ $0 }) where waitpid(process, nil, WNOHANG) == 0 {
      Foundation.kill(process, SIGKILL)
    }
  }

  /// Test nights may be ahead of this machine's clock, and a run rejects an as-of beyond the clock skew.
  private static func waitLimit(_ arguments: [String]) -> [String: String] {
    guard let option = arguments.firstIndex(of: "--as-of"), arguments.indices.contains(option + 1),
      let asOf = try? Date(arguments[option + 1], strategy: .iso8601), asOf > .now
    else { return [:] }
    return ["NIGHT_AUDIT_AUDIT_CLOCK_SKEW": "30d"]
  }

  struct Running {
    let process: Process
    fileprivate let ended: AsyncStream<Int32>
    fileprivate let directory: TemporaryDirectory
    fileprivate let output: String
    fileprivate let errors: String

    /// SIGKILL, because Foundation starts programs with the thread's signal mask, which may block SIGTERM.
    func kill() { if process.isRunning { Foundation.kill(process.processIdentifier, SIGKILL) } }

    func finish() async -> Result {
      var status: Int32 = -1
      for await value in ended { status = value }
      return Result(
        status: status, output: (try? String(contentsOfFile: output, encoding: .utf8)) ?? "",
        errors: (try? String(contentsOfFile: errors, encoding: .utf8)) ?? "")
    }

    /// Returns the port that the program writes into the file as soon as it listens.
    func port(in file: String) async throws -> Int {
      while process.isRunning {
        if let text = try? String(contentsOfFile: file, encoding: .utf8),
          let port = Int(text.trimmingCharacters(in: .whitespacesAndNewlines))
        {
          return port
        }
        await pause()
      }
      throw Failure(await finish().errors)
    }
  }
}

/// Pauses a test that waits for a program. A busy loop would take a core from the program.
func pause() async { try? await Task.sleep(for: .milliseconds(2)) }
