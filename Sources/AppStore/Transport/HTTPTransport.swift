import AsyncHTTPClient
import NIOCore
import NIOHTTP1
import NIOHTTPCompression
import Reconciliation

package struct HTTPReply: Sendable {
  package var status: Int
  package var headers: HTTPHeaders
  package var body: ByteBuffer
  /// Keeps the memory reserved as long as the reply exists.
  private let share: ReplyBudget.Share?

  package init(status: Int, headers: HTTPHeaders, body: ByteBuffer, share: ReplyBudget.Share? = nil) {
    (self.status, self.headers, self.body, self.share) = (status, headers, body, share)
  }

  func retryAfter(now: Instant) -> Instant? {
    headers.first(name: "Retry-After").flatMap { RetryAfter.parse($0, now: now) }
  }
}

/// An HTTP/1.1 client with persistent connections, one pool per route. It does not follow redirects, which would send
/// secrets to a host that is not configured.
package struct HTTPTransport: Sendable {
  package static let maximumBodyBytes = 16 << 20
  /// The memory limit of all responses together, plus one beyond it: 128 MiB. A growing buffer counts twice.
  package static let memoryLimit = 128 << 20

  private let clients: [ProxyRules.Route: HTTPClient]
  private let proxies: ProxyRules
  private let timeout: Duration
  private let inflates: Bool
  private let maximumBodyBytes: Int
  private let budget: ReplyBudget
  private let statistics: RequestStatistics?
  private var app = ""

  /// - Parameters:
  ///   - timeout: for a whole exchange, from connecting to the last byte of the body.
  ///   - concurrency: the maximum number of concurrent exchanges with one host.
  ///   - inflates: true to request compressed bodies and decompress them.
  package init(
    timeout: Span = .seconds(30), concurrency: Int = 256, proxies: ProxyRules = .ofThisProcess, inflates: Bool = true,
    maximumBodyBytes: Int = HTTPTransport.maximumBodyBytes,
    budget: ReplyBudget = ReplyBudget(limit: HTTPTransport.memoryLimit), statistics: RequestStatistics? = nil
  ) {
    var configuration = HTTPClient.Configuration()
    configuration.redirectConfiguration = .disallow
    configuration.httpVersion = .http1Only
    configuration.timeout = .init(connect: .microseconds(min(timeout, .seconds(10)).microseconds))
    // Shorter than the idle time of usual load balancers, so that a connection about to be closed is not reused.
    configuration.connectionPool = .init(
      idleTimeout: .seconds(30), concurrentHTTP1ConnectionsPerHostSoftLimit: max(1, concurrency))
    // A refused connection is left to the retry schedule; retrying here would block until the connect timeout.
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
    (self.clients, self.proxies, self.inflates) = (clients, proxies, inflates)
    (self.maximumBodyBytes, self.budget, self.statistics) = (maximumBodyBytes, budget, statistics)
    self.timeout = .microseconds(timeout.microseconds)
  }

  /// Returns a transport over the same connections that counts requests under an app.
  package func counting(for app: String) -> HTTPTransport {
    var transport = self
    transport.app = app
    return transport
  }

  /// Closes the connections. Must be called once, after the last exchange.
  package func shutdown() async {
    // It fails only if it was shut down before.
    for client in clients.values { try? await client.shutdown() }
  }

  /// Sends one request and reads the whole response. Throws only if the task is cancelled.
  package func send(_ request: HTTPClientRequest) async throws(CancellationError) -> Result<HTTPReply, Silence> {
    let began = ContinuousClock.now
    // The client's own deadline ends with the head of the response, but a slow body must not exceed the timeout either.
    let first = await withTaskGroup(of: Result<HTTPReply, Silence>?.self) { group in
      group.addTask { await exchange(request) }
      group.addTask {
        // Ends the wait for a server that never completes its response. Cancelled as soon as the response is complete.
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

  // Returns nil after cancellation, because a body that ended early for that reason looks complete.
  private func exchange(_ request: HTTPClientRequest) async -> Result<HTTPReply, Silence>? {
    let route = proxies.route(to: request.url)
    guard let client = clients[route] else {
      guard case .unusable(let variable) = route else { return .failure(.unreachable("no way there")) }
      return .failure(.unreachable("\(variable) is not a proxy's address, such as http://proxy.example.com:3128"))
    }
    var request = request
    if inflates { request.headers.replaceOrAdd(name: "Accept-Encoding", value: "gzip") }
    do {
      let response = try await client.execute(request, timeout: .hours(1))
      let share = ReplyBudget.Share(of: budget)
      let body = try await read(response.body, within: share)
      if Task.isCancelled { return nil }
      return .success(HTTPReply(status: Int(response.status.code), headers: response.headers, body: body, share: share))
    } catch {
      return Task.isCancelled ? nil : .failure(Silence(error))
    }
  }

  private static let step = 64 << 10

  // Memory is reserved before it is filled.
  private func read(
    _ body: HTTPClientResponse.Body, within share: ReplyBudget.Share
  ) async throws -> ByteBuffer {
    var whole = ByteBuffer()
    var room = 0
    for try await var chunk in body {
      let needed = whole.readableBytes + chunk.readableBytes
      guard needed <= maximumBodyBytes else { throw NIOTooManyBytesError(maxBytes: maximumBodyBytes) }
      if needed > room {
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

extension HTTPTransport {
  package func date(at url: String, userAgent: String) async throws(CancellationError) -> Result<Instant?, Silence> {
    var request = HTTPClientRequest(url: url)
    request.headers.add(name: "User-Agent", value: userAgent)
    return try await send(request).map { $0.headers.first(name: "Date").flatMap(RetryAfter.instant(date:)) }
  }

  /// Posts plain text to a server other than Apple's. Returns the reason of a failure, or nil.
  package func post(_ text: String, to url: String) async -> String? {
    var request = HTTPClientRequest(url: url)
    request.method = .POST
    request.headers = ["Content-Type": "text/plain; charset=utf-8", "User-Agent": "night-audit"]
    request.body = .bytes(ByteBuffer(string: text))
    do throws(CancellationError) {
      switch try await send(request) {
      case .success(let reply): return (200..<300).contains(reply.status) ? nil : "HTTP \(reply.status)"
      case .failure(let silence): return silence.detail
      }
    } catch {
      return "cancelled"
    }
  }
}

extension Silence {
  // Error texts are dropped because they may quote the request.
  init(_ error: any Error) {
    switch error {
    case let error as HTTPClientError: self = .unreachable(error.shortDescription)
    case HTTPParserError.invalidEOFState: self = .unreachable("connection closed within the answer")
    case is HTTPParserError: self = .appleError("not HTTP")
    case is NIOTooManyBytesError, NIOHTTPDecompression.DecompressionError.limit: self = .appleError("answer too long")
    case is NIOHTTPDecompression.DecompressionError, is NIOHTTPDecompression.ExtraDecompressionError:
      self = .appleError("compressed answer is damaged")
    default: self = .unreachable("connection failed (\(type(of: error)))")
    }
  }
}
