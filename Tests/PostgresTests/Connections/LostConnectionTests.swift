import Postgres
import TestSupport
import Testing

@Suite(.serialized, .timeLimit(.minutes(10)))
struct LostConnectionTests {
  @Test("a terminated backend is a lost connection, for the running statement and later ones")
  func terminated() async throws {
    let session = try await openSession()
    let observer = try await openSession()
    let processId = try await session.processId()
    let task = Task { try await session.execute("SELECT pg_sleep(3600)") }
    try await observer.waitUntilActive([processId])
    try await observer.execute("SELECT pg_terminate_backend($1::int)", [.int(processId)])
    let error = try await postgresError { _ = try await task.value }
    #expect(error.kind == .connectionLost && error.isConnectionLost && error.sqlState == "57P01", "\(error)")
    #expect(error.statement == "SELECT pg_sleep(3600)")
    for _ in 0..<2 {
      #expect(try await postgresError { try await session.execute("SELECT 1") }.isConnectionLost)
      #expect(try await postgresError { try await session.executeScript("SELECT 1") }.isConnectionLost)
      #expect(try await postgresError { try await session.transaction { _ in } }.isConnectionLost)
    }
    await session.close()
  }

  @Test("the next statement reports the termination of an idle connection") func terminatedWhileIdle() async throws {
    let session = try await openSession()
    let observer = try await openSession()
    let processId = try await session.processId()
    try await observer.execute("SELECT pg_terminate_backend($1::int, 30000)", [.int(processId)])
    #expect(try await postgresError { try await session.execute("SELECT 1") }.isConnectionLost)
  }

  @Test("streams in both directions report the loss") func streams() async throws {
    let observer = try await openSession()
    let conninfo = try await sharedConninfo()
    let outgoing = try await postgresError {
      let (signal, started) = AsyncStream<Int32>.makeStream()
      async let stream: Void = withBlockingThread { scope in
        defer { started.finish() }
        let connection = try scope.connect(conninfo, applicationName: "x")
        var rows = try connection.copyOut("SELECT generate_series(1, 100000000000)")
        while try rows.advance() { if rows.rowCount == 1_000 { started.yield(connection.backendProcessId) } }
      }
      for await processId in signal {
        try await observer.execute("SELECT pg_terminate_backend($1::int)", [.int(Int64(processId))])
        break
      }
      try await stream
    }
    #expect(outgoing.isConnectionLost)
    let incoming = try await postgresError {
      try await withBlockingThread { scope in
        let connection = try scope.connect(conninfo, applicationName: "x")
        let other = try scope.connect(conninfo, applicationName: "y")
        try connection.executeScript("CREATE TEMPORARY TABLE t (n int8)")
        try connection.copyIn(into: try PostgresIdentifier("t"), columns: ["n"]) { writer in
          try writer.write(.int(1))
          try other.executeScript("SELECT pg_terminate_backend(\(connection.backendProcessId), 30000)")
          while true { try writer.write(.int(1)) }
        }
      }
    }
    #expect(incoming.isConnectionLost)
  }

  @Test("reading from a cut connection ends with an error, also within a message") func cutAnywhere() async throws {
    let cluster = try await PrivatePostgres.shared()
    let parameters = "port=5432 user=postgres dbname=postgres"
    // Reads all rows. A cut stream must not make it hang.
    @Sendable func rows(through directory: String) async throws -> Int {
      try await withBlockingThread { scope in
        let connection = try scope.connect("host=\(directory) \(parameters)", applicationName: "cut")
        var rows = try connection.copyOut("SELECT n FROM generate_series(1, 50) AS n")
        while try rows.advance() {}
        return rows.rowCount
      }
    }
    let whole = try DisconnectingRelay(before: cluster.directory, limit: .max)
    #expect(try await rows(through: whole.directory) == 50)
    /// Returns the number of cut streams.
    @Sendable func cut(after limits: StrideTo<Int>) async throws -> Int {
      var cuts = 0
      for limit in limits {
        let relay = try DisconnectingRelay(before: cluster.directory, limit: limit)
        do {
          let count = try await rows(through: relay.directory)
          #expect(count == 50, "a stream that ends without an error is complete; cut after \(limit) bytes")
          break
        } catch let error as PostgresError {
          #expect(error.isConnectionLost || error.kind == .connectionFailed, "cut after \(limit) bytes: \(error)")
          cuts += 1
        }
      }
      return cuts
    }
    // Several at once, because each waits for the server.
    let cuts = try await withThrowingTaskGroup(of: Int.self) { group in
      for first in stride(from: 1, to: 29, by: 7) {
        group.addTask { try await cut(after: stride(from: first, to: 1_500, by: 28)) }
      }
      return try await group.reduce(0, +)
    }
    #expect(cuts > 100)
  }

  @Test("a statement on a closed session is a usage error") func closed() async throws {
    let session = try await openSession()
    await session.close()
    #expect(try await postgresError { try await session.execute("SELECT 1") }.kind == .usage)
  }
}
