import Postgres
import Reconciliation
import Run
import SalesStore
import TestSupport
import Testing

@Suite(.serialized, .timeLimit(.minutes(2)))
struct StandbyTests {
  @Test("sales are read from a hot standby, in one snapshot that several connections share, and nothing is written")
  func hotStandby() async throws {
    let primary = try await PrivatePostgres.start()
    let shop = try await TestShop.make(in: primary, insertOrder())
    let standby = try await primary.startStandby()
    try await standby.catchUp(with: primary)
    var settings = shop.settings
    settings.salesURL = standby.conninfo(database: try database(of: shop.conninfo))
    #expect(try await shop.orders(settings).map(\.orderId) == ["o1"])
    let reading = settings
    try await withBlockingThread { scope in
      let first = try SalesStore.connect(reading, scope, applicationName: "tests")
      #expect(try first.execute("SELECT pg_is_in_recovery()").single().bool(0))
      try first.begin(.snapshot)
      let name = try first.execute("SELECT pg_export_snapshot()").single().text(0)
      let second = try SalesStore.connect(reading, scope, applicationName: "tests")
      try second.begin(.importedSnapshot(name))
      #expect(try second.execute("SELECT count(*) FROM sales.orders").single().int64(0) == 1)
      first.rollback()
    }
  }

  @Test("what a standby cancels is begun anew, once")
  func cancelledSnapshot() async throws {
    let primary = try await PrivatePostgres.start()
    let shop = try await TestShop.make(in: primary, insertOrder())
    let standby = try await primary.startStandby(
      settings: "max_standby_streaming_delay = 0\nhot_standby_feedback = off")
    try await standby.catchUp(with: primary)
    var changed = shop.settings
    changed.salesURL = standby.conninfo(database: try database(of: shop.conninfo))
    let settings = changed
    let conninfo = shop.conninfo
    let attempts = try await withBlockingThread { scope in
      var attempts = 0
      try SalesStore.startingOverOnce {
        attempts += 1
        let reader = try SalesStore.connect(settings, scope, applicationName: "tests")
        try reader.begin(.snapshot)
        _ = try reader.execute("SELECT count(*) FROM sales.orders")
        guard attempts == 1 else { return }
        let owner = try scope.connect(conninfo, applicationName: "tests")
        try owner.execute("DELETE FROM sales.orders")
        try owner.executeScript("VACUUM sales.orders")
        // Until the standby has to choose between the snapshot and its primary.
        while true { _ = try reader.execute("SELECT count(*) FROM sales.orders") }
      }
      return attempts
    }
    #expect(attempts == 2)
    let always = await #expect(throws: PostgresError.self) {
      try await withBlockingThread { _ in
        try SalesStore.startingOverOnce {
          var error = PostgresError(.server, "canceling statement due to conflict with recovery")
          error.sqlState = SQLState.serializationFailure
          throw error
        }
      }
    }
    #expect(always?.isSnapshotCancelled == true)
  }

  @Test("sales in another cluster")
  func otherCluster() async throws {
    let other = try await PrivatePostgres.start(settings: "DateStyle = 'German, DMY'\nTimeZone = 'Pacific/Apia'")
    let elsewhere = try await TestShop.make(in: other, insertOrder(["order_id": "'there'"]))
    let shop = try await TestShop.make(insertOrder(["order_id": "'here'"]))
    var settings = shop.settings
    settings.salesURL = elsewhere.conninfo
    #expect(try await shop.orders(settings).map(\.orderId) == ["there"])
    #expect(try await shop.orders().map(\.orderId) == ["here"])
  }

  private func database(of conninfo: String) throws -> String {
    try #require(conninfo.split(separator: " ").first { $0.hasPrefix("dbname=") }.map { String($0.dropFirst(7)) })
  }
}
