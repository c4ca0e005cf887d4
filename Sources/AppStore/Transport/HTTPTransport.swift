import AsyncHTTPClient
import NIOCore
import NIOHTTP1
import NIOHTTPCompression
import Reconciliation

/// What came back over HTTP, whatever it means.
package struct HTTPReply: Sendable {
  package var status: Int
  package var headers: HTTPHeaders
  package var body: ByteBuffer
  /// The room that it takes, for as long as it is looked at.
  private let share: ReplyBudget.Share?

  package init(status: Int, headers: HTTPHeaders, body: ByteBuffer, share: ReplyBudget.Share? = nil) {
    self.status = status
    self.headers = headers
    self.body = body
    self.share = share
  }
}

/// Why an exchange brought no reply. The label is one of a small set of texts, safe to log and to count.
package enum HTTPFailure: Error, Hashable, Sendable {
  /// No connection, no TLS, no answer in time, or a connection lost on the way.
  case unreachable(String)
  /// Something answered, but not with HTTP that can be read, or with more of it than is allowed.
  case unreadable(String)
}

/// HTTP/1.1 to Apple with connections kept alive, one pool for all interfaces and each way that they are reached.
///
/// Redirects are not followed: they would carry secrets to a host that nobody configured.
package struct HTTPTransport: Sendable {
  /// The longest reply body that is read unless told otherwise, after decompression: 16 MiB.
  package static let maximumBodyBytes = 16 << 20
  /// The most that all replies hold in memory together, and one that is read beyond it: 128 MiB. While one grows, its old
  /// and its new room are both there.
  package static let memoryLimit = 128 << 20

  private let clients: [ProxyRules.Route: HTTPClient]
  private let proxies: ProxyRules
  private let timeout: Duration
  private let inflates: Bool
  private let maximumBodyBytes: Int
  private let budget: ReplyBudget
  private let statistics: RequestStatistics?
  /// Whose requests these are, in the statistics.
  private var app = ""

  /// - Parameters:
  ///   - timeout: for a whole exchange, from the wish to connect to the last byte of the body.
  ///   - concurrency: how many exchanges with one host may be under way; the pool keeps as many connections.
  ///   - proxies: through which proxy an address is reached.
  ///   - inflates: whether compressed bodies are asked for and decompressed; if not they come as they were sent.
  ///   - maximumBodyBytes: the longest body that is read, after decompression.
  ///   - budget: how much memory all replies may take together.
  ///   - statistics: where requests are counted.
  package init(
    timeout: Span = .seconds(30), concurrency: Int = 256, proxies: ProxyRules = .ofThisProcess, inflates: Bool = true,
    maximumBodyBytes: Int = HTTPTransport.maximumBodyBytes,
    budget: ReplyBudget = ReplyBudget(limit: HTTPTransport.memoryLimit), statistics: RequestStatistics? = nil
  ) {
    var configuration = HTTPClient.Configuration()
    configuration.redirectConfiguration = .disallow
    configuration.httpVersion = .http1Only
    configuration.timeout = .init(connect: .microseconds(min(timeout, .seconds(10)).microseconds))
    // Shorter than the idle time of usual load balancers: a connection that the other side is about to close is not reused.
    configuration.connectionPool = .init(
      idleTimeout: .seconds(30), concurrentHTTP1ConnectionsPerHostSoftLimit: max(1, concurrency))
    // A refused connection is an answer for the schedule; trying on would hold a place until the connect timeout.
    configuration.connectionPool.retryConnectionEstablishment = false
    configuration.decompression = inflates ? .enabled(limit: .size(maximumBodyBytes)) : .disabled
    var clients: [ProxyRules.Route: HTTPClient] = [:]
    for route in proxies.everyRoute {
      switch route {
      case .direct: configuration.proxy = nil
      case .proxy(let proxy): configuration.proxy = proxy.configuration
      case .unusable: continue
      }
      clients[route] = HTTPClient(eventLoopGroupProvider: .singleton, configuration: configuration)
    }
    self.clients = clients
    self.proxies = proxies
    self.inflates = inflates
    self.maximumBodyBytes = maximumBodyBytes
    self.budget = budget
    self.statistics = statistics
    self.timeout = .microseconds(timeout.microseconds)
  }

  /// The same connections, for requests of one app.
  package func counting(for app: String) -> HTTPTransport {
    var transport = self
    transport.app = app
    return transport
  }

  /// Closes the connections. Must be called once, after the last exchange.
  package func shutdown() async {
    // It fails only when it was shut down before: nothing is left to close then.
    for client in clients.values { try? await client.shutdown() }
  }

  /// Sends one request and reads the whole reply. Throws only when the task is cancelled before the reply is complete.
  package func send(_ request: HTTPClientRequest) async throws(CancellationError) -> Result<HTTPReply, HTTPFailure> {
    let began = ContinuousClock.now
    // The client's own deadline ends with the reply's head; a body that trickles in must not outlive the timeout either.
    let first = await withTaskGroup(of: Result<HTTPReply, HTTPFailure>?.self) { group in
      group.addTask { await exchange(request) }
      group.addTask {
        // Cancelled as soon as the reply is there.
        do { try await Task.sleep(for: timeout) } catch { return nil }
        return .failure(.unreachable("timeout"))
      }
      let first = await group.next()
      group.cancelAll()
      return first ?? nil
    }
    guard let first else { throw CancellationError() }
    statistics?.record(first, of: app, after: .now - began)
    return first
  }

  /// Nil when the task was cancelled: a body that ends early for that reason looks complete.
  private func exchange(_ request: HTTPClientRequest) async -> Result<HTTPReply, HTTPFailure>? {
    let route = proxies.route(to: request.url)
    guard let client = clients[route] else {
      guard case .unusable(let variable) = route else { return .failure(.unreachable("no way there")) }
      return .failure(.unreachable("\(variable) is no proxy's address, such as http://proxy.example.com:3128"))
    }
    var request = request
    if inflates { request.headers.replaceOrAdd(name: "Accept-Encoding", value: "gzip") }
    do {
      let response = try await client.execute(request, timeout: .hours(1))
      let share = ReplyBudget.Share(of: budget)
      let body = try await read(response.body, within: share)
      if Task.isCancelled { return nil }
      return .success(
        HTTPReply(status: Int(response.status.code), headers: response.headers, body: body, share: share))
    } catch {
      return Task.isCancelled ? nil : .failure(HTTPFailure(error))
    }
  }

  /// The least that a reply is given room for, in bytes.
  private static let step = 64 << 10

  /// Reads a body into room that is taken before it is filled.
  private func read(
    _ body: HTTPClientResponse.Body, within share: ReplyBudget.Share
  ) async throws -> ByteBuffer {
    var whole = ByteBuffer()
    var room = 0
    for try await var chunk in body {
      let needed = whole.readableBytes + chunk.readableBytes
      guard needed <= maximumBodyBytes else { throw NIOTooManyBytesError(maxBytes: maximumBodyBytes) }
      if needed > room {
        // Doubled, as the buffer does it.
        var larger = max(room, HTTPTransport.step)
        while larger < needed { larger *= 2 }
        try await share.grow(by: larger - room)
        room = larger
        whole.reserveCapacity(room)
      }
      whole.writeBuffer(&chunk)
    }
    return whole
  }
}

extension HTTPFailure {
  /// Sorts any error of the HTTP stack into the two kinds. Error texts are not kept: they may quote what was sent.
  init(_ error: any Error) {
    switch error {
    case let error as HTTPClientError: self = .unreachable(error.shortDescription)
    case HTTPParserError.invalidEOFState: self = .unreachable("connection closed within the answer")
    case is HTTPParserError: self = .unreadable("not HTTP")
    case is NIOTooManyBytesError, NIOHTTPDecompression.DecompressionError.limit: self = .unreadable("answer too long")
    case is NIOHTTPDecompression.DecompressionError, is NIOHTTPDecompression.ExtraDecompressionError:
      self = .unreadable("compressed answer is damaged")
    default: self = .unreachable("connection failed (\(type(of: error)))")
    }
  }
}
