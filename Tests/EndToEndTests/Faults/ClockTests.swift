import Foundation
import TestSupport
import Testing

@Suite(.serialized) struct ClockTests {
  /// Nights of the sample shop with a manipulated clock, each in a copy of its database.
  private struct Stage {
    static let shared = Task { try await Stage() }

    let shop: Rehearsal
    let library: TestLibrary

    init() async throws {
      shop = try await Rehearsal.sampleShop(simulator: [], isSmall: true)
      library = try await TestLibrary("clock", in: shop.directory)
    }

    func night(
      _ name: String, _ arguments: [String], _ environment: [String: String]
    ) async throws -> Program.Result {
      let database = try await PrivatePostgres.shared().copyDatabase(shop.conninfo)
      let moved = [
        "LD_PRELOAD": library.path, "FAULT_PROGRAM": "night-audit", "CLOCK_READINGS": shop.directory.file("readings"),
        "NIGHT_AUDIT_DATABASE_URL": database, "NIGHT_AUDIT_REPORT_DIRECTORY": shop.directory.file(name),
      ]
      return try await shop.nightAudit("run", more: arguments, environment: moved.merging(environment) { $1 })
    }

    func readings() throws -> Int {
      Int(try String(contentsOfFile: shop.directory.file("readings"), encoding: .utf8)) ?? 0
    }

    /// Published files by folder and name, without `run.json`, which differs from run to run.
    func published(_ name: String) throws -> [String: Data] {
      var published: [String: Data] = [:]
      let folders = try FileManager.default.contentsOfDirectory(atPath: shop.directory.file(name))
      for folder in folders where !folder.hasPrefix(".") && folder != "latest" {
        for (file, content) in try shop.files(shop.directory.file("\(name)/\(folder)")) where file != "run.json" {
          published["\(folder)/\(file)"] = content
        }
      }
      return published
    }
  }

  @Test func aClockThatJumpsChangesNothingInTheReport() async throws {
    let stage = try await Stage.shared.value
    let asOf = ["--as-of", Rehearsal.asOf]
    #expect(try await stage.night("calm", asOf, [:]).status == 3)
    let (total, wanted) = (try stage.readings(), try stage.published("calm"))
    #expect(total > 20 && wanted.count > 8, "\(total)")
    let jumps = [86_400, -86_400, 3_600, -3_600, 2, -2, 40_000_000, -400_000_000]
    let tried = TortureSettings.effort > 1 ? jumps : Array(jumps.prefix(2))
    let shares = TortureSettings.effort > 1 ? [1, 3, 5, 7] : [4]
    print("ClockTests: \(tried.count * shares.count) of \(jumps.count * 4) faults")
    for (number, jump) in tried.enumerated() {
      for share in shares {
        let (name, instant) = ("jump-\(number)-\(share)", max(1, total * share / 8))
        let night = try await stage.night(name, asOf, ["CLOCK_JUMP": "\(jump)", "CLOCK_AT": "\(instant)"])
        #expect(night.status == 3, "\(jump) seconds at reading \(instant): \(night)")
        #expect(try stage.published(name) == wanted, "\(jump) seconds at reading \(instant)")
      }
    }
  }

  @Test func aHostClockAheadIsReported() async throws {
    let stage = try await Stage.shared.value
    let metrics = stage.shop.directory.file("night_audit.prom")
    let watched = ["NIGHT_AUDIT_METRICS_TEXTFILE": metrics]
    let slip = try await stage.night("slip", ["--as-of", "2126-01-01T03:00:00Z"], watched)
    #expect(slip.status == 64 && !FileManager.default.fileExists(atPath: metrics), "\(slip)")
    let ahead = try await stage.night("ahead", [], watched.merging(["CLOCK_OFFSET": "4000000"]) { $1 })
    #expect(ahead.status == 64 && ahead.errors.contains("is in the future, because this host is ahead"), "\(ahead)")
    #expect(try String(contentsOfFile: metrics, encoding: .utf8).contains("night_audit_exit_status 64\n"))
  }

  /// Apple rejects tokens with a wrong time, and the newest orders are missing. The night therefore reports the clocks.
  @Test func aHostClockBehindIsReported() async throws {
    let stage = try await Stage()
    for (offset, asOf) in [("-7200", []), ("-34560000", []), ("-7200", ["--as-of", Rehearsal.asOf])] {
      let night = try await stage.night("behind\(offset)\(asOf.count)", asOf, ["CLOCK_OFFSET": offset])
      #expect(night.status == 78, "\(night)")
      #expect(night.errors.contains("this host's clock says") && night.errors.contains("the database server's"))
      let published = try stage.published("behind\(offset)\(asOf.count)")
      let summary = try #require(published.first { $0.key.hasSuffix("/summary.json") }?.value)
      #expect(String(decoding: summary, as: UTF8.self).contains("this host's clock says"))
    }
    #expect(try stage.shop.requests() == 0)
    let recheck = try await stage.shop.nightAudit(
      "recheck",
      environment: ["LD_PRELOAD": stage.library.path, "FAULT_PROGRAM": "night-audit", "CLOCK_OFFSET": "-7200"])
    #expect(recheck.status == 78 && recheck.errors.contains("Set the host's clock"), "\(recheck)")
    let night = try await stage.night("late", ["--as-of", Rehearsal.asOf], ["CLOCK_OFFSET": "-1800"])
    #expect(night.status == 3, "\(night)")
  }

