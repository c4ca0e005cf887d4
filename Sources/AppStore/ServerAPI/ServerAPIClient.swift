import AsyncHTTPClient
import NIOCore
import NIOHTTP1
import Reconciliation

/// A read-only client of Apple's App Store Server API for one app. Every signed document is verified and must be of the
/// requested app and environment. Nothing is retried here. Methods throw only if the task is cancelled, or the request
/// is no longer wanted before it is sent.
package struct ServerAPIClient: Sendable {
  private let transport: HTTPTransport
  private let production: ServerAPIHost
  private let sandbox: ServerAPIHost
  private let token: AppleToken
  private let bundleId: String
  private let verifier: AnswerVerifier
  private let userAgent: String
  private let now: @Sendable () -> Instant

  /// Throws if the credentials cannot work. `version` is for the `User-Agent` header.
  package init(
    transport: HTTPTransport, production: ServerAPIHost, sandbox: ServerAPIHost, credentials: ServerAPICredentials,
    verifier: JWSVerifier, version: String, now: @escaping @Sendable () -> Instant
  ) throws(AppleKeyError) {
    (self.transport, self.production, self.sandbox) = (transport, production, sandbox)
    token = try AppleToken(credentials)
    bundleId = credentials.bundleId
    self.verifier = AnswerVerifier(
      verifier: verifier, bundleId: credentials.bundleId, appAppleId: credentials.appAppleId)
    userAgent = "night-audit/\(version)"
    self.now = now
  }

  package func renewToken() async { await token.renew() }

  package func isRateLimited(on host: AppleHost) -> Bool { side(host).isRateLimited(.transactionInfo) }

  /// Requests one transaction of any kind, also finished or refunded (Get Transaction Info). The other environment is
  /// asked only if the first does not know the ID. If its gate is blocked, the result is unanswered.
  /// - Parameters:
  ///   - first: sandbox only for IDs known to be from there, which saves a request.
  ///   - isWanted: polled before the first request is sent; nil: always wanted.
  package func transactionInfo(
    _ id: String, first: AppleHost = .production, while isWanted: (@Sendable () -> Bool)? = nil
  ) async throws(CancellationError) -> TransactionAnswer {
    guard let path = Self.path(.transactionInfo, id: id) else { return TransactionAnswer(outcome: .malformedId) }
    var trail = ServerAPITrail()
    for host in [first, first.other] {
      let asked =
        host == first
        ? try await ask(.transactionInfo, of: host, path: path, while: isWanted)
        : try await askUnlessRateLimited(.transactionInfo, of: host, path: path)
      guard let reading = asked else {
        return TransactionAnswer(outcome: .unanswered(.deferredByRateLimit), trail: trail)
      }
      trail.note(reading, from: host)
      switch reading.resolved(from: host, bundleId: bundleId) {
      case .success(let fields): return found(fields, id: id, host: host, trail: trail)
      case .failure(.notFound): continue
      case .failure(let refusal): return TransactionAnswer(outcome: TransactionAnswer.Outcome(refusal), trail: trail)
      }
    }
    return TransactionAnswer(outcome: .notFound, trail: trail)
  }

  /// Requests a customer's transactions in this app by last change (Get Transaction History, version 2).
  /// - Parameters:
  ///   - id: any transaction ID of the customer.
  ///   - revision: the end of an earlier reading; if nil or no longer known to Apple, everything is read.
  package func transactionHistory(
    _ id: String, on host: AppleHost, revision: String? = nil, pages: Int = 100
  ) async throws(CancellationError) -> HistoryAnswer {
    // A revision can be continued from only in ascending order.
    try await history(
      .transactionHistory, id: id, host: host, order: "sort=ASCENDING", revision: revision, pages: pages)
  }

  /// Requests a customer's refunds in this app, by refund date (Get Refund History, version 2).
  package func refundHistory(
    _ id: String, on host: AppleHost, revision: String? = nil, pages: Int = 100
  ) async throws(CancellationError) -> HistoryAnswer {
    try await history(.refundHistory, id: id, host: host, order: nil, revision: revision, pages: pages)
  }

  /// Requests the state of each of a customer's subscriptions (Get All Subscription Statuses).
  package func subscriptionStatuses(
    _ id: String, on host: AppleHost
  ) async throws(CancellationError) -> SubscriptionAnswer {
    guard let path = Self.path(.subscriptionStatuses, id: id) else {
      return SubscriptionAnswer(outcome: .malformedId)
    }
    var trail = ServerAPITrail()
    guard let reading = try await askUnlessRateLimited(.subscriptionStatuses, of: host, path: path) else {
      return SubscriptionAnswer(outcome: .unanswered(.deferredByRateLimit), trail: trail)
    }
    trail.note(reading, from: host)
    switch reading.resolved(from: host, bundleId: bundleId) {
    case .success(let fields): return .subscriptions(fields, verifier: verifier, host: host, trail: trail)
    case .failure(let refusal):
      return SubscriptionAnswer(outcome: SubscriptionAnswer.Outcome(refusal), trail: trail)
    }
  }

  /// Requests the notifications of this app (Get Notification History), the only feed of a whole app.
  /// - Parameter paginationToken: the end of an earlier reading of the same window; nil to start it.
  package func notificationHistory(
    _ query: NotificationQuery, on host: AppleHost, paginationToken: String? = nil, pages: Int = 50
  ) async throws(CancellationError) -> NotificationAnswer {
    let body = Self.body(query)
    var reading = NotificationReading(
      verifier: verifier, host: host, type: query.type, paginationToken: paginationToken, pages: pages)
    var step = NotificationReading.Step.ask(paginationToken: paginationToken)
    while case .ask(let token) = step {
      let path = ServerAPIEndpoint.notificationHistory.path + Self.query([("paginationToken", token)])
      let exchange = try await ask(.notificationHistory, of: host, path: path, body: body)
      reading.note(exchange)
      step = reading.received(exchange.resolved(from: host, bundleId: bundleId))
    }
    return reading.answer
  }

  /// Requests an invoice by the order ID in Apple's mail (Look Up Order ID). The sandbox sends no invoices.
  package func lookUpOrder(_ orderId: String) async throws(CancellationError) -> OrderAnswer {
    guard let path = Self.path(.orderLookup, id: orderId) else { return OrderAnswer(outcome: .malformedId) }
    var trail = ServerAPITrail()
    let reading = try await ask(.orderLookup, of: .production, path: path)
    trail.note(reading, from: .production)
    return .invoice(reading.resolved(from: .production, bundleId: bundleId), verifier: verifier, trail: trail)
  }

  private func history(
    _ endpoint: ServerAPIEndpoint, id: String, host: AppleHost, order: String?, revision: String?, pages: Int
  ) async throws(CancellationError) -> HistoryAnswer {
    guard let path = Self.path(endpoint, id: id) else { return HistoryAnswer(revision: revision, end: .malformedId) }
    var reading = HistoryReading(verifier: verifier, host: host, revision: revision, pages: pages)
    var step = HistoryReading.Step.ask(revision: revision)
    while case .ask(let revision) = step {
      let query = Self.query([("revision", revision)], order)
      let exchange = try await ask(endpoint, of: host, path: path + query)
      reading.note(exchange)
      step = reading.received(exchange.resolved(from: host, bundleId: bundleId))
    }
    return reading.answer
  }

  private func found(
    _ fields: JSONFields, id: String, host: AppleHost, trail: ServerAPITrail
  ) -> TransactionAnswer {
    switch verifier.verify(fields.document("signedTransactionInfo") ?? "", host: host, id: id) {
    case .success(let transaction): return TransactionAnswer(outcome: .found(transaction), trail: trail)
    case .failure(let refusal):
      var trail = trail
      let detail = "Apple's answer could not be verified: \(refusal)"
      trail.warn(detail)
      let isRootMissing = refusal == .signature(.chainNotTrusted)
      return TransactionAnswer(
        outcome: isRootMissing ? .fault(.rootMissing) : .unanswered(.appleError(detail)), trail: trail)
    }
  }

  /// Returns nil instead of waiting if the gate is blocked by a `Retry-After`.
  private func askUnlessRateLimited(
    _ endpoint: ServerAPIEndpoint, of host: AppleHost, path: String
  ) async throws(CancellationError) -> ServerAPIReading? {
    let side = side(host)
    do throws(CancellationError) {
      return try await ask(endpoint, of: host, path: path, while: { !side.isRateLimited(endpoint) })
    } catch {
      if Task.isCancelled { throw error }
      return nil
    }
  }

  private func ask(
    _ endpoint: ServerAPIEndpoint, of host: AppleHost, path: String, body: ByteBuffer? = nil,
    while isWanted: (@Sendable () -> Bool)? = nil
  ) async throws(CancellationError) -> ServerAPIReading {
    let side = side(host)
    try await side.admit(endpoint, while: isWanted)
    // After the wait at the gate, so that the token is still valid when the request leaves.
    guard let token = await token.token(now: now()) else { return .unsigned }
    var request = HTTPClientRequest(url: side.base + path)
    request.headers = [
      "Authorization": "Bearer \(token.reveal())", "Accept": "application/json", "User-Agent": userAgent,
    ]
    if let body {
      request.method = .POST
      request.headers.add(name: "Content-Type", value: "application/json")
      request.body = .bytes(body)
    }
    let result = try await transport.send(request)
    let receivedAt = now()
    let reading = ServerAPIReading.read(result, receivedAt: receivedAt)
    if let retryAfter = reading.retryAfter {
      side.obey(retryAfter: retryAfter - receivedAt, httpStatus: reading.httpStatus)
    }
    return reading
  }

  private func side(_ host: AppleHost) -> ServerAPIHost { host == .production ? production : sandbox }
}

