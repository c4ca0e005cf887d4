import Synchronization

/// Counts of requests to Apple, and a histogram of response times for Prometheus.
package final class RequestStatistics: Sendable {
  package enum Outcome: String, Sendable {
    case answered
    case notFound = "not_found"
    /// 429.
    case rateLimited = "rate_limited"
    /// Any other 4xx, and redirects.
    case refused
    /// 5xx.
    case failed
    /// No connection, or no response in time.
    case unreachable
    /// Not HTTP, or too long.
    case unreadable

    init(_ result: Result<HTTPReply, Silence>) {
      switch result {
      case .success(let reply):
        switch reply.status {
        case 200..<300: self = .answered
        case 404: self = .notFound
        case 429: self = .rateLimited
        case 500...: self = .failed
        default: self = .refused
        }
      case .failure(let silence): self = silence.reason == .unreachable ? .unreachable : .unreadable
      }
    }
  }

  package struct Group: Hashable, Sendable {
    package var app: String
    package var outcome: Outcome
  }

  package struct Counts: Hashable, Sendable {
    package fileprivate(set) var requests: [Group: Int] = [:]
    /// The number of responses within each bound, cumulative. Requests without a response are excluded, because their
    /// duration is the timeout.
    package fileprivate(set) var cumulative = Array(repeating: 0, count: bounds.count)
    package fileprivate(set) var replies = 0
    package fileprivate(set) var seconds = 0.0
  }

  /// Upper bounds in seconds; Apple usually takes a few, and the timeout is 30 s.
  package static let bounds = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30]

  private let state = Mutex(Counts())

  package init() {}

  func record(_ result: Result<HTTPReply, Silence>, of app: String, after duration: Duration) {
    let seconds = duration / .seconds(1)
    state.withLock { counts in
      counts.requests[Group(app: app, outcome: Outcome(result)), default: 0] += 1
      guard case .success = result else { return }
      counts.replies += 1
      counts.seconds += seconds
      for (index, bound) in RequestStatistics.bounds.enumerated() where seconds <= bound {
        counts.cumulative[index] += 1
      }
    }
  }

  package var counts: Counts { state.withLock { $0 } }
}