  /// An unfinished Spark job leaves such a folder every night.
  @Test func aNightWithoutAuditedPartsIsNoUsageMistake() async throws {
    let shop = try await Stage.shared.value.shop
    let (metrics, parts) = (shop.directory.file("parts.prom"), shop.directory.file("parts"))
    try FileManager.default.createDirectory(atPath: parts, withIntermediateDirectories: true)
    let watched = ["NIGHT_AUDIT_METRICS_TEXTFILE": metrics]
    try await shop.nightAudit(
      "run", "--as-of", Rehearsal.asOf, "--date", "2026-11-19", "--parts", parts, environment: watched, exits: [64],
      says: "there is no manifest.json in")
    #expect(try String(contentsOfFile: metrics, encoding: .utf8).contains("night_audit_exit_status 64\n"))
  }

  @Test func aNightOverMidnightReportsOneDay() async throws {
    let stage = try await Stage.shared.value
    // The last full hour is midnight in some zone, and no host is more than an hour behind.
    let hour = Int64(Date.now.timeIntervalSince1970) / 3_600
    let east = (24 - hour % 24) % 24
    let zone = east <= 14 ? "Etc/GMT-\(east)" : "Etc/GMT+\(24 - east)"
    let midnight = Date(timeIntervalSince1970: Double(hour * 3_600))
    func offset() -> String { "\(hour * 3_600 - 3 - Int64(Date.now.timeIntervalSince1970))" }
    var days = Calendar(identifier: .gregorian)
    days.timeZone = try #require(TimeZone(secondsFromGMT: Int(east <= 14 ? east : east - 24) * 3_600))
    func day(before instant: Date) -> String {
      let date = days.dateComponents([.year, .month, .day], from: instant.addingTimeInterval(-86_400))
      return String(format: "%04d-%02d-%02d", date.year ?? 0, date.month ?? 0, date.day ?? 0)
    }
    let instants = TortureSettings.effort > 1 ? [1, 3, 10, 40] : [10]
    for (number, instant) in instants.enumerated() {
      let name = "midnight-\(number)"
      let clock = ["NIGHT_AUDIT_REPORT_TIME_ZONE": zone, "CLOCK_OFFSET": offset()]
      let moved = clock.merging(["CLOCK_JUMP": "10", "CLOCK_AT": String(instant)]) { $1 }
      let night = try await stage.night(name, [], moved)
      #expect([0, 3].contains(night.status), "\(night)")
      let published = try stage.published(name)
      let file = try #require(published.first { $0.key.hasSuffix("/summary.json") })
      let summary = try #require(try JSONSerialization.jsonObject(with: file.value) as? [String: Any])
      let text = try #require(summary["as_of"] as? String)
      let asOf = try Date(text, strategy: Date.ISO8601FormatStyle(includingFractionalSeconds: text.contains(".")))
      #expect(
        file.key.hasPrefix(day(before: asOf < midnight ? midnight.addingTimeInterval(-3_600) : midnight) + "/"),
        "\(file.key) \(text)")
      // The repetition has the same clock, because the rules for future dates differ in an audit of the past.
      let again = try await stage.night(
        "again-\(number)", ["--as-of", text], clock.merging(["CLOCK_OFFSET": offset()]) { $1 })
      #expect([0, 3].contains(again.status), "\(again)")
      #expect(try stage.published("again-\(number)") == published, "\(text)")
    }
  }

  @Test(arguments: [("2026-03-28T23:00:00Z", 46), ("2026-10-24T22:00:00Z", 50)])
  func aDayHas23To25Hours(_ start: String, _ halves: Int) async throws {
    let shop = try await SignedShop(transactions: [])
    // One order each half hour, from half an hour before the day to half an hour after it, and one at its last instant.
    try await shop.execute(
      """
      INSERT INTO sales.orders (order_id, user_id, bundle_id, product_id, quantity, amount, currency, status, created_at,
        updated_at)
      SELECT 'order ' || n, 'user', 'com.example.game', 'gems.100', 1, 9.90, 'USD', 'pending', at, at
      FROM generate_series(-1, \(halves)) n,
        LATERAL (SELECT timestamptz '\(start)' + n * interval '30 minutes' AS at) a
      UNION ALL
      SELECT 'last', 'user', 'com.example.game', 'gems.100', 1, 9.90, 'USD', 'pending', at, at
      FROM (SELECT timestamptz '\(start)' + \(halves) * interval '30 minutes' - interval '1 microsecond' AS at) a
      """)
    let end = SignedShop.milliseconds(start) + Int64(halves) * 1_800_000
    let asOf = SignedShop.text(end)
    // Apple's history does not reach back half a year.
    try await shop.nightAudit(
      "run", "--as-of", asOf, environment: ["NIGHT_AUDIT_REPORT_TIME_ZONE": "Europe/Berlin"], exits: [0, 3])
    let day = SignedShop.text(SignedShop.milliseconds(start) + 43_200_000).prefix(10)
    let orders = try shop.table("orders", String(day)).compactMap { $0["order_id"] }
    #expect(Set(orders) == Set((0..<halves).map { "order \($0)" } + ["last"]))
    #expect(orders.count == halves + 1)
  }
}
