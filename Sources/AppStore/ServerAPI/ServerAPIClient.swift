import AsyncHTTPClient
import Foundation
import NIOCore
import NIOHTTP1
import Reconciliation

/// Apple's App Store Server API, read only, for one app.
///
/// Every signed document is verified before it is believed, and must be of the app and environment that were asked.
/// Nothing is tried again here: what stays unanswered has its own schedule, and histories go on from their cursor.
/// Every method throws only when the task is cancelled before there is an answer, or when nobody wants it any more before
/// the first request is sent.
package struct ServerAPIClient: Sendable {
  private let transport: HTTPTransport
  private let production: ServerAPIHost
  private let sandbox: ServerAPIHost
  private let token: ServerAPIToken
  private let bundleId: String
  private let verifier: AnswerVerifier
  private let userAgent: String
  private let now: @Sendable () -> Instant

  /// Throws when the credentials cannot work, before anything is asked.
  /// - Parameters:
  ///   - version: of this program, for the `User-Agent` header.
  ///   - now: the time of day, for tokens and to read `Retry-After`.
  package init(
    transport: HTTPTransport, production: ServerAPIHost, sandbox: ServerAPIHost, credentials: ServerAPICredentials,
    verifier: JWSVerifier, version: String, now: @escaping @Sendable () -> Instant
  ) throws(ServerAPICredentialsError) {
    self.transport = transport
    self.production = production
    self.sandbox = sandbox
    token = try ServerAPIToken(credentials)
    bundleId = credentials.bundleId
    self.verifier = AnswerVerifier(
      verifier: verifier, bundleId: credentials.bundleId, appAppleId: credentials.appAppleId)
    userAgent = "night-audit/\(version)"
    self.now = now
  }

  /// Makes the next request with a token of its own: the one before was refused.
  package func renewToken() async { await token.renew() }

  /// Whether a side gets no question about a transaction for a while, because Apple has said when to come back.
  package func isHeldUp(on host: AppleHost) -> Bool { side(host).isHeldUp(.transactionInfo) }

  /// Get Transaction Info: one transaction of any kind, finished consumables and refunded ones included.
  ///
  /// The other side is asked only when the first one does not know the id, so at most two requests are made. While it is held
  /// up there is no answer.
  /// - Parameters:
  ///   - first: the side to begin with. Sandbox only for what is known to be from there: it saves a request.
  ///   - isWanted: whether the first request is still to be sent once its turn comes; nil: it is.
  package func transactionInfo(
    _ id: String, first: AppleHost = .production, while isWanted: (@Sendable () -> Bool)? = nil
  ) async throws(CancellationError) -> TransactionAnswer {
    guard let path = Self.path(.transactionInfo, id: id) else { return TransactionAnswer(outcome: .malformedId) }
    var trail = ServerAPITrail()
    for host in [first, first.other] {
      let asked =
        host == first
        ? try await ask(.transactionInfo, of: host, path: path, while: isWanted)
        : try await askSoon(.transactionInfo, of: host, path: path)
      guard let reading = asked else { return TransactionAnswer(outcome: .unanswered(.heldUp), trail: trail) }
      trail.note(reading, from: host)
      switch reading.resolved(from: host, bundleId: bundleId) {
      case .success(let fields): return found(fields, id: id, host: host, trail: trail)
      case .failure(.notFound): continue
      case .failure(let refusal): return TransactionAnswer(outcome: TransactionAnswer.Outcome(refusal), trail: trail)
      }
    }
    return TransactionAnswer(outcome: .notFound, trail: trail)
  }

  /// Get Transaction History, version 2: everything of one customer in this app, in the order of last change.
  /// - Parameters:
  ///   - id: any transaction id of the customer.
  ///   - revision: where an earlier reading ended; nil to read all. When Apple has forgotten it, all is read.
  ///   - pages: how many pages of twenty to read at most.
  package func transactionHistory(
    _ id: String, on host: AppleHost, revision: String? = nil, pages: Int = 100
  ) async throws(CancellationError) -> HistoryAnswer {
    // Only the ascending order makes a revision worth keeping.
    try await history(
      .transactionHistory, id: id, host: host, order: "sort=ASCENDING", revision: revision, pages: pages)
  }

  /// Get Refund History, version 2: what Apple refunded to one customer in this app, by date of refund. A customer
  /// without refunds has an empty history.
  ///
  /// For the parameters see `transactionHistory`.
  package func refundHistory(
    _ id: String, on host: AppleHost, revision: String? = nil, pages: Int = 100
  ) async throws(CancellationError) -> HistoryAnswer {
    try await history(.refundHistory, id: id, host: host, order: nil, revision: revision, pages: pages)
  }

  /// Get All Subscription Statuses: the latest transaction of each subscription of one customer, and what is to become
  /// of it. While the side is held up there is no answer.
  /// - Parameter id: any transaction id of the customer.
  package func subscriptionStatuses(
    _ id: String, on host: AppleHost
  ) async throws(CancellationError) -> SubscriptionAnswer {
    guard let path = Self.path(.subscriptionStatuses, id: id) else {
      return SubscriptionAnswer(outcome: .malformedId, trail: ServerAPITrail())
    }
    var trail = ServerAPITrail()
    guard let reading = try await askSoon(.subscriptionStatuses, of: host, path: path) else {
      return SubscriptionAnswer(outcome: .unanswered(.heldUp), trail: trail)
    }
    trail.note(reading, from: host)
    switch reading.resolved(from: host, bundleId: bundleId) {
    case .success(let fields): return .read(fields, verifier: verifier, host: host, trail: trail)
    case .failure(let refusal):
      return SubscriptionAnswer(outcome: SubscriptionAnswer.Outcome(refusal), trail: trail)
    }
  }

  /// Get Notification History: what Apple notified this app of, the only feed of a whole app.
  /// - Parameters:
  ///   - paginationToken: where an earlier reading of the same window ended; nil to begin with it.
  ///   - pages: how many pages of twenty to read at most; what they hold is kept in memory.
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

  /// Look Up Order ID: the transactions of one invoice, by the order id of Apple's mail to the customer (`M…`). Production
  /// only: the sandbox sends no invoices.
  package func lookUpOrder(_ orderId: String) async throws(CancellationError) -> OrderAnswer {
    guard let path = Self.path(.orderLookup, id: orderId) else { return OrderAnswer(outcome: .unknown) }
    var trail = ServerAPITrail()
    let reading = try await ask(.orderLookup, of: .production, path: path)
    trail.note(reading, from: .production)
    return .read(reading.resolved(from: .production, bundleId: bundleId), verifier: verifier, trail: trail)
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
      let detail = "Apple's answer is not believed: \(refusal)"
      trail.warn(detail)
      return TransactionAnswer(outcome: .unanswered(Silence(reason: .appleError, detail: detail)), trail: trail)
    }
  }

  /// As `ask`; nil where the turn is far away, because Apple has said when to come back.
  private func askSoon(
    _ endpoint: ServerAPIEndpoint, of host: AppleHost, path: String
  ) async throws(CancellationError) -> ServerAPIReading? {
    let side = side(host)
    do throws(CancellationError) {
      return try await ask(endpoint, of: host, path: path, while: { !side.isHeldUp(endpoint) })
    } catch {
      if Task.isCancelled { throw error }
      return nil
    }
  }

  /// - Parameter body: makes the request a POST.
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
    var reading = ServerAPIReading.read(result, receivedAt: receivedAt)
    // A proxy may quote the request, and messages are logged.
    if reading.errorMessage?.contains(token.reveal()) == true { reading.errorMessage = nil }
    if let retryAfter = reading.retryAfter {
      side.obey(retryAfter: retryAfter - receivedAt, httpStatus: reading.httpStatus)
    }
    return reading
  }

  private func side(_ host: AppleHost) -> ServerAPIHost {
    switch host {
    case .production: production
    case .sandbox: sandbox
    }
  }
}

