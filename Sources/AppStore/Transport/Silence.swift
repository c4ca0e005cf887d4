import Reconciliation

/// The reason why there is no answer, and the host's `Retry-After`.
package struct Silence: Error, Hashable, Sendable {
  package enum Reason: String, Hashable, CaseIterable, Sendable {
    /// No connection, no TLS, no response in time, or a lost connection.
    case unreachable
    case rateLimited = "rate_limited"
    /// An error at Apple's side or an unreadable response.
    case appleError = "apple_error"
  }

  package var reason: Reason
  /// A text of a small set, for logs and counts, without receipt, secret or response.
  package var detail: String
  package var retryAfter: Instant?

  static func unreachable(_ detail: String) -> Silence { Silence(reason: .unreachable, detail: detail) }
  static func appleError(_ detail: String) -> Silence { Silence(reason: .appleError, detail: detail) }

  package static let deferredByRateLimit = Silence(reason: .rateLimited, detail: "Apple asked for a later request")
}
