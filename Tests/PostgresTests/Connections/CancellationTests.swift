import Postgres
import Testing

@Suite(.serialized, .timeLimit(.minutes(10)))
struct CancellationTests {
  @Test("cancelling a task interrupts its statement, and the session stays usable")
  func runningStatement() async throws {
    let session = try await openSession()
    let observer = try await openSession()
    let processId = try await session.processId()
    let task = Task { try await session.execute("SELECT pg_sleep(3600)") }
    try await observer.waitUntilActive([processId])
    task.cancel()
    let error = try await postgresError { _ = try await task.value }
    #expect(error.kind == .cancelled && error.sqlState == "57014", "\(error)")
    #expect(try await session.processId() == processId)
  }

  @Test("a cancellation at any moment ends only the statement of the cancelled task") func anyMoment() async throws {
    let session = try await openSession()
    for round in 0..<100 {
      let cancelled = Task { try await session.execute("SELECT pg_sleep(3600)") }
      // Some statements run long enough to be hit by repeated cancel requests for the previous statement.
      async let other = session.execute(
        "SELECT pg_sleep_for($1 * interval '1 ms'), 7", [.int(round % 10 == 0 ? 100 : 0)])
      for _ in 0..<round { await Task.yield() }
      cancelled.cancel()
      let error = try await postgresError { _ = try await cancelled.value }
      #expect(error.kind == .cancelled)
      #expect(try await other.single().int64(1) == 7)
    }
  }

  @Test("cancelling a waiting task does not interrupt the running statement") func waitingStatement() async throws {
    let session = try await openSession()
    let holder = try await openSession()
    let processId = try await session.processId()
    try await holder.execute("SELECT pg_advisory_lock(4711)")
    let running = Task { try await session.execute("SELECT pg_advisory_lock(4711), 7") }
    try await holder.waitUntilActive([processId])
    let waiting = Task { try await session.execute("SELECT 8") }
    waiting.cancel()
    try await holder.execute("SELECT pg_advisory_unlock(4711)")
    #expect(try await running.value.single().int64(1) == 7)
    #expect(try await postgresError { _ = try await waiting.value }.kind == .cancelled)
  }

  @Test("a cancelled transaction is rolled back") func transaction() async throws {
    let session = try await openSession()
    let observer = try await openSession()
    try await session.executeScript("CREATE TEMPORARY TABLE t (n int)")
    let processId = try await session.processId()
    let task = Task {
      try await session.transaction { connection in
        try connection.execute("INSERT INTO t VALUES (1)")
        try connection.execute("SELECT pg_sleep(3600)")
      }
    }
    try await observer.waitUntilActive([processId])
    task.cancel()
    #expect(try await postgresError { _ = try await task.value }.kind == .cancelled)
    #expect(try await session.execute("SELECT 1 FROM t").isEmpty)
    #expect(try await session.withConnection { !$0.isInTransaction })
  }

  @Test("a cancellation interrupts all connections of a blocking thread, running and idle")
  func blockingThread() async throws {
    let conninfo = try await sharedConninfo()
    let (signal, started) = AsyncStream<Void>.makeStream()
    let task = Task {
      try await withBlockingThread { scope in
        defer { started.finish() }
        let idle = try scope.connect(conninfo, applicationName: "x")
        var rows = try scope.connect(conninfo, applicationName: "x").copyOut("SELECT generate_series(1, 100000000000)")
        while try rows.advance() { if rows.rowCount == 1_000 { started.yield() } }
        try idle.execute("SELECT 1")
      }
    }
    for await _ in signal { break }
    task.cancel()
    let error = try await postgresError { try await task.value }
    #expect(error.kind == .cancelled)
  }

  @Test("a cancelled task starts no statement and no connection") func afterwards() async throws {
    let conninfo = try await sharedConninfo()
    let (signal, started) = AsyncStream<Void>.makeStream()
    let task = Task {
      try await withBlockingThread { scope in
        defer { started.finish() }
        let connection = try scope.connect(conninfo, applicationName: "x")
        _ = try postgresError {
          started.yield()
          try connection.execute("SELECT pg_sleep(3600)")
        }
        #expect(scope.isCancelled)
        #expect(connection.isCancelled == true)
        #expect(try postgresError { try connection.execute("SELECT 1") }.kind == .cancelled)
        #expect(try postgresError { _ = try connection.copyOut("SELECT 1") }.kind == .cancelled)
        #expect(try postgresError { _ = try scope.connect(conninfo, applicationName: "x") }.kind == .cancelled)
      }
    }
    for await _ in signal { break }
    task.cancel()
    try await task.value
  }

  @Test("a COPY into a table is interrupted and writes nothing") func copyIn() async throws {
    let session = try await openSession()
    try await session.executeScript("CREATE TEMPORARY TABLE t (n int8)")
    let (signal, started) = AsyncStream<Void>.makeStream()
    let task = Task {
      try await session.withConnection { connection in
        try connection.copyIn(into: try PostgresIdentifier("t"), columns: ["n"]) { writer in
          defer { started.finish() }
          while true {
            try writer.write(.int(1))
            if writer.rowCount == 100_000 { started.yield() }
          }
        }
      }
    }
    for await _ in signal { break }
    task.cancel()
    #expect(try await postgresError { _ = try await task.value }.kind == .cancelled)
    #expect(try await session.execute("SELECT count(*) FROM t").single().int64(0) == 0)
  }

  @Test("waiting sessions and blocking threads do not block the cooperative thread pool")
  func poolIsFree() async throws {
    let conninfo = try await sharedConninfo() + " application_name=pool"
    let holder = try await openSession()
    try await holder.execute("SELECT pg_advisory_lock(4712)")
    let wait = "SELECT pg_advisory_xact_lock_shared(4712)"
    // Far more than the cooperative pool has threads: if they were blocked, no thread could release the lock.
    let waiting = (0..<20).flatMap { _ in
      [
        Task { _ = try await PostgresSession.connect(conninfo, applicationName: "").execute(wait) },
        Task {
          try await withBlockingThread { scope in _ = try scope.connect(conninfo, applicationName: "").execute(wait) }
        },
      ]
    }
    let blocked = """
      SELECT count(*) FROM pg_stat_activity WHERE application_name = 'pool' AND wait_event_type = 'Lock'
      """
    while try await holder.execute(blocked).single().int64(0) < Int64(waiting.count) {}
    try await holder.execute("SELECT pg_advisory_unlock(4712)")
    for task in waiting { try await task.value }
  }
}
