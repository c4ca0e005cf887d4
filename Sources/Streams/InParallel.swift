import Foundation

/// Runs `body` for each number below `count` on its own thread. Returns the results in order, or throws the first
/// error. All run at once, because `body` mostly waits for a server. It must not share mutable state between numbers.
public func inParallel<Result>(_ count: Int, _ body: (Int) throws -> Result) throws -> [Result] {
  if count == 1 { return [try body(0)] }
  var results: [Swift.Result<Result, any Error>?] = Array(repeating: nil, count: count)
  results.withUnsafeMutableBufferPointer { places in
    withoutActuallyEscaping(body) { body in
      let work = Work(body)
      // Safe because each number writes its own element, and all threads end before this returns.
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

// A class that releases the closure, because a thread may keep a reference after its work is done.
private final class Work<Value> {
  var body: ((Int) throws -> Value)?

  init(_ body: @escaping (Int) throws -> Value) { self.body = body }

  func result(of number: Int) -> Result<Value, any Error>? { body.map { body in Result { try body(number) } } }
}
