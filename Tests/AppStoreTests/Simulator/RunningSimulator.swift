import AppStore
import AsyncHTTPClient
import Foundation
import NIOCore
import NIOHTTP1
import Reconciliation

/// A simulator whose certificates are trusted, with a client of its App Store Server API.
struct SigningSimulator {
  let simulator: RunningSimulator
  let roots: TrustedRoots
  let client: ServerAPIClient
  var judge: OfflineJudge { OfflineJudge(roots: roots) }

  private init(_ simulator: RunningSimulator, roots: TrustedRoots) throws {
    (self.simulator, self.roots) = (simulator, roots)
    client = try simulator.client(.test(), roots: roots)
  }

  /// - Parameter makesReceipts: true to sign app receipts and old receipts, which needs RSA keys.
  static func run<Result>(
    _ world: String, makesReceipts: Bool = false, arguments: [String] = [],
    isolation: isolated (any Actor)? = #isolation, body: (SigningSimulator) async throws -> Result
  ) async throws -> Result {
    let directory = FileManager.default.temporaryDirectory.appendingPathComponent("roots-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: directory) }
    let options = ["--root-certificate"] + (makesReceipts ? ["--receipt-root-certificate"] : [])
    let files = options.flatMap { [$0, directory.appendingPathComponent("root\($0).pem").path] }
    return try await RunningSimulator.run(world: world, files + arguments) { simulator in
      let roots = try TrustedRoots(directory: directory.path, pinned: false)
      return try await body(SigningSimulator(simulator, roots: roots))
    }
  }

  func setClock(_ milliseconds: Int64) async throws {
    try await simulator.control("clock", #"{"now":\#(milliseconds)}"#)
  }

  func force(_ faults: String...) async throws {
    try await simulator.control("faults", #"{"force":[\#(faults.joined(separator: ","))]}"#)
  }

  func payload(_ form: String, _ ids: [String], _ more: String = "") async throws -> String {
    let list = ids.map { "\"\($0)\"" }.joined(separator: ",")
    let answer = try await simulator.control("payload", #"{"form":"\#(form)","transactions":[\#(list)]\#(more)}"#)
    return answer["payload"] as? String ?? ""
  }
}

/// The real `app-store-simulator`, built beside the tests, on a free port.
struct RunningSimulator {
  struct Failure: Error, CustomStringConvertible {
    var description: String
  }

  let port: Int
  let process: Process
  private let output: Pipe
  private let exit: AsyncStream<Never>
  let transport: HTTPTransport

  static func run<Result>(
    world: String, _ arguments: [String] = [], isolation: isolated (any Actor)? = #isolation,
    body: (RunningSimulator) async throws -> Result
  ) async throws -> Result {
    let directory = FileManager.default.temporaryDirectory.appendingPathComponent("simulator-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: directory) }
    let worldFile = directory.appendingPathComponent("world.json")
    try Data(world.utf8).write(to: worldFile)
    let simulator = try start(["--world", worldFile.path] + arguments)
    do {
      let result = try await body(simulator)
      await simulator.stop()
      return result
    } catch {
      await simulator.stop()
      throw error
    }
  }

  private static func start(_ arguments: [String]) throws -> RunningSimulator {
    let program = URL(fileURLWithPath: CommandLine.arguments[0]).resolvingSymlinksInPath()
      .deletingLastPathComponent().appendingPathComponent("app-store-simulator")
    guard FileManager.default.isExecutableFile(atPath: program.path) else {
      throw Failure(description: "\(program.path) is missing: swift build --product app-store-simulator")
    }
    let process = Process()
    process.executableURL = program
    process.arguments = arguments
    let output = Pipe()
    process.standardOutput = output
    let (exit, end) = AsyncStream.makeStream(of: Never.self)
    process.terminationHandler = { _ in end.finish() }
    try process.run()
    var line = ""
    while !line.hasSuffix("\n") {
      let data = output.fileHandleForReading.availableData
      guard !data.isEmpty else { throw Failure(description: "the simulator ended without a port: \(line)") }
      line += String(decoding: data, as: UTF8.self)
    }
    guard let port = line.trimmingCharacters(in: .newlines).split(separator: ":").last.flatMap({ Int($0) }) else {
      throw Failure(description: "no port in: \(line)")
    }
    return RunningSimulator(port: port, process: process, output: output, exit: exit, transport: HTTPTransport())
  }

  private func stop() async {
    await transport.shutdown()
    await terminate()
  }

  func terminate() async {
    process.terminate()
    // Not `waitUntilExit`, which blocks a thread: a simulator started at the same time inherits the socket that signals
    // this one's exit, and with all threads blocked that one could not be stopped.
    for await _ in exit {}
    // Foundation keeps its `Process` objects, and with them the pipe.
    try? output.fileHandleForReading.close()
  }

  func client() throws -> VerifyReceiptClient {
    let side = { (name: String) in
      VerifyReceiptClient.Endpoint(
        url: try EndpointURL("http://127.0.0.1:\(port)/\(name)/verifyReceipt"), gate: RateGate(rate: nil))
    }
    return VerifyReceiptClient(
      transport: transport, production: try side("production"), sandbox: try side("sandbox"), version: "test",
      now: { Instant(seconds: 1_795_212_000) })
  }

  /// A client of the App Store Server API whose clock is wrong by `clockError`.
  func client(
    _ credentials: ServerAPICredentials, roots: TrustedRoots, clockError: Span = .seconds(0)
  ) throws -> ServerAPIClient {
    let side = { (name: String) in
      ServerAPIHost(url: try EndpointURL("http://127.0.0.1:\(port)/\(name)"), requestsPerSecond: nil)
    }
    return try ServerAPIClient(
      transport: transport, production: side("production"), sandbox: side("sandbox"), credentials: credentials,
      verifier: JWSVerifier(roots: roots), version: "test",
      now: { Instant(milliseconds: Int64(Date.now.timeIntervalSince1970 * 1_000)) + clockError })
  }

  func verify(_ payload: String, secret: String? = nil, first: AppleHost = .production) async throws -> ReceiptAnswer {
    try await client().verify(payload: payload, sharedSecret: secret.map { Secret($0) }, first: first)
  }

  @discardableResult
  func control(_ path: String, _ body: String? = nil) async throws -> [String: Any] {
    var request = HTTPClientRequest(url: "http://127.0.0.1:\(port)/simulator/\(path)")
    if let body {
      request.method = .POST
      request.body = .bytes(ByteBuffer(string: body))
    }
    let reply = try await transport.send(request).get()
    let fields = try JSONSerialization.jsonObject(with: Data(reply.body.readableBytesView)) as? [String: Any]
    guard reply.status == 200, let fields else { throw Failure(description: "HTTP \(reply.status)") }
    return fields
  }
}
