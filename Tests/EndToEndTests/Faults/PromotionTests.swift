import Foundation
import Postgres
import TestSupport
import Testing

/// The shop is read from a hot standby that is promoted during the night.
@Suite(.serialized) struct PromotionTests {
  @Test func aPromotedStandbyDoesNotChangeTheReport() async throws {
    let shop = try await Rehearsal.sampleShop(isSmall: true)
    let primary = try await PrivatePostgres.start()
    let database = try await primary.createDatabase()
    let moved = try await Program(path: "/bin/sh").run([
      "-c",
      #"pg_dump --schema sales --no-owner --no-privileges --dbname "$1" | psql --no-psqlrc --quiet --set ON_ERROR_STOP=1 --dbname "$2" > /dev/null"#,
      "sh",
      shop.conninfo, database,
    ])
    #expect(moved.status == 0, "\(moved)")
    let name = try #require(database.split(separator: "=").last.map(String.init))

    func night(_ number: Int, reading sales: String) throws -> Program.Running {
      try shop.start(
        "run", "--as-of", Rehearsal.asOf,
        environment: [
          "NIGHT_AUDIT_DATABASE_SALES_URL": sales,
          "NIGHT_AUDIT_REPORT_DIRECTORY": shop.directory.file("reports-\(number)"),
        ])
    }
    func report(_ number: Int) throws -> [String: Data] {
      try shop.report(shop.directory.file("reports-\(number)/2026-11-19"))
    }
    let first = await (try night(0, reading: database)).finish()
    #expect(first.status == 3, "\(first)")
    let calm = try await DatabaseProxy(to: database)
    #expect(await (try night(1, reading: calm.conninfo)).finish().status == 3)
    let (total, wanted) = (try await calm.total(), try report(1))
    #expect(total > 10)
    print("PromotionTests: \(TortureSettings.effort) of \(total) instants")
    var inTheMiddle = 0
    for number in 0..<min(TortureSettings.effort, 8) {
      let standby = try await primary.startStandby()
      try await standby.catchUp(with: primary)
      let instant = max(1, total * (2 * number + 1) / (2 * min(TortureSettings.effort, 8)))
      let passage = try await DatabaseProxy(to: standby.conninfo(database: name), .hold, at: instant)
      let running = try night(number + 2, reading: passage.conninfo)
      while passage.count < instant, running.process.isRunning { await pause() }
      let session = try await PostgresSession.connect(
        standby.conninfo(database: "postgres"), applicationName: "night-audit tests")
      #expect(try await session.execute("SELECT pg_promote()").single().bool(0))
      await session.close()
      inTheMiddle += running.process.isRunning ? 1 : 0
      try passage.goOn()
      let result = await running.finish()
      #expect(result.status == 3, "instant \(instant): \(result)")
      #expect(try report(number + 2) == wanted, "instant \(instant)")
    }
    #expect(inTheMiddle > 0)
  }
}
