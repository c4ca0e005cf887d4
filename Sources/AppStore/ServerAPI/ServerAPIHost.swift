import Reconciliation

/// The interfaces of the App Store Server API that the audit uses. Apple limits each of them for itself.
package enum ServerAPIEndpoint: String, Hashable, CaseIterable, Sendable {
  /// Get Transaction Info.
  case transactionInfo
  /// Get Transaction History, version 2. Version 1 leaves out finished consumables.
  case transactionHistory
  /// Get All Subscription Statuses.
  case subscriptionStatuses
  /// Get Refund History, version 2.
  case refundHistory
  /// Get Notification History.
  case notificationHistory
  /// Look Up Order ID.
  case orderLookup

  /// What follows the address of the side, without the id.
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

  /// How its limit compares to that of the others (Apple: "Identifying rate limits"): 10 a second against 50.
  package var rateShare: Double {
    switch self {
    case .transactionInfo, .transactionHistory, .subscriptionStatuses, .notificationHistory: 1
    case .refundHistory, .orderLookup: 0.2
    }
  }
}

/// One side of the App Store Server API for one app: where it is, and how fast each interface may be asked.
package struct ServerAPIHost: Sendable {
  /// Apple's production address ("App Store Server API").
  package static let productionURL = "https://api.storekit.apple.com"
  /// Apple's sandbox address.
  package static let sandboxURL = "https://api.storekit-sandbox.apple.com"
  /// The sandbox grants a tenth of what production does.
  package static let sandboxShare = 0.1

  let base: String
  private let gates: [ServerAPIEndpoint: RateGate]

  /// - Parameters:
  ///   - url: without `/inApps`; a slash at its end makes no difference.
  ///   - requestsPerSecond: of one interface with Apple's full limit on this side; nil, zero or less: as fast as asked.
  ///   - gate: makes the door of one interface, given its rate; nil: its own.
  package init(
    url: EndpointURL, requestsPerSecond: Double?,
    gate: (ServerAPIEndpoint, Double?) -> RateGate = { RateGate(rate: $1) }
  ) {
    var base = url.text[...]
    while base.hasSuffix("/") { base.removeLast() }
    self.base = String(base)
    gates = Dictionary(
      uniqueKeysWithValues: ServerAPIEndpoint.allCases.map { endpoint in
        (endpoint, gate(endpoint, requestsPerSecond.map { $0 * endpoint.rateShare }))
      })
  }

  /// Returns when one request may be sent. Throws when the task is cancelled before, or it is not wanted any more.
  func admit(_ endpoint: ServerAPIEndpoint, while isWanted: (@Sendable () -> Bool)?) async throws(CancellationError) {
    try await gates[endpoint]?.admit(while: isWanted)
  }

  /// Whether nobody is let through to an interface for a while.
  func isHeldUp(_ endpoint: ServerAPIEndpoint) -> Bool { gates[endpoint]?.isHeldUp ?? false }

  /// Obeys an answer's `Retry-After`, whatever the interface: Apple counts by app.
  func obey(retryAfter span: Span, httpStatus: Int?) {
    for gate in gates.values { gate.obey(retryAfter: span, httpStatus: httpStatus) }
  }
}
