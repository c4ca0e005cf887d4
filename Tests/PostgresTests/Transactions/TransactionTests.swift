import Postgres
import Testing

@Suite(.serialized, .timeLimit(.minutes(10))) struct TransactionTests {
  struct Refusal: Error {}

  @Test("a transaction commits when its body returns and rolls back when it throws")
  func commitAndRollback() async throws {
    try await onConnection { connection in
      try connection.executeScript("CREATE TEMPORARY TABLE t (n int)")
      try connection.transaction { try $0.execute("INSERT INTO t VALUES (1)") }
      #expect(throws: Refusal.self) {
        try connection.transaction { connection in
          try connection.execute("INSERT INTO t VALUES (2)")
          #expect(connection.isInTransaction == true)
          throw Refusal()
        }
      }
      #expect(connection.isInTransaction == false)
      #expect(try connection.execute("SELECT n FROM t").map { try $0.int64(0) } == [1])
    }
  }

  @Test("a body that ignores an error commits nothing") func swallowedError() async throws {
    try await onConnection { connection in
      try connection.executeScript("CREATE TEMPORARY TABLE t (n int)")
      let error = try postgresError {
        try connection.transaction { connection in
          try connection.execute("INSERT INTO t VALUES (1)")
          _ = try? connection.execute("SELECT 1/0")
        }
      }
      #expect(error.kind == .server)
      #expect(connection.isInTransaction == false)
      #expect(try connection.execute("SELECT n FROM t").isEmpty)
    }
  }

  @Test("transactions do not nest") func nested() async throws {
    try await onConnection { connection in
      let error = try postgresError { try connection.transaction { try $0.transaction { _ in } } }
      #expect(error.kind == .usage)
      #expect(connection.isInTransaction == false)
    }
  }

  @Test("a snapshot is read-only") func readOnly() async throws {
    let error = try await postgresError {
      try await onConnection { connection in
        try connection.transaction(.snapshot) { _ = try $0.execute("CREATE TABLE public.x (n int)") }
      }
    }
    #expect(error.sqlState == "25006")
  }

  @Test("connections with a shared snapshot see the same state") func sharedSnapshot() async throws {
    let conninfo = try await sharedConninfo()
    try await withBlockingThread { scope in
      let writer = try scope.connect(conninfo, applicationName: "x")
      try writer.executeScript(
        "DROP TABLE IF EXISTS public.moments; CREATE TABLE public.moments (n int); INSERT INTO public.moments VALUES (1)"
      )
      let coordinator = try scope.connect(conninfo, applicationName: "x")
      try coordinator.begin(.snapshot)
      let name = try coordinator.execute("SELECT pg_export_snapshot()").single().text(0)
      try writer.execute("INSERT INTO public.moments VALUES (2)")
      let reader = try scope.connect(conninfo, applicationName: "x")
      try reader.transaction(.importedSnapshot(name)) { reader in
        var rows = try reader.copyOut("SELECT n FROM public.moments")
        #expect(try rows.advance())
        #expect(try rows.int64(0) == 1)
        #expect(try !rows.advance())
      }
      #expect(try reader.execute("SELECT count(*) FROM public.moments").single().int64(0) == 2)
      #expect(try postgresError { try reader.begin(.importedSnapshot("0000-0")) }.sqlState != nil)
      #expect(reader.isInTransaction == false)
    }
  }
}
