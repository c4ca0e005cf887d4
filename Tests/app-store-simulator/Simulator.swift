import Foundation
import Synchronization

final class Simulator: Sendable {
  let faults: Faults
  let log: RequestLog
  let clock: SimulatedClock
  let serverAPI: ServerAPIInterface
  private let current: Mutex<World>
  private let receipts = Mutex<Result<ReceiptAuthority, any Error>?>(nil)

  /// Created on first use, because RSA keys take a second.
  var receiptAuthority: Result<ReceiptAuthority, any Error> {
    receipts.withLock { receipts in
      let made = receipts ?? Result { try ReceiptAuthority() }
      receipts = made
      return made
    }
  }

  init(world: World, faults: Faults, log: RequestLog, serverAPI: ServerAPIInterface) {
    current = Mutex(world)
    self.faults = faults
    self.log = log
    self.serverAPI = serverAPI
    clock = SimulatedClock(now: world.now)
    faults.apply(world: world.faults)
  }

  var world: World { current.withLock { $0 } }

  /// A world without a time leaves the clock unchanged.
  func replaceWorld(_ world: World) {
    if let now = world.now { clock.apply(SimulatedClock.Change(now: now)) }
    faults.apply(world: world.faults)
    let moment = clock.reading.now
    current.withLock { $0 = world.following($0, at: moment) }
  }

  /// Makes a client's payload and remembers its receipt.
  func mint(_ order: PayloadFactory.Order) throws -> String {
    let mint = PayloadFactory(
      authority: serverAPI.authority, receipts: try receiptAuthority.get(), world: world, time: clock.reading)
    let product = try mint.make(order)
    if var receipt = product.receipt {
      receipt.isMinted = true
      current.withLock { $0 = $0.adding(receipt) }
    }
    return product.payload
  }

  /// Serves a request to Apple: counts, delays, answers, and applies faults. `respond` answers when the answer is due.
  func serve(path: String, subject: String, respond: (World, SimulatedClock.Reading) -> Answer) async throws -> Answer {
    log.arrived(path: path)
    let fate = faults.fate(path: path, subject: subject, now: clock.reading.now)
    // Sleeping is safe, because the latency is simulated. Zero is skipped, because stress tests need thousands of
    // answers a second.
    if fate.latency > .zero { try await Task.sleep(for: fate.latency) }
    var answer = respond(world, clock.reading)
    if let disturbance = fate.disturbance {
      answer = try answer.disturbed(by: disturbance, authority: serverAPI.authority)
    }
    log.answered(
      RequestLog.Entry(
        time: Date.now.formatted(.iso8601), path: path, subject: subject, http: answer.httpStatus,
        status: answer.appleStatus, latencyMilliseconds: Int(fate.latency / .milliseconds(1))))
    return answer
  }
}
