import Postgres
import Reconciliation
import Run
import SalesStore
import Settings
import TestSupport
import Testing

@Suite(.serialized, .timeLimit(.minutes(10)))
struct StandbyTests {
  @Test("sales are read from a hot standby in one snapshot shared by several connections")
  func hotStandby() async throws {
    let shop = try await TestShop.make(in: try await PrivatePostgres.start(), insertOrder())
    let (standby, settings) = try await shop.standby()
    defer { withExtendedLifetime(standby) {} }
    #expect(try await shop.orders(settings).map(\.orderId) == ["o1"])
    try await withBlockingThread { scope in
      let first = try SalesStore.connect(settings, scope, applicationName: "tests")
      #expect(try first.execute("SELECT pg_is_in_recovery()").single().bool(0))
      try first.begin(.snapshot)
      let name = try first.execute("SELECT pg_export_snapshot()").single().text(0)
      let second = try SalesStore.connect(settings, scope, applicationName: "tests")
      try second.begin(.importedSnapshot(name))
      #expect(try second.execute("SELECT count(*) FROM sales.orders").single().int64(0) == 1)
      first.rollback()
    }
  }

  @Test("reading restarts once after a standby has cancelled its snapshot")
  func cancelledSnapshot() async throws {
    // An automatic vacuum could cancel the second snapshot, too.
    let shop = try await TestShop.make(in: try await PrivatePostgres.start(), insertOrder())
    let (standby, settings) = try await shop.standby("max_standby_streaming_delay = 0\nhot_standby_feedback = off")
    defer { withExtendedLifetime(standby) {} }
    let conninfo = shop.conninfo
    let attempts = try await withBlockingThread { scope in
      var attempts = 0
      let owner = try scope.connect(conninfo, applicationName: "tests")
      try SalesStore.restartingOnce(settings, scope) { _ in
        attempts += 1
        let reader = try SalesStore.connect(settings, scope, applicationName: "tests")
        guard attempts == 1 else {
          try wait(for: "pg_last_wal_replay_lsn()", of: owner, on: reader)
          try reader.begin(.snapshot)
          _ = try reader.execute("SELECT count(*) FROM sales.orders")
          return
        }
        try reader.begin(.snapshot)
        _ = try reader.execute("SELECT count(*) FROM sales.orders")
        try owner.execute("DELETE FROM sales.orders")
        try owner.executeScript("VACUUM sales.orders")
        // The loop ends when the standby cancels the snapshot, to replay the vacuum of its primary.
        while true { _ = try reader.execute("SELECT count(*) FROM sales.orders") }
      }
      return attempts
    }
    #expect(attempts == 2)
  }

