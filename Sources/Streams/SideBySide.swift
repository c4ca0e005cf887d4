import Dispatch

/// Runs `body` once for each number below `count`, side by side on as many threads as there are processors, and waits for all
/// of them. `body` may block, and must share nothing that changes between two numbers. One alone runs on the calling thread.
///
/// - Returns: the results in the order of the numbers.
/// - Throws: the first error in that order.
public func sideBySide<Result>(_ count: Int, _ body: (Int) throws -> Result) throws -> [Result] {
  if count == 1 { return [try body(0)] }
  var results: [Swift.Result<Result, any Error>?] = Array(repeating: nil, count: count)
  results.withUnsafeMutableBufferPointer { places in
    withoutActuallyEscaping(body) { body in
      // Each number has a place of its own, and all are done before this returns.
      nonisolated(unsafe) let (places, body) = (places, body)
      DispatchQueue.concurrentPerform(iterations: count) { number in
        places[number] = Swift.Result { try body(number) }
      }
    }
  }
  return try results.compactMap { try $0?.get() }
}
