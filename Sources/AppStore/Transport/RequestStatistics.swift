import Synchronization

/// How often Apple was asked, what came of it, and how long replies took, counted as Prometheus wants it.
package final class RequestStatistics: Sendable {
  /// What came of one request, as HTTP says it.
  package enum Outcome: String, Sendable {
    /// 2xx, whatever the answer says.
    case answered
    /// 404: that side of Apple's does not know what it was asked about.
    case notFound = "not_found"
    /// 429.
    case rateLimited = "rate_limited"
    /// Any other 4xx, and what leads elsewhere.
    case refused
    /// 5xx.
    case failed
    /// No connection, or no reply in time.
    case unreachable
    /// Something that is no HTTP, or too much of it.
    case unreadable

    init(_ result: Result<HTTPReply, HTTPFailure>) {
      switch result {
      case .success(let reply):
        switch reply.status {
        case 200..<300: self = .answered
        case 404: self = .notFound
        case 429: self = .rateLimited
        case 500...: self = .failed
        default: self = .refused
        }
      case .failure(.unreachable): self = .unreachable
      case .failure(.unreadable): self = .unreadable
      }
    }
  }

  /// Requests of one app that came to the same.
  package struct Group: Hashable, Sendable {
    package var app: String
    package var outcome: Outcome
  }

  /// What was counted.
  package struct Counts: Hashable, Sendable {
    package fileprivate(set) var requests: [Group: Int] = [:]
    /// Replies that took at most the bound of the same place, each bucket with all before it. What brought no reply is not
    /// in them: how long nothing came is the timeout's doing.
    package fileprivate(set) var cumulative = Array(repeating: 0, count: bounds.count)
    package fileprivate(set) var replies = 0
    /// Of all replies, in seconds.
    package fileprivate(set) var seconds = 0.0
  }

  /// Seconds; Apple usually takes a few, and the timeout is 30 s.
  package static let bounds = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30]

  private let state = Mutex(Counts())

  package init() {}

  func record(_ result: Result<HTTPReply, HTTPFailure>, of app: String, after duration: Duration) {
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
