import NIOCore
import NIOHTTP1
import NIOPosix
import Synchronization

/// A server on loopback with scripted replies per path, byte by byte.
final class ScriptedServer: Sendable {
  enum Reply: Sendable {
    case bytes([UInt8])
    case bytesThenEnd([UInt8])
    case dripping([UInt8])
    case silence

    static func http(_ status: Int, _ body: some Sequence<UInt8>, headers: [String: String] = [:]) -> Reply {
      let body = Array(body)
      var head = "HTTP/1.1 \(status) Whatever\r\nContent-Length: \(body.count)\r\n"
      for (name, value) in headers { head += "\(name): \(value)\r\n" }
      return .bytes(Array((head + "\r\n").utf8) + body)
    }

    static func json(_ body: String) -> Reply { .http(200, body.utf8) }
  }

  struct Request: Sendable {
    var method: String
    var path: String
    var headers: HTTPHeaders
    var body: String
  }

  private struct State {
    var script: [String: [Reply]]
    var requests: [Request] = []
    var connections = 0
  }

  private let state: Mutex<State>

  private init(script: [String: [Reply]]) { state = Mutex(State(script: script)) }

  var requests: [Request] { state.withLock { $0.requests } }

  var connections: Int { state.withLock { $0.connections } }

  /// - Parameter script: replies by path, in order; the last one is repeated.
  static func run<Result>(
    _ script: [String: [Reply]], isolation: isolated (any Actor)? = #isolation,
    _ body: (ScriptedServer, _ port: Int) async throws -> Result
  ) async throws -> Result {
    let server = ScriptedServer(script: script)
    let channel = try await ServerBootstrap(group: .singletonMultiThreadedEventLoopGroup)
      .serverChannelOption(.backlog, value: 512)
      .childChannelInitializer { channel in
        server.state.withLock { $0.connections += 1 }
        return channel.eventLoop.makeCompletedFuture {
          try channel.pipeline.syncOperations.addHandlers([
            ByteToMessageHandler(HTTPRequestDecoder()), Handler(server: server),
          ])
        }
      }
      .bind(host: "127.0.0.1", port: 0).get()
    do {
      let result = try await body(server, channel.localAddress?.port ?? 0)
      try await channel.close()
      return result
    } catch {
      try? await channel.close()
      throw error
    }
  }

  fileprivate func reply(to request: Request) -> Reply {
    state.withLock { state in
      state.requests.append(request)
      guard let replies = state.script[request.path], let reply = replies.first else { return .http(404, []) }
      if replies.count > 1 { state.script[request.path] = Array(replies.dropFirst()) }
      return reply
    }
  }

  private final class Handler: ChannelInboundHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundOut = ByteBuffer

    private let server: ScriptedServer
    private var request = Request(method: "", path: "", headers: [:], body: "")

    init(server: ScriptedServer) { self.server = server }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
      switch unwrapInboundIn(data) {
      case .head(let head):
        request = Request(method: head.method.rawValue, path: head.uri, headers: head.headers, body: "")
      case .body(let buffer): request.body += String(buffer: buffer)
      case .end:
        switch server.reply(to: request) {
        case .bytes(let bytes): context.writeAndFlush(wrapOutboundOut(ByteBuffer(bytes: bytes)), promise: nil)
        case .bytesThenEnd(let bytes):
          context.writeAndFlush(wrapOutboundOut(ByteBuffer(bytes: bytes)), promise: nil)
          context.close(promise: nil)
        case .dripping(let body):
          let head = "HTTP/1.1 200 Whatever\r\nContent-Length: \(body.count)\r\n\r\n"
          context.writeAndFlush(wrapOutboundOut(ByteBuffer(string: head)), promise: nil)
          drip(body[...], to: context.channel)
        case .silence: break
        }
      }
    }

    // Four kilobytes at a time, each after the last was written.
    private func drip(_ rest: ArraySlice<UInt8>, to channel: any Channel) {
      guard !rest.isEmpty else { return }
      channel.writeAndFlush(ByteBuffer(bytes: rest.prefix(4 << 10))).assumeIsolatedUnsafeUnchecked().whenSuccess {
        self.drip(rest.dropFirst(4 << 10), to: channel)
      }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
  }
}
