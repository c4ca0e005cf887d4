import Foundation

/// The endpoints under `/simulator` that control the simulator.
struct ControlInterface: Sendable {
  let simulator: Simulator

  /// `path` comes without `/simulator`; `last` is the number of requests that a report lists.
  func answer(isPost: Bool, path: String, last: Int, body: Data) -> Answer {
    do {
      switch (isPost, path) {
      case (false, "/health"): return .json(["healthy": true])
      case (false, "/requests"): return try .encoding(simulator.log.report(last: last))
      case (true, "/faults"):
        simulator.faults.apply(try JSONDecoder().decode(FaultSettings.self, from: body))
        return .json(["changed": true])
      case (false, "/clock"): return .json(["now": simulator.clock.reading.now])
      case (true, "/clock"):
        simulator.clock.apply(try JSONDecoder().decode(SimulatedClock.Change.self, from: body))
        return .json(["now": simulator.clock.reading.now])
      case (true, "/payload"):
        let order = try JSONDecoder().decode(PayloadFactory.Order.self, from: body)
        return .json(["payload": try simulator.mint(order)])
      case (true, "/world"):
        let world = try World(json: body)
        simulator.replaceWorld(world)
        return try .encoding(world.summary)
      default: return .json(["error": "unknown path or method"], httpStatus: 404)
      }
    } catch {
      return .json(["error": "\(error)"], httpStatus: 400)
    }
  }
}