extension ServerAPIClient {
  /// Nil for what cannot be an id of Apple's: nothing of it may reach another interface.
  private static func path(_ endpoint: ServerAPIEndpoint, id: String) -> String? {
    Identifier(id).canBeApples ? "\(endpoint.path)/\(id)" : nil
  }

  private static func query(_ items: [(name: String, value: String?)], _ fixed: String? = nil) -> String {
    let texts = items.compactMap { name, value in value.map { "\(name)=\(escaped($0))" } } + [fixed].compactMap(\.self)
    return texts.isEmpty ? "" : "?" + texts.joined(separator: "&")
  }

  /// Only what RFC 3986 (2.3) calls unreserved stays: cursors have `+` and `/`, which forms and paths read otherwise.
  private static func escaped(_ text: String) -> String {
    text.addingPercentEncoding(withAllowedCharacters: unreserved) ?? ""
  }

  private static let unreserved = CharacterSet(
    charactersIn: "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")

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

extension TransactionAnswer.Outcome {
  init(_ refusal: ServerAPIRefusal) {
    switch refusal {
    case .notFound: self = .notFound
    case .accountGone: self = .accountGone
    case .malformedId: self = .malformedId
    case .revisionRefused, .windowExpired:
      self = .unanswered(Silence(reason: .appleError, detail: "a paging error about an answer without pages"))
    case .unanswered(let silence): self = .unanswered(silence)
    case .fault(let fault): self = .fault(fault)
    }
  }
}
