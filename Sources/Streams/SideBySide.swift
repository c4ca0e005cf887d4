import Foundation

/// Runs `body` once for each number below `count`, each on a thread of its own, and waits for all of them.
///
/// All of them are at work at once, because `body` mostly waits for a server. It must share nothing that changes between two
/// numbers. The first number runs on the calling thread.
///
/// - Returns: the results in the order of the numbers.
/// - Throws: the first error in that order.
public func sideBySide<Result>(_ count: Int, _ body: (Int) throws -> Result) throws -> [Result] {
  if count == 1 { return [try body(0)] }
  var results: [Swift.Result<Result, any Error>?] = Array(repeating: nil, count: count)
  results.withUnsafeMutableBufferPointer { places in
    withoutActuallyEscaping(body) { body in
      let work = Work(body)
      // Each number has a place of its own, and all are done before this returns.
      nonisolated(unsafe) let (places, shared) = (places, work)
      let group = DispatchGroup()
      for number in 1..<max(1, count) {
        group.enter()
        Thread {
          places[number] = shared.result(of: number)
          group.leave()
        }.start()
      }
      if count > 0 { places[0] = work.result(of: 0) }
      group.wait()
      work.body = nil
    }
  }
  return try results.compactMap { try $0?.get() }
}

/// Holds the closure of `sideBySide`, because a thread may release what it holds after its work is done.
private final class Work<Value> {
  var body: ((Int) throws -> Value)?

  init(_ body: @escaping (Int) throws -> Value) { self.body = body }

  func result(of number: Int) -> Result<Value, any Error>? { body.map { body in Result { try body(number) } } }
}