extension ServerAPIClient {
  /// Returns nil for text that cannot be an Apple ID, so that it cannot address another endpoint.
  private static func path(_ endpoint: ServerAPIEndpoint, id: String) -> String? {
    Identifier(id).canBeTransactionID ? "\(endpoint.path)/\(id)" : nil
  }

  private static func query(_ items: [(name: String, value: String?)], _ fixed: String? = nil) -> String {
    let texts =
      items.compactMap { name, value in value.map { "\(name)=\($0.percentEncoded)" } } + [fixed].compactMap(\.self)
    return texts.isEmpty ? "" : "?" + texts.joined(separator: "&")
  }

  /// Apple's "NotificationHistoryRequest".
  private static func body(_ query: NotificationQuery) -> ByteBuffer {
    var fields = ["startDate": "\(query.start.milliseconds)", "endDate": "\(query.end.milliseconds)"]
    for (name, word) in [("notificationType", query.type), ("notificationSubtype", query.subtype)] {
      fields[name] = word.map { "\"\($0.filter { $0.isLetter || $0 == "_" })\"" }
    }
    let members = fields.sorted { $0.key < $1.key }.map { "\"\($0.key)\":\($0.value)" }
    return ByteBuffer(string: "{\(members.joined(separator: ","))}")
  }
}
