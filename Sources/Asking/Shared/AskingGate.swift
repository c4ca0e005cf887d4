import AppStore
import Reconciliation
import Synchronization

/// Who may still be asked: a circuit breaker for each app and side, and what has ended an app's re-check for good.
///
/// One app's outage, or its refused key, stops that app only. While an app is silent it is tried again at growing
/// intervals; only the night's end gives it up.
package final class AskingGate: Sendable {
  /// One app on one side.
  struct Lane: Hashable, Sendable {
    var app: String
    var side: AppleHost
  }

  /// What a lane is like.
  struct Condition {
    /// How many questions Apple has answered on it tonight.
    var answered: Int
    /// For how long Apple has answered nobody; nil while it answers.
    var silentFor: Duration?
  }

  /// The right to put one question on a lane.
  struct Permit: Sendable {
    var lane: Lane
    fileprivate var permit: CircuitBreaker.Permit
  }

  enum Admission: Sendable {
    case granted(Permit)
    case refused(wait: Duration)
    /// Nobody asks on this lane any more.
    case over
  }

  /// What is on trial: a credential of an app, or with nil the requests about it.
  private struct Accused: Hashable {
    var app: String
    var credential: AppleFault.Credential?
  }

  private struct State {
    var breakers: [Lane: CircuitBreaker] = [:]
    var answered: [Lane: Int] = [:]
    var silentSince: [Lane: Duration] = [:]
    var trials: [Accused: CredentialTrial<AppleFault.Kind>] = [:]
    var faults: [String: String] = [:]
  }

  private let apps: [String]
  private let clock: RateGate.Clock
  private let state = Mutex(State())

  /// - Parameter apps: the names of all apps.
  package init(apps: [String], clock: RateGate.Clock = .continuous) {
    self.apps = apps
    self.clock = clock
  }

  /// Asks for the right to put a question.
  func admit(_ lane: Lane) -> Admission {
    let now = clock.uptime()
    return state.withLock { state in
      if state.faults[lane.app] != nil { return .over }
      switch state.breakers[lane, default: CircuitBreaker()].admit(now: now) {
      case .granted(let permit): return .granted(Permit(lane: lane, permit: permit))
      case .refused(let wait): return .refused(wait: wait)
      }
    }
  }

  /// Whether a question may still be put with that right: nobody has put an end to it, and the lane has not changed since.
  func stands(_ permit: Permit) -> Bool {
    state.withLock { state in
      state.faults[permit.lane.app] == nil
        && state.breakers[permit.lane, default: CircuitBreaker()].stands(permit.permit)
    }
  }

  func condition(of lane: Lane) -> Condition {
    let now = clock.uptime()
    return state.withLock { state in
      Condition(answered: state.answered[lane, default: 0], silentFor: state.silentSince[lane].map { now - $0 })
    }
  }

  /// How many questions need not wait on a lane now.
  func places(on lane: Lane) -> Int {
    let now = clock.uptime()
    return state.withLock { $0.breakers[lane]?.places(now: now) ?? .max }
  }

  /// Whether nobody asks about an app any more.
  func isOver(for app: String) -> Bool { state.withLock { $0.faults[app] != nil } }

  /// Takes in what came of a question that was not put, or that nobody waited for any more.
  func abandon(_ permit: Permit) { _ = record(.abandoned, permit) }

  /// Apple has accepted a credential of the app, or with nil a request about it.
  package func accept(_ credential: AppleFault.Credential?, of app: String) {
    state.withLock { $0.trials[Accused(app: app, credential: credential), default: CredentialTrial()].accept() }
  }

  /// Takes in that a question was refused with its credential.
  ///
  /// - Parameters:
  ///   - id: what was asked about.
  ///   - isSecondTime: whether it was refused before, and asked again with a fresh token.
  package func refuse(
    _ fault: AppleFault, app: String, id: String, isSecondTime: Bool
  ) -> CredentialTrial<AppleFault.Kind>.Step {
    state.withLock { state in
      let accused = Accused(app: app, credential: fault.credential)
      let step = state.trials[accused, default: CredentialTrial()].refuse(
        fault.kind, id: id, isSecondTime: isSecondTime)
      if step == .endApp { state.faults[app] = state.faults[app] ?? fault.message }
      return step
    }
  }

  func record(_ result: CircuitBreaker.CallResult, _ permit: Permit) -> Lane? {
    let now = clock.uptime()
    return state.withLock { state in
      if result == .success { state.answered[permit.lane, default: 0] += 1 }
      state.breakers[permit.lane, default: CircuitBreaker()].record(result, permit: permit.permit, now: now)
      guard state.breakers[permit.lane]?.isOpen ?? false else {
        state.silentSince[permit.lane] = nil
        return nil
      }
      let isNews = state.silentSince[permit.lane] == nil
      if isNews { state.silentSince[permit.lane] = now }
      return isNews ? permit.lane : nil
    }
  }

  /// Faults of ours by app, with the remedy.
  package var faults: [String: String] { state.withLock { $0.faults } }

  /// Why every app's asking has ended; nil as long as one may still be asked.
  var end: String? {
    state.withLock { state in
      !apps.isEmpty && apps.allSatisfy { state.faults[$0] != nil }
        ? "the configuration of every app is refused by Apple" : nil
    }
  }

  /// The apps that Apple does not answer about now.
  var silent: [String] {
    state.withLock { state in
      apps.filter { app in AppleHost.allCases.contains { state.silentSince[Lane(app: app, side: $0)] != nil } }.sorted()
    }
  }
}
