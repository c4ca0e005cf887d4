import Foundation
import Postgres
import TestSupport
import Testing

/// A night whose connections break anywhere: between messages, within them, while it asks, judges or publishes.
///
/// `TEST_EFFORT=n` cuts n times as often; `TEST_SEED=s` repeats what a failure has printed.
@Suite struct CutConnectionTests {
  private static let environment = ProcessInfo.processInfo.environment
  private static let cuts = 4 * (environment["TEST_EFFORT"].flatMap { Int($0) } ?? 1)
  private static let seed = environment["TEST_SEED"].flatMap { UInt64($0) } ?? 20_261_120

  @Test("whatever is cut, nothing half is published, and one more run makes the night that nothing had disturbed")
  func cutAnywhere() async throws {
    let shop = try await Rehearsal.sampleShop()
    let cluster = try await PrivatePostgres.shared()
    let undisturbed = try await Night(of: shop, "undisturbed").run()
    #expect(undisturbed.status == 3, "\(undisturbed.errors)")
    let expected = try tables(undisturbed.folder)
    #expect(expected.count >= 6)

    var positions = SeededGenerator(seed: Self.seed)
    var disturbed = 0
    for attempt in 0..<Self.cuts {
      // Half of the cuts within the first messages, half anywhere in a connection's life.
      let longest = attempt % 2 == 0 ? 5_000 : 250_000
      let limit = Int.random(in: 1...longest, using: &positions)
      let told: Comment = "TEST_SEED=\(Self.seed), attempt \(attempt), each connection cut after \(limit) bytes"
      let night = try await Night(of: shop, "cut-\(attempt)")
      let relay = try CuttingRelay(before: cluster.directory, limit: limit)
      let cut = try await night.run(through: relay.directory)
      // 69: the database was away. 3, as undisturbed: nothing that counts was cut.
      #expect([3, 69].contains(cut.status), "\(told): \(cut.errors)")
      if cut.status == 69 { disturbed += 1 }
      if FileManager.default.fileExists(atPath: cut.folder) {
        let verified = try await shop.nightAudit("verify", cut.folder)
        #expect(verified.status == 0, "\(told): \(verified.errors)")
      } else {
        #expect(cut.status == 69 && cut.errors.contains("night-audit:"), "\(told): \(cut.errors)")
      }
      let whole = try await night.run()
      #expect(whole.status == 3, "\(told): \(whole.errors)")
      #expect(try tables(whole.folder) == expected, told)
      let left = try FileManager.default.contentsOfDirectory(atPath: night.reports).filter { $0.hasPrefix(".") }
      #expect(left.isEmpty || left == [".night-audit"], "\(told): \(left)")
    }
    #expect(disturbed >= Self.cuts / 4)
  }

  /// The tables of a report, by file name.
  private func tables(_ folder: String) throws -> [String: Data] {
    var tables: [String: Data] = [:]
    for name in try FileManager.default.contentsOfDirectory(atPath: folder) where name.hasSuffix(".csv") {
      tables[name] = try Data(contentsOf: URL(fileURLWithPath: folder + "/" + name))
    }
    return tables
  }

  /// One database and one report directory, copied from a shop before its first night.
  private struct Night {
    struct Outcome {
      var status: Int32
      var errors: String
      var folder: String
    }

    let shop: Rehearsal
    let reports: String
    let database: String

    init(of shop: Rehearsal, _ name: String) async throws {
      self.shop = shop
      reports = shop.directory.file("reports-\(name)")
      let original = try #require(shop.conninfo.split(separator: "=").last.map(String.init))
      database = "\(original)_\(name.filter { $0 != "-" })"
      let session = try await PostgresSession.connect(
        PrivatePostgres.shared().conninfo(database: "postgres"), applicationName: "night-audit tests")
      try await session.execute("CREATE DATABASE \(database) TEMPLATE \(original)")
      await session.close()
    }

    func run(through directory: String? = nil) async throws -> Outcome {
      let server = try await PrivatePostgres.shared().directory
      let host = directory ?? server
      let result = try await shop.nightAudit(
        "run", "--as-of", Rehearsal.asOf,
        environment: [
          "NIGHT_AUDIT_DATABASE_URL": "host=\(host) port=5432 user=postgres dbname=\(database)",
          "NIGHT_AUDIT_REPORT_DIRECTORY": reports,
        ])
      return Outcome(status: result.status, errors: result.errors, folder: reports + "/2026-11-19")
    }
  }
}
