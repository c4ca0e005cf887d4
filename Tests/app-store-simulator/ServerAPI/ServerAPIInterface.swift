import Foundation

struct ServerAPIInterface: Sendable {
  private static let pageSize = 20

  let authority: SigningAuthority
  let limits: RateLimits

  /// The answer without faults. Rate limits count on arrival, so `refusal` is decided before.
  func answer(
    _ request: ServerAPIRequest, token: ClientToken?, refusal: Duration?, world: World, time: SimulatedClock.Reading
  ) -> Answer {
    guard let token else { return .unauthenticated }
    if let refusal { return Self.limited(for: refusal) }
    guard request.isPost == (request.endpoint == .notifications) else { return .page(httpStatus: 405) }
    if let bundleId = token.bundleId, world.app(bundleId: bundleId) == nil { return ServerAPIError.appNotFound.answer }
    if let error = world.errors[request.id] {
      return ServerAPIError.answer(code: error.errorCode, httpStatus: error.httpStatus)
    }
    do {
      if request.endpoint == .notifications {
        return try NotificationPages(
          interface: self, environment: request.environment, bundleId: token.bundleId, world: world, time: time
        ).answer(request)
      }
      if request.endpoint == .orders {
        return try answer(aboutOrder: request, bundleId: token.bundleId, world: world, time: time)
      }
      return try answer(about: request, bundleId: token.bundleId, world: world, time: time)
    } catch {
      return .json(["error": "\(error)"], httpStatus: 500)
    }
  }

  /// The request's token; nil if rejected. Without keys any token is accepted.
  func token(of request: ServerAPIRequest, world: World) -> ClientToken? {
    guard world.hasKeys else { return .unchecked(authorization: request.authorization) }
    return .checked(authorization: request.authorization, world: world, now: SimulatedClock.wall / 1_000)
  }

  /// Look Up Order ID: production only; unknown IDs get HTTP 200.
  private func answer(
    aboutOrder request: ServerAPIRequest, bundleId: String?, world: World, time: SimulatedClock.Reading
  ) throws -> Answer {
    guard request.environment == .production else { return .page(httpStatus: 404) }
    let known = world.order(id: request.id).filter {
      $0.environment == .production && (bundleId == nil || $0.bundleId == bundleId) && $0.exists(by: time.horizon)
    }
    let payloads = SignedPayloads(authority: authority, signedDate: time.now, horizon: time.horizon)
    return .json(["status": known.isEmpty ? 1 : 0, "signedTransactions": try known.map(payloads.transaction)])
  }

  private func answer(
    about request: ServerAPIRequest, bundleId: String?, world: World, time: SimulatedClock.Reading
  ) throws -> Answer {
    let isNumber = request.id.utf8.allSatisfy { UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 }
    guard isNumber, request.id.utf8.count <= 32 else { return ServerAPIError.transactionIdInvalid.answer }
    guard let transaction = world.transaction(id: request.id, environment: request.environment),
      bundleId == nil || transaction.bundleId == bundleId, transaction.exists(by: time.horizon)
    else {
      let isOriginal = request.endpoint == .subscriptions
      return (isOriginal ? ServerAPIError.originalTransactionNotFound : .transactionNotFound).answer
    }
    let payloads = SignedPayloads(authority: authority, signedDate: time.now, horizon: time.horizon)
    if request.endpoint == .transaction {
      return .json(["signedTransactionInfo": try payloads.transaction(transaction)])
    }
    let all = world.customer(of: transaction).filter { $0.exists(by: time.horizon) }
      .map { $0.changed(by: time.horizon) }
    if request.endpoint == .subscriptions {
      return .json(try subscriptions(all, payloads: payloads).merging(head(transaction, world: world)) { $1 })
    }
    let isRefunds = request.endpoint == .refunds
    let rows = isRefunds ? all.filter { $0.isRevoked(by: time.horizon) && !$0.isFamilyRevocation } : all
    let places = rows.map { transaction in
      let date = isRefunds ? transaction.revokedFrom : world.lastModified(transaction, by: time.horizon)
      return Place(date: date ?? 0, id: transaction.transactionId)
    }
    guard let page = Self.page(places, after: request.revision) else { return ServerAPIError.revisionInvalid.answer }
    let byId = Dictionary(rows.map { ($0.transactionId, $0) }) { $1 }
    var fields: [String: Any] = [
      "signedTransactions": try page.places.compactMap { byId[$0.id] }.map(payloads.transaction),
      "hasMore": page.hasMore, "revision": page.revision,
    ]
    if !isRefunds { fields.merge(head(transaction, world: world)) { $1 } }
    return .json(fields)
  }

  private func subscriptions(
    _ transactions: [World.Transaction], payloads: SignedPayloads
  ) throws -> [String: Any] {
    let subscriptions = Dictionary(grouping: transactions.filter { $0.type == .autoRenewable }) { $0.originalId }
    let latest = subscriptions.values.compactMap { $0.max { $0.purchaseDate < $1.purchaseDate } }
    let groups = Dictionary(grouping: latest) { $0.groupIdentifier }.sorted { $0.key < $1.key }
    return [
      "data": try groups.map { group, members in
        [
          "subscriptionGroupIdentifier": group,
          "lastTransactions": try members.sorted { $0.originalId < $1.originalId }.map { transaction in
            [
              "status": transaction.state(at: payloads.signedDate), "originalTransactionId": transaction.originalId,
              "signedTransactionInfo": try payloads.transaction(transaction),
              "signedRenewalInfo": try payloads.renewalInfo(transaction),
            ] as [String: Any]
          },
        ] as [String: Any]
      }
    ]
  }

  private func head(_ transaction: World.Transaction, world: World) -> [String: Any] {
    var fields: [String: Any] = ["bundleId": transaction.bundleId, "environment": transaction.environment.rawValue]
    if transaction.environment == .production {
      fields["appAppleId"] = world.app(bundleId: transaction.bundleId)?.appAppleId
    }
    return fields
  }

  private static func limited(for refusal: Duration) -> Answer {
    var answer = ServerAPIError.rateLimitExceeded.answer
    // Apple sends the UNIX time in milliseconds, not seconds as in RFC 9110.
    answer.headers["Retry-After"] = "\(SimulatedClock.wall + Int64((refusal / .milliseconds(1)).rounded(.up)))"
    return answer
  }

  private struct Place: Comparable {
    var date: Int64
    var id: String

    var revision: String { Data("\(date)_\(id)".utf8).base64EncodedString() }

    init(date: Int64, id: String) {
      self.date = date
      self.id = id
    }

    init?(revision: String) {
      guard let data = Data(base64Encoded: revision) else { return nil }
      let parts = String(decoding: data, as: UTF8.self).split(separator: "_")
      guard parts.count == 2, let date = Int64(parts[0]) else { return nil }
      self.init(date: date, id: String(parts[1]))
    }

    static func < (left: Place, right: Place) -> Bool { (left.date, left.id) < (right.date, right.id) }
  }

  private static func page(
    _ places: [Place], after revision: String?
  ) -> (places: ArraySlice<Place>, hasMore: Bool, revision: String)? {
    var rest = places.sorted()[...]
    var last = Place(date: 0, id: "0")
    if let revision {
      guard let place = Place(revision: revision) else { return nil }
      last = place
      rest = rest.drop { $0 <= place }
    }
    let page = rest.prefix(pageSize)
    return (page, rest.count > page.count, (page.last ?? last).revision)
  }
}
