import Glibc
import Postgres
import TestSupport
import Testing

/// A server that neither answers nor closes its connections, as with a dead disk.
@Suite(.serialized, .timeLimit(.minutes(10))) struct StalledServerTests {
  // A server of its own, because whole servers are stopped. The tests of a serialized suite share it.
  private static let started = Task { try await PrivatePostgres.start() }

  private func server() async throws -> (cluster: PrivatePostgres, conninfo: String) {
    let cluster = try await Self.started.value
    return (cluster, try await cluster.createDatabase())
  }

  private static var impatient: SessionProfile {
    var profile = SessionProfile.store
    profile.cancellationGrace = .milliseconds(500)
    return profile
  }

  private func stopping<R>(_ processes: [Int32], _ body: () async throws -> R) async throws -> R {
    for process in processes { try #require(kill(process, SIGSTOP) == 0) }
    defer { for process in processes { kill(process, SIGCONT) } }
    return try await body()
  }

  @Test("cancelling its task ends a statement without an answer", arguments: [false, true])
  func cancellation(isWholeServerStalled: Bool) async throws {
    let (cluster, conninfo) = try await server()
    let session = try await PostgresSession.connect(conninfo, applicationName: "x", profile: Self.impatient)
    let backend = Int32(try await session.processId())
    try await stopping(isWholeServerStalled ? [try cluster.serverProcess, backend] : [backend]) {
      let task = Task { try await session.transaction { connection in try connection.execute("SELECT 1") } }
      task.cancel()
      #expect(try await postgresError { _ = try await task.value }.kind == .cancelled)
      let running = Task { try await session.execute("SELECT 1") }
      await Task.yield()
      running.cancel()
      let error = try await postgresError { _ = try await running.value }
      #expect([.cancelled, .connectionLost].contains(error.kind))
    }
  }

  @Test("cancelling their task ends stalled streams and their connections") func streams() async throws {
    let conninfo = try await server().conninfo
    let (signal, started) = AsyncStream<[Int32]>.makeStream()
    let task = Task {
      try await withBlockingThread { scope in
        defer { started.finish() }
        let first = try scope.connect(conninfo, applicationName: "x", profile: Self.impatient)
        let second = try scope.connect(conninfo, applicationName: "x", profile: Self.impatient)
        let processes = [first.backendProcessId, second.backendProcessId]
        var rows = try first.copyOut("SELECT generate_series(1, 100000000000)")
        var others = try second.copyOut("SELECT generate_series(1, 100000000000)")
        while try rows.advance(), try others.advance() { if rows.rowCount == 1_000 { started.yield(processes) } }
      }
    }
    for await processes in signal {
      try await stopping(processes) {
        task.cancel()
        let error = try await postgresError { try await task.value }
        #expect(error.kind == .cancelled)
      }
      break
    }
  }

  @Test("a statement without an answer fails after the response timeout, and the connection is lost")
  func silence() async throws {
    let conninfo = try await server().conninfo
    try await withBlockingThread { scope in
      var profile = SessionProfile.store
      profile.responseTimeout = .milliseconds(500)
      let connection = try scope.connect(conninfo, applicationName: "x", profile: profile)
      let process = connection.backendProcessId
      try #require(kill(process, SIGSTOP) == 0)
      defer { kill(process, SIGCONT) }
      let error = try postgresError { _ = try connection.transaction { try $0.execute("SELECT 1") } }
      #expect(error.kind == .connectionLost && error.message.contains("not answered"), "\(error)")
      #expect(connection.isInTransaction == false)
      #expect(try postgresError { try connection.execute("SELECT 1") }.kind == .connectionLost)
    }
  }

  @Test("cancelling its task ends a connection attempt without an answer") func connecting() async throws {
    let (cluster, conninfo) = try await server()
    try await stopping([try cluster.serverProcess]) {
      let task = Task { _ = try await PostgresSession.connect(conninfo, applicationName: "x") }
      await Task.yield()
      task.cancel()
      #expect(try await postgresError { try await task.value }.kind == .cancelled)
      let late = try await postgresError {
        _ = try await PostgresSession.connect(conninfo + " connect_timeout=2", applicationName: "x")
      }
      #expect(late.kind == .connectionFailed)
    }
  }
}
