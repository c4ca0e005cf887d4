import Postgres
import TestSupport
import Testing

@Suite(.serialized, .timeLimit(.minutes(1))) struct PipelinedTransactionTests {
  struct Refusal: Error {}

  private func numbers(_ connection: borrowing BlockingConnection) throws -> [Int64] {
    try connection.execute("SELECT n FROM t ORDER BY n").map { try $0.int64(0) }
  }

  @Test("postponed statements are sent with the next statement that waits") func twoWaits() async throws {
    try await onConnection { connection in
      try connection.executeScript("CREATE TEMPORARY TABLE t (n int PRIMARY KEY)")
      let before = connection.waits
      try connection.pipelinedTransaction { connection in
        try connection.postpone("INSERT INTO t VALUES ($1::int)", [.int(1)])
        let counted = try connection.postpone("SELECT count(*) FROM t")
        try connection.postpone("INSERT INTO t VALUES (2)")
        #expect(throws: PostgresError.self) { try counted.get() }
        #expect(try connection.execute("SELECT sum(n) FROM t").single().int64(0) == 3)
        #expect(try counted.get().single().int64(0) == 1)
        #expect(connection.isInTransaction == true)
        for number in 3...9 { try connection.postpone("INSERT INTO t VALUES ($1::int)", [.int(Int64(number))]) }
      }
      #expect(connection.waits - before == 2)
      #expect(try numbers(connection) == Array(1...9))
    }
  }

  @Test("outside a pipelined transaction a postponed statement runs at once") func atOnce() async throws {
    try await onConnection { connection in
      try connection.executeScript("CREATE TEMPORARY TABLE t (n int)")
      try connection.postpone("INSERT INTO t VALUES (1)")
      #expect(try numbers(connection) == [1])
      try connection.transaction { connection in
        let told = try connection.postpone("INSERT INTO t VALUES (2) RETURNING n").get().single().int64(0)
        #expect(told == 2)
      }
      #expect(try numbers(connection) == [1, 2])
    }
  }

  @Test("the first failure is thrown, and the transaction is rolled back", arguments: [true, false])
  func failure(isFoundAtTheEnd: Bool) async throws {
    try await onConnection { connection in
      try connection.executeScript("CREATE TEMPORARY TABLE t (n int PRIMARY KEY)")
      let error = try postgresError {
        try connection.pipelinedTransaction { connection in
          try connection.postpone("INSERT INTO t VALUES (1)")
          try connection.postpone("INSERT INTO t VALUES (1)")
          try connection.postpone("SELECT 1/0")
          if !isFoundAtTheEnd { try connection.execute("SELECT 1") }
        }
      }
      #expect(error.sqlState == "23505" && error.statement == "INSERT INTO t VALUES (1)")
      #expect(connection.isInTransaction == false)
      #expect(try numbers(connection).isEmpty)
      try connection.pipelinedTransaction { try $0.postpone("INSERT INTO t VALUES (2)") }
      #expect(try numbers(connection) == [2])
    }
  }

  @Test("a body that throws rolls back its statements, sent or not", arguments: [true, false])
  func refusal(isSent: Bool) async throws {
    try await onConnection { connection in
      try connection.executeScript("CREATE TEMPORARY TABLE t (n int PRIMARY KEY)")
      #expect(throws: Refusal.self) {
        try connection.pipelinedTransaction { connection in
          try connection.postpone("INSERT INTO t VALUES (1)")
          if isSent { try connection.execute("SELECT 1") }
          throw Refusal()
        }
      }
      #expect(connection.isInTransaction == false)
      #expect(try numbers(connection).isEmpty)
    }
  }

  @Test("a stream and a script run after statements postponed before them") func streams() async throws {
    try await onConnection { connection in
      try connection.executeScript("CREATE TEMPORARY TABLE t (n int PRIMARY KEY)")
      try connection.pipelinedTransaction { connection in
        try connection.postpone("INSERT INTO t VALUES (1)")
        var rows = try connection.copyOut("SELECT n FROM t")
        let isThere = try rows.advance()
        let number = try rows.int64(0)
        let hasMore = try rows.advance()
        #expect(isThere && number == 1 && !hasMore)
        try connection.postpone("INSERT INTO t VALUES (2)")
        try connection.executeScript("UPDATE t SET n = n + 10")
      }
      #expect(try numbers(connection) == [11, 12])
    }
  }

  @Test("large parameters and results do not block each other") func large() async throws {
    try await onConnection { connection in
      let text = String(repeating: "x", count: 4 << 20)
      var answers: [PostponedRows] = []
      try connection.pipelinedTransaction { connection in
        for _ in 0..<8 { answers.append(try connection.postpone("SELECT $1::text", [.text(text)])) }
      }
      #expect(try answers.allSatisfy { try $0.get().single().text(0) == text })
    }
  }

  @Test("a backend that ends within the pipeline is a lost connection") func lost() async throws {
    let error = try await postgresError {
      try await onConnection { connection in
        try connection.pipelinedTransaction { connection in
          try connection.postpone("SELECT pg_terminate_backend(pg_backend_pid())")
          try connection.postpone("SELECT 1")
        }
      }
    }
    #expect(error.isConnectionLost && error.sqlState == "57P01")
  }

  @Test("cancelling a task ends its running statement, and the connection stays usable") func cancelled() async throws {
    let session = try await openSession()
    let observer = try await openSession()
    let processId = try await session.processId()
    let task = Task {
      try await session.pipelinedTransaction { connection in
        try connection.postpone("SELECT pg_sleep(3600)")
        try connection.postpone("SELECT 1")
      }
    }
    try await observer.waitUntilActive([processId])
    task.cancel()
    #expect(try await postgresError { try await task.value }.kind == .cancelled)
    #expect(try await session.execute("SELECT 1").single().int64(0) == 1)
    await session.close()
    await observer.close()
  }
}
