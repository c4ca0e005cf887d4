import Foundation
import HTTPTypes
import HummingbirdCore
import Logging
import NIOCore
import NIOPosix
import UnixSignals

struct SimulatorServer: Sendable {
  let simulator: Simulator
  let port: Int

  private struct ConnectionCut: Error {}

  /// Serves until SIGTERM or SIGINT. `onReady` receives the port once connections are accepted.
  func run(onReady: @escaping @Sendable (Int) throws -> Void) async throws {
    let signals = await UnixSignalsSequence(trapping: .sigterm, .sigint)
    let (ready, readiness) = AsyncStream.makeStream(of: Int.self)
    let server = Server(
      childChannelSetup: HTTP1Channel { request, writer, _ in try await respond(to: request, with: writer) },
      configuration: ServerConfiguration(address: .hostname("127.0.0.1", port: port), backlog: 4_096),
      onServerRunning: { channel in
        readiness.yield(channel.localAddress?.port ?? 0)
        readiness.finish()
      },
      eventLoopGroup: MultiThreadedEventLoopGroup.singleton,
      logger: Logger(label: "app-store-simulator") { _ in SwiftLogNoOpLogHandler() })
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask { try await server.run() }
      group.addTask {
        for await port in ready { try onReady(port) }
        for await _ in signals { break }
        throw CancellationError()
      }
      // The first to end cancels the other; delayed answers are dropped.
      do { try await group.next() } catch is CancellationError {}
      group.cancelAll()
    }
  }

  private func respond(to request: Request, with writer: consuming ResponseWriter) async throws {
    let body = Data(try await request.body.collect(upTo: 64 << 20).readableBytesView)
    var answer = try await answer(to: request, body: body)
    if request.headers[.acceptEncoding]?.contains("gzip") ?? false { answer = answer.compressed }
    var fields = HTTPFields()
    for (name, value) in answer.headers {
      if let name = HTTPField.Name(name) { fields[name] = value }
    }
    fields[.contentLength] = "\(answer.body.count)"
    let head = HTTPResponse(status: .init(code: answer.httpStatus), headerFields: fields)
    guard answer.isCutOff else {
      try await writer.write(response: head, body: ResponseBody(byteBuffer: ByteBuffer(bytes: answer.body)))
      return
    }
    var bodyWriter = try await writer.writeHead(head)
    try await bodyWriter.write(ByteBuffer(bytes: answer.body.prefix(answer.body.count / 2)))
    throw ConnectionCut()
  }

  private func answer(to request: Request, body: Data) async throws -> Answer {
    let path = request.uri.path
    switch path {
    case "/production/verifyReceipt":
      return try await verifyReceipt(.production, path: path, isPost: request.method == .post, body: body)
    case "/sandbox/verifyReceipt":
      return try await verifyReceipt(.sandbox, path: path, isPost: request.method == .post, body: body)
    case let path where path.hasPrefix("/production/inApps/") || path.hasPrefix("/sandbox/inApps/"):
      return try await serverAPI(request, path: path, body: body)
    case "/v1/salesReports", "/v1/financeReports": return try await connect(request, path: path)
    case let path where path.hasPrefix("/simulator/"):
      let last = request.uri.queryParameters["last"].flatMap { Int($0) } ?? 20
      return ControlInterface(simulator: simulator).answer(
        isPost: request.method == .post, path: String(path.dropFirst("/simulator".count)), last: last, body: body)
    default: return .json(["error": "unknown path"], httpStatus: 404)
    }
  }

  private func verifyReceipt(
    _ environment: World.Environment, path: String, isPost: Bool, body: Data
  ) async throws -> Answer {
    let query = isPost ? VerifyReceiptInterface.Query(body: body) : nil
    return try await simulator.serve(path: path, subject: query?.subject ?? "none") { world, time in
      VerifyReceiptInterface(environment: environment).answer(query, world: world, time: time)
    }
  }

  private func connect(_ request: Request, path: String) async throws -> Answer {
    var parameters: [String: String] = [:]
    for item in (request.uri.query ?? "").split(separator: "&") {
      let parts = item.split(separator: "=", maxSplits: 1).map { String($0).removingPercentEncoding ?? "" }
      if parts.count == 2 { parameters[parts[0]] = parts[1] }
    }
    guard
      let query = ConnectInterface.Query(
        path: path, query: parameters, authorization: request.headers[.authorization],
        accept: request.headers[.accept])
    else { return .page(httpStatus: 404) }
    return try await simulator.serve(path: path, subject: query.subject) { world, time in
      ConnectInterface().answer(query, world: world, time: time)
    }
  }

  private func serverAPI(_ request: Request, path: String, body: Data) async throws -> Answer {
    let parameters = request.uri.queryParameters
    guard
      let query = ServerAPIRequest(
        path: path, isPost: request.method == .post, query: { parameters[$0[...]].map(String.init) },
        authorization: request.headers[.authorization], body: body)
    else { return .page(httpStatus: 404) }
    let interface = simulator.serverAPI
    let token = interface.token(of: query, world: simulator.world)
    let refusal = token.flatMap { interface.limits.refusal(query, bundleId: $0.bundleId) }
    return try await simulator.serve(path: query.path, subject: query.subject) { world, time in
      interface.answer(query, token: token, refusal: refusal, world: world, time: time)
    }
  }
}
