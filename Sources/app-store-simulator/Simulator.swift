import Foundation
import Synchronization

/// Everything the interfaces share.
final class Simulator: Sendable {
  let faults: Faults
  let log: RequestLog
  private let current: Mutex<World>

  init(world: World, faults: Faults, log: RequestLog) {
    current = Mutex(world)
    self.faults = faults
    self.log = log
  }

  var world: World { current.withLock { $0 } }

  func replaceWorld(_ world: World) { current.withLock { $0 = world } }

  /// Takes a request to one of Apple's interfaces through its fate: counted, delayed, answered, perhaps disturbed.
  /// - Parameters:
  ///   - subject: a digest of what the request is about.
  ///   - respond: the true answer from the world as it is when the answer is due.
  func serve(path: String, subject: String, respond: (World, Int64) -> Answer) async throws -> Answer {
    log.arrived(path: path)
    let fate = faults.fate(path: path, subject: subject)
    // Without a latency no clock is needed, and thousands of answers a second are asked for in stress tests.
    if fate.latency > .zero { try await Task.sleep(for: fate.latency) }
    let now = Date.now
    let milliseconds = Int64(now.timeIntervalSince1970 * 1_000)
    var answer = respond(world, milliseconds)
    if let disturbance = fate.disturbance { answer = answer.disturbed(by: disturbance) }
    log.answered(
      RequestLog.Entry(
        time: now.formatted(.iso8601), path: path, subject: subject, http: answer.httpStatus,
        status: answer.appleStatus, latencyMilliseconds: Int(fate.latency / .milliseconds(1))))
    return answer
  }
}
