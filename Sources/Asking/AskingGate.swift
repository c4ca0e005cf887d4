import AppStore
import AuditStore
import Reconciliation
import Synchronization

/// Who may still be asked: a circuit breaker for each app and side, and what has ended an app's re-check for good.
///
/// One app's outage, or its refused key, stops that app only.
final class AskingGate: Sendable {
  /// One app on one side.
  struct Lane: Hashable, Sendable {
    var app: String
    var side: AppleHost
  }

  /// The right to put one question on a lane.
  struct Permit: Sendable {
    fileprivate var lane: Lane
    fileprivate var permit: CircuitBreaker.Permit
  }

  enum Admission: Sendable {
    case granted(Permit)
    case refused(wait: Duration)
    /// Nobody asks on this lane any more.
    case over
  }

  private struct Health {
    var breaker: CircuitBreaker
    /// When the breaker first opened without closing since.
    var openSince: Duration?
    var hasGivenUp = false
  }

  private struct State {
    private var lanes: [Lane: Health] = [:]
    var faults: [String: String]

    init(faults: [String: String]) { self.faults = faults }

    mutating func with<Value>(_ lane: Lane, _ body: (inout Health) -> Value) -> Value {
      var policy = CircuitBreaker.Policy()
      // A night has a deadline: probe soon, and give up while there is still time for the report.
      policy.firstPause = .seconds(2)
      policy.longestPause = .seconds(16)
      return body(&lanes[lane, default: Health(breaker: CircuitBreaker(policy: policy))])
    }

    /// Without production hardly anything of an app can be asked.
    func hasGivenUp(_ app: String) -> Bool { lanes[Lane(app: app, side: .production)]?.hasGivenUp ?? false }

    func outage(of apps: [String]) -> String? {
      let given = apps.filter { app in
        AppleHost.allCases.contains { lanes[Lane(app: app, side: $0)]?.hasGivenUp ?? false }
      }
      guard !given.isEmpty else { return nil }
      let names = apps.count > 1 ? " about \(given.sorted().joined(separator: ", "))" : ""
      return "Apple did not answer for \(AskingGate.patience.components.seconds) seconds\(names)"
    }
  }

  /// An outage that lasts this long ends the app's re-check; what was not asked stays due.
  static let patience = Duration.seconds(30)

  private let apps: [String]
  private let clock: RateGate.Clock
  private let state: Mutex<State>

  /// - Parameters:
  ///   - apps: the names of all apps.
  ///   - faults: apps that are not asked any more, with the remedy.
  init(apps: [String], faults: [String: String] = [:], clock: RateGate.Clock = .continuous) {
    self.apps = apps
    self.clock = clock
    state = Mutex(State(faults: faults))
  }

  /// Asks for the right to put a question.
  func admit(_ lane: Lane) -> Admission {
    let now = clock.uptime()
    return state.withLock { state in
      if state.faults[lane.app] != nil { return .over }
      return state.with(lane) { health in
        if let since = health.openSince, now - since > Self.patience { health.hasGivenUp = true }
        if health.hasGivenUp { return .over }
        switch health.breaker.admit(now: now) {
        case .granted(let permit): return .granted(Permit(lane: lane, permit: permit))
        case .refused(let wait): return .refused(wait: wait)
        }
      }
    }
  }

  /// Takes in what came of a question that nobody waited for any more.
  func abandon(_ permit: Permit) { _ = record(.abandoned, permit) }

  /// Takes in what an answer says about the lanes that were asked.
  ///
  /// - Returns: the lane that holds its requests back from now on, if any.
  func note(_ answer: ChannelAnswer, _ permit: Permit) -> Lane? {
    if case .fault(let remedy) = answer.meaning {
      state.withLock { $0.faults[permit.lane.app] = $0.faults[permit.lane.app] ?? remedy }
    }
    // A question that went on to the other side was answered by the first one.
    guard let last = answer.asked.last, last != permit.lane.side else { return record(answer.health, permit) }
    _ = record(.success, permit)
    guard answer.health == .failure,
      case .granted(let other) = admit(Lane(app: permit.lane.app, side: last))
    else { return nil }
    return record(.failure, other)
  }

  private func record(_ result: CircuitBreaker.CallResult, _ permit: Permit) -> Lane? {
    let now = clock.uptime()
    return state.withLock { state in
      state.with(permit.lane) { health in
        health.breaker.record(result, permit: permit.permit, now: now)
        let wasOpen = health.openSince != nil
        health.openSince = health.breaker.isOpen ? health.openSince ?? now : nil
        return health.breaker.isOpen && !wasOpen ? permit.lane : nil
      }
    }
  }

  /// Faults of ours by app, with the remedy.
  var faults: [String: String] { state.withLock { $0.faults } }

  /// Why every app's asking has ended; nil as long as one may still be asked.
  var end: String? {
    state.withLock { state in
      let ended = apps.filter { state.faults[$0] != nil || state.hasGivenUp($0) }
      guard ended.count == apps.count else { return nil }
      return state.faults.count == apps.count
        ? "the configuration of every app is refused by Apple" : state.outage(of: apps)
    }
  }

  /// What outage ended an app's asking before everything was asked; nil when none did.
  var outage: String? { state.withLock { $0.outage(of: apps) } }
}
