import Synchronization

/// Values that the first caller of a key makes for all of them.
package final class MadeOnce<Key: Hashable & Sendable, Value: Sendable>: Sendable {
  private let tasks = Mutex<[Key: Task<Value, any Error>]>([:])

  package init() {}

  package func value(of key: Key, make: @escaping @Sendable () async throws -> Value) async throws -> Value {
    let task = tasks.withLock { tasks in
      let task = tasks[key] ?? Task { try await make() }
      tasks[key] = task
      return task
    }
    return try await task.value
  }
}
