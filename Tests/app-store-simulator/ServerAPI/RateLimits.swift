import Synchronization

/// Apple's rate limits by endpoint ("Identifying rate limits"). Refunds and orders have a fifth, the sandbox a tenth.
/// Apple counts by the hour; here it is one second, so that short rehearsals can reach the limits.
final class RateLimits: Sendable {
  private struct Key: Hashable {
    var environment: World.Environment
    var endpoint: ServerAPIRequest.Endpoint
    var bundleId: String?
  }

  private let rate: Double?
  private let arrivals = Mutex<[Key: [ContinuousClock.Instant]]>([:])

  /// - Parameter rate: requests per second; nil: no limit.
  init(rate: Double?) { self.rate = rate }

  func refusal(_ request: ServerAPIRequest, bundleId: String?) -> Duration? {
    guard let rate else { return nil }
    let share = request.endpoint == .refunds || request.endpoint == .orders ? 0.2 : 1
    let permitted = rate * share * (request.environment == .sandbox ? 0.1 : 1)
    let limit = max(1, Int(permitted.rounded(.up)))
    // A rate below one per second becomes one request in a longer window.
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