  @Test("reading restarts once after a conflict or a cancellation", arguments: ["40001", "40P01", "55P03", "57014"])
  func conflicts(state: String) async throws {
    let shop = try await TestShop.make()
    let settings = shop.settings
    let attempts = try await withBlockingThread { scope in
      var attempts = 0
      let error = #expect(throws: PostgresError.self) {
        try SalesStore.restartingOnce(settings, scope) { _ in
          attempts += 1
          var error = PostgresError(.server, "another session is in the way")
          error.sqlState = state
          throw error
        }
      }
      #expect(error?.sqlState == state)
      return attempts
    }
    #expect(attempts == 2)
  }

  @Test("the snapshot of a restart includes all changes that the standby had received")
  func replayIsAwaited() async throws {
    let shop = try await TestShop.make(in: try await PrivatePostgres.start(), insertOrder())
    // With this delay, replay waits as long as a snapshot conflicts with it.
    let (standby, settings) = try await shop.standby("max_standby_streaming_delay = -1\nhot_standby_feedback = off")
    defer { withExtendedLifetime(standby) {} }
    let conninfo = shop.conninfo
    let counted = try await withBlockingThread { scope in
      let owner = try scope.connect(conninfo, applicationName: "tests")
      let reader = try SalesStore.connect(settings, scope, applicationName: "tests")
      var attempts = 0
      return try SalesStore.restartingOnce(settings, scope) { _ in
        attempts += 1
        if attempts == 1 {
          try reader.begin(.snapshot)
          _ = try reader.execute("SELECT count(*) FROM sales.orders")
          try owner.execute("DELETE FROM sales.orders")
          try owner.executeScript("VACUUM sales.orders")
          for order in ["'a'", "'b'"] { try owner.executeScript(insertOrder(["order_id": order])) }
          try wait(for: "pg_last_wal_receive_lsn()", of: owner, on: reader)
          // Replay has waited before the vacuum, and continues only now; it retries within a second.
          reader.rollback()
          var error = PostgresError(.server, "canceling statement due to conflict with recovery")
          error.sqlState = SQLState.serializationFailure
          throw error
        }
        return try reader.execute("SELECT count(*) FROM sales.orders").single().int64(0)
      }
    }
    #expect(counted == 2)
  }

  @Test("a conflict with recovery while replay is awaited ends nothing")
  func conflictWhileWaiting() async throws {
    let shop = try await TestShop.make(in: try await PrivatePostgres.start(), insertOrder())
    let (standby, settings) = try await shop.standby("max_standby_streaming_delay = 0\nhot_standby_feedback = off")
    defer { withExtendedLifetime(standby) {} }
    let conninfo = shop.conninfo
    async let resumed: Void = withBlockingThread { scope in
      let other = try SalesStore.open(settings, scope, applicationName: "tests")
      let isAwaited = """
        SELECT EXISTS (SELECT FROM pg_stat_activity
          WHERE application_name LIKE '%waiting for replay' AND query ~ 'replay_lsn|sleep')
        """
      while try !other.execute(isAwaited).single().bool(0) {}
      // Replay may cancel this statement too.
      _ = try? other.execute("SELECT pg_wal_replay_resume()")
    }
    let counted = try await withBlockingThread { scope in
      let owner = try scope.connect(conninfo, applicationName: "tests")
      let reader = try SalesStore.connect(settings, scope, applicationName: "tests")
      var attempts = 0
      return try SalesStore.restartingOnce(settings, scope) { _ in
        attempts += 1
        if attempts > 1 { return try reader.execute("SELECT count(*) FROM sales.orders").single().int64(0) }
        _ = try reader.execute("SELECT pg_wal_replay_pause()")
        try owner.execute("DELETE FROM sales.orders")
        try owner.executeScript("VACUUM sales.orders")
        try wait(for: "pg_last_wal_receive_lsn()", of: owner, on: reader)
        var error = PostgresError(.server, "canceling statement due to conflict with recovery")
        error.sqlState = SQLState.serializationFailure
        throw error
      }
    }
    try await resumed
    #expect(counted == 0)
  }

  @Test("sales are read from another cluster")
  func otherCluster() async throws {
    let other = try await PrivatePostgres.start(settings: "DateStyle = 'German, DMY'\nTimeZone = 'Pacific/Apia'")
    let elsewhere = try await TestShop.make(in: other, insertOrder(["order_id": "'there'"]))
    let shop = try await TestShop.make(insertOrder(["order_id": "'here'"]))
    var settings = shop.settings
    settings.salesURL = elsewhere.conninfo
    #expect(try await shop.orders(settings).map(\.orderId) == ["there"])
    #expect(try await shop.orders().map(\.orderId) == ["here"])
  }

  /// Waits until the position of a standby is that of all changes that its primary has written.
  private func wait(
    for position: String, of primary: borrowing BlockingConnection, on standby: borrowing BlockingConnection
  ) throws {
    let written = try primary.execute("SELECT pg_current_wal_flush_lsn()::text").single().text(0)
    let sql = "SELECT \(position) >= $1::pg_lsn"
    while try !standby.execute(sql, [.text(written)]).single().bool(0) {}
  }
}
