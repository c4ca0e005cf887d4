import Foundation
import Testing

@testable import Streams

@Suite struct InParallelTests {
  @Test("All numbers run at once, even if there are more of them than processors")
  func allAtOnce() throws {
    let count = 3 * ProcessInfo.processInfo.activeProcessorCount + 1
    let arrived = DispatchSemaphore(value: 0)
    let everybody = DispatchSemaphore(value: 0)
    let met = try inParallel(count) { number in
      arrived.signal()
      if number == 0 {
        for _ in 0..<count where arrived.wait(timeout: .now() + 60) == .timedOut { return false }
        for _ in 0..<count { everybody.signal() }
      }
      return everybody.wait(timeout: .now() + 60) == .success
    }
    #expect(met == Array(repeating: true, count: count))
  }

  @Test("Results are in the order of the numbers, and the error of the smallest number is thrown")
  func order() throws {
    struct Failure: Error, Equatable { var number: Int }
    #expect(try inParallel(7) { $0 * $0 } == [0, 1, 4, 9, 16, 25, 36])
    #expect(try inParallel(0) { $0 } == [])
    #expect(throws: Failure(number: 2)) { try inParallel(5) { if $0 > 1 { throw Failure(number: $0) } } }
  }
}
