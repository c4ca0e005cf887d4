import Foundation
import SampleShops
import Synchronization

/// Settings of the faults. In a change, nil leaves a setting as it is.
struct FaultSettings: Decodable, Sendable {
  var latency: Latency?
  var latencyJitter: Double?
  var errorRate: Double?
  var garbageRate: Double?
  var outage: Bool?
  var force: [Disturbance]?

  mutating func change(by change: FaultSettings) {
    latency = change.latency ?? latency
    latencyJitter = change.latencyJitter.map { min(max($0, 0), 1) } ?? latencyJitter
    errorRate = change.errorRate ?? errorRate
    garbageRate = change.garbageRate ?? garbageRate
    outage = change.outage ?? outage
  }
}

/// Decides the faults of each request.
///
/// Draws depend on the seed, the receipt and the number of earlier requests for it, never on the order of concurrent
/// requests, so equal seeds give equal faults.
final class Faults: Sendable {
  struct DrawnFault: Sendable {
    var latency: Duration
    var disturbance: Disturbance?
  }

  private struct State {
    var settings: FaultSettings
    var force: [Disturbance] = []
    var world: [Disturbance] = []
    var timesAsked: [String: UInt64] = [:]
  }

  private let seed: UInt64
  private let state: Mutex<State>

  init(settings: FaultSettings, seed: UInt64) {
    self.seed = seed
    state = Mutex(State(settings: settings))
  }

  func apply(world: [Disturbance]) {
    state.withLock { $0.world = world }
  }

  func apply(_ change: FaultSettings) {
    state.withLock { state in
      state.settings.change(by: change)
      state.force = change.force ?? state.force
    }
  }

  /// `now` is in milliseconds since the epoch, by the simulated clock.
  func fate(path: String, subject: String, now: Int64) -> DrawnFault {
    state.withLock { state in
      let times = state.timesAsked[path + subject, default: 0]
      state.timesAsked[path + subject] = times + 1
      var generator = SampleRandom(seed: seed, text: path + subject, count: times)
      let settings = state.settings
      // The draws have a fixed order, so that one setting does not affect the draws of another.
      let variation = Double.random(in: -1...1, using: &generator)
      let hasError = Double.random(in: 0..<1, using: &generator) < settings.errorRate ?? 0
      let isDamaged = Double.random(in: 0..<1, using: &generator) < settings.garbageRate ?? 0
      let choice = Int.random(in: 0..<Self.errors.count * Self.damages.count, using: &generator)

      let lot = Double.random(in: 0..<1, using: &generator)

      let latency = Duration.microseconds(
        Int64((settings.latency?.milliseconds ?? 0) * 1_000 * (1 + (settings.latencyJitter ?? 0) * variation)))
      let question = Question(path: path, subject: subject, now: now, lot: lot)
      if let forced = Self.take(&state.force, question) ?? Self.take(&state.world, question) {
        return DrawnFault(latency: forced.latency.map(\.duration) ?? latency, disturbance: forced)
      }
      if settings.outage == true { return DrawnFault(latency: .zero, disturbance: Disturbance(httpStatus: 503)) }
      if hasError {
        let errors =
          path.hasPrefix("/v1/") ? Self.connectErrors : path.contains("/inApps/") ? Self.serverAPIErrors : Self.errors
        return DrawnFault(latency: latency, disturbance: errors[choice % errors.count])
      }
      if isDamaged {
        return DrawnFault(latency: latency, disturbance: Disturbance(body: Self.damages[choice % Self.damages.count]))
      }
      return DrawnFault(latency: latency)
    }
  }

  private struct Question {
    var path: String
    var subject: String
    var now: Int64
    var lot: Double

    func meets(_ disturbance: Disturbance) -> Bool {
      path.hasPrefix(disturbance.path ?? "") && disturbance.subjects?.contains(subject) ?? true
        && disturbance.from ?? .min <= now && now < disturbance.until ?? .max && lot < disturbance.share ?? 1
    }
  }

  private static func take(_ force: inout [Disturbance], _ question: Question) -> Disturbance? {
    guard let index = force.firstIndex(where: question.meets) else { return nil }
    let forced = force[index]
    if let next = forced.next {
      force[index].next = next - 1
      if next <= 1 { force.remove(at: index) }
    }
    return forced
  }

  private static let errors = [
    Disturbance(httpStatus: 500), Disturbance(httpStatus: 503), Disturbance(status: 21_002),
    Disturbance(status: 21_005), Disturbance(status: 21_009), Disturbance(status: 21_104, isRetryable: true),
  ]
  private static let serverAPIErrors = [
    Disturbance(httpStatus: 500), Disturbance(httpStatus: 503), Disturbance(errorCode: 5_000_000),
    Disturbance(errorCode: 5_000_001), Disturbance(errorCode: 4_040_004), Disturbance(errorCode: 4_290_000),
  ]
  private static let connectErrors = [Disturbance(httpStatus: 500), Disturbance(httpStatus: 503)]
  private static let damages: [Damage] = [.empty, .html, .truncated, .wrongType, .closed]
}
