import AppStore
import Reconciliation
import Synchronization

/// Decides which apps may be asked: a circuit breaker per app and side, and faults that end an app. An outage or a
/// refused key stops its app only. A silent app is probed at growing intervals until the night ends.
package final class AskingGate: Sendable {
  struct Lane: Hashable, Sendable {
    var app: String
    var side: AppleHost
  }

  struct Condition {
    /// The number of questions that Apple has answered on the lane tonight.
    var answered: Int
    /// How long Apple has answered no question; nil while it answers.
    var unansweredDuration: Duration?
  }

  struct Permit: Sendable {
    var lane: Lane
    fileprivate var permit: CircuitBreaker.Permit
  }

  enum Admission: Sendable {
    case granted(Permit)
    case refused
    case over
  }

  /// A credential that may be refused; nil stands for the requests about the app.
  private struct CredentialKey: Hashable {
    var app: String
    var credential: AppleFault.Credential?
  }

  private struct State {
    var breakers: [Lane: CircuitBreaker] = [:]
    var answered: [Lane: Int] = [:]
    var silentSince: [Lane: Duration] = [:]
    var trials: [CredentialKey: CredentialRefusals<AppleFault.Kind>] = [:]
    var faults: [String: String] = [:]
  }

  private let apps: [String]
  private let clock: RateGate.Clock
  private let state = Mutex(State())

  package init(apps: [String], clock: RateGate.Clock = .continuous) {
    (self.apps, self.clock) = (apps, clock)
  }

  func admit(_ lane: Lane) -> Admission {
    let now = clock.uptime()
    return state.withLock { state in
      if state.faults[lane.app] != nil { return .over }
      let permit = state.breakers[lane, default: CircuitBreaker()].admit(now: now)
      return permit.map { .granted(Permit(lane: lane, permit: $0)) } ?? .refused
    }
  }

  /// True if a question may still be asked: the app has no fault, and the lane's breaker has not changed.
  func stands(_ permit: Permit) -> Bool {
    state.withLock { state in
      state.faults[permit.lane.app] == nil
        && state.breakers[permit.lane, default: CircuitBreaker()].stands(permit.permit)
    }
  }

  func condition(of lane: Lane) -> Condition {
    let now = clock.uptime()
    return state.withLock { state in
      Condition(
        answered: state.answered[lane, default: 0], unansweredDuration: state.silentSince[lane].map { now - $0 })
    }
  }

  func places(on lane: Lane) -> Int {
    let now = clock.uptime()
    return state.withLock { $0.breakers[lane]?.places(now: now) ?? .max }
  }

  func isOver(for app: String) -> Bool { state.withLock { $0.faults[app] != nil } }

  func abandon(_ permit: Permit) { _ = record(.abandoned, permit) }

  /// Records that Apple accepted a credential of the app, or a request about it (nil).
  package func accept(_ credential: AppleFault.Credential?, of app: String) {
    state.withLock {
      $0.trials[CredentialKey(app: app, credential: credential), default: CredentialRefusals()].accept()
    }
  }

  /// Records a refused credential. `isSecondAttempt` is true after a retry with a new token.
  package func refuse(
    _ fault: AppleFault, app: String, id: String, isSecondAttempt: Bool
  ) -> CredentialRefusals<AppleFault.Kind>.Step {
    state.withLock { state in
      let accused = CredentialKey(app: app, credential: fault.credential)
      let step = state.trials[accused, default: CredentialRefusals()].refuse(
        fault.kind, id: id, isSecondAttempt: isSecondAttempt)
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

  /// The remedies of configuration faults, by app.
  package var faults: [String: String] { state.withLock { $0.faults } }

  /// Why no app may be asked any more; nil while one may.
  var end: String? {
    state.withLock { state in
      !apps.isEmpty && apps.allSatisfy { state.faults[$0] != nil }
        ? "Apple refuses the configuration of every app" : nil
    }
  }

  var silent: [String] {
    state.withLock { state in
      apps.filter { app in AppleHost.allCases.contains { state.silentSince[Lane(app: app, side: $0)] != nil } }.sorted()
    }
  }
}
