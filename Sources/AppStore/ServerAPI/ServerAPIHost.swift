import Reconciliation

package enum ServerAPIEndpoint: String, Hashable, CaseIterable, Sendable {
  case transactionInfo
  /// Get Transaction History, version 2. Version 1 omits finished consumables.
  case transactionHistory
  case subscriptionStatuses
  case refundHistory
  case notificationHistory
  case orderLookup

  var path: String {
    switch self {
    case .transactionInfo: "/inApps/v1/transactions"
    case .transactionHistory: "/inApps/v2/history"
    case .subscriptionStatuses: "/inApps/v1/subscriptions"
    case .refundHistory: "/inApps/v2/refund/lookup"
    case .notificationHistory: "/inApps/v1/notifications/history"
    case .orderLookup: "/inApps/v1/lookup"
    }
  }

  /// The endpoint's rate limit relative to the others (Apple: "Identifying rate limits"): 10 per second against 50.
  package var rateShare: Double {
    switch self {
    case .transactionInfo, .transactionHistory, .subscriptionStatuses, .notificationHistory: 1
    case .refundHistory, .orderLookup: 0.2
    }
  }
}

/// One environment of the App Store Server API for one app: its URL and a gate per endpoint.
package struct ServerAPIHost: Sendable {
  /// The sandbox has a tenth of production's rate limits.
  package static let sandboxShare = 0.1

  let base: String
  private let gates: [ServerAPIEndpoint: RateGate]

  /// - Parameters:
  ///   - url: without `/inApps`.
  ///   - requestsPerSecond: for an endpoint with Apple's full limit; nil or at most zero: unlimited.
  package init(
    url: EndpointURL, requestsPerSecond: Double?,
    gate: (ServerAPIEndpoint, Double?) -> RateGate = { RateGate(rate: $1) }
  ) {
    base = url.base
    gates = Dictionary(
      uniqueKeysWithValues: ServerAPIEndpoint.allCases.map { endpoint in
        (endpoint, gate(endpoint, requestsPerSecond.map { $0 * endpoint.rateShare }))
      })
  }

  func admit(_ endpoint: ServerAPIEndpoint, while isWanted: (@Sendable () -> Bool)?) async throws(CancellationError) {
    try await gates[endpoint]?.admit(while: isWanted)
  }

  func isRateLimited(_ endpoint: ServerAPIEndpoint) -> Bool { gates[endpoint]?.isRateLimited ?? false }

  /// Applies a `Retry-After` to all endpoints, because Apple counts per app.
  func obey(retryAfter span: Span, httpStatus: Int?) {
    for gate in gates.values { gate.obey(retryAfter: span, httpStatus: httpStatus) }
  }
}
