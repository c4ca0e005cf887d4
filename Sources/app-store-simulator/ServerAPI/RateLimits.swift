import Synchronization

/// Apple's limits, each interface for itself: refund history and orders a fifth, the sandbox a tenth of the others ("Identifying
/// rate limits"). Apple counts by the hour; here it is any one second, so that a rehearsal of minutes can meet them.
final class RateLimits: Sendable {
  private struct Key: Hashable {
    var environment: World.Environment
    var endpoint: ServerAPIRequest.Endpoint
    var bundleId: String?
  }

  private let rate: Double?
  private let arrivals = Mutex<[Key: [ContinuousClock.Instant]]>([:])

  /// - Parameter rate: requests a second; nil: no limit.
  init(rate: Double?) { self.rate = rate }

  /// Nil when the request may be answered; otherwise how long until the next one may.
  func refusal(_ request: ServerAPIRequest, bundleId: String?) -> Duration? {
    guard let rate else { return nil }
    let share = request.endpoint == .refunds || request.endpoint == .orders ? 0.2 : 1
    let permitted = rate * share * (request.environment == .sandbox ? 0.1 : 1)
    let limit = max(1, Int(permitted.rounded(.up)))
    // Less than one a second is one in so many seconds.
    let window = Duration.seconds(max(1, 1 / permitted))
    let now = ContinuousClock.now
    let key = Key(environment: request.environment, endpoint: request.endpoint, bundleId: bundleId)
    return arrivals.withLock { arrivals in
      var recent = (arrivals[key] ?? []).filter { $0 > now - window }
      defer { arrivals[key] = recent }
      if recent.count >= limit { return recent[recent.count - limit] + window - now }
      recent.append(now)
      return nil
    }
  }
}
