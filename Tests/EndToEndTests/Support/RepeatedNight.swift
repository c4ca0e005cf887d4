import Foundation
import Postgres
import TestSupport
import Testing

/// A shop whose first night is repeated with faults and compared with the undisturbed night. Each attempt has a copy of
/// the database.
struct RepeatedNight: Sendable {
  private static let sharedNight = Task { try await RepeatedNight() }

  /// The night in the shared cluster, for tests that leave the cluster and the App Store as they are.
  static func shared() async throws -> RepeatedNight { try await sharedNight.value }

  let shop: Rehearsal
  /// The report of the undisturbed night, without `run.json`, which differs from run to run.
  let wanted: [String: Data]
  let sent: Int

  init(in cluster: PrivatePostgres? = nil) async throws {
    let isQuick = TortureSettings.effort == 1
    shop = try await Rehearsal.sampleShop(formats: isQuick ? "csv" : "csv, xlsx", isSmall: isQuick, in: cluster)
    let calm = try await Attempt(at: shop)
    let passage = try await DatabaseProxy(to: calm.conninfo)
    let night = await (try calm.start(through: passage)).finish()
    #expect(night.status == 3, "\(night)")
    (wanted, sent) = (try calm.files(), try await passage.total())
    #expect(wanted.count >= 6 && sent > 100)
  }

  func begin() async throws -> Attempt { try await Attempt(at: shop) }

  struct Attempt {
    let shop: Rehearsal
    let conninfo: String
    private let directory: TemporaryDirectory

    fileprivate init(at shop: Rehearsal) async throws {
      self.shop = shop
      conninfo = try await shop.cluster.copyDatabase(shop.conninfo)
      directory = try TemporaryDirectory()
    }

    var reports: String { directory.file("reports") }

    private var environment: [String: String] {
      ["NIGHT_AUDIT_DATABASE_URL": conninfo, "NIGHT_AUDIT_REPORT_DIRECTORY": reports]
    }

    /// - Parameter conninfo: nil: the database without a proxy.
    func start(through conninfo: String? = nil, asOf: String = Rehearsal.asOf) throws -> Program.Running {
      try shop.start(
        "run", "--as-of", asOf,
        environment: environment.merging(["NIGHT_AUDIT_DATABASE_URL": conninfo ?? self.conninfo]) { $1 })
    }

    func start(through passage: DatabaseProxy) throws -> Program.Running { try start(through: passage.conninfo) }

    var isPublished: Bool { FileManager.default.fileExists(atPath: reports + "/2026-11-19") }

    func files() throws -> [String: Data] { try shop.report(reports + "/2026-11-19") }

    func value(_ sql: String) async throws -> String { try await shop.value(sql, conninfo: conninfo) }

    func answers() async throws -> Set<Substring> {
      let sql = """
        SELECT coalesce(string_agg(subject_id || ' ' || n, ',' ORDER BY subject_id), '') FROM (
          SELECT subject_id, count(*) AS n FROM night_audit.answers GROUP BY 1) a
        """
      return Set(try await value(sql).split(separator: ","))
    }

    /// Expects that a disturbed night left the whole report, or no report and a message.
    func isWholeOrSaid(_ night: Program.Result, of wanted: [String: Data], _ what: Comment) throws {
      if isPublished {
        #expect(try files() == wanted, what)
      } else {
        #expect(night.status != 3, what)
      }
      if night.status != 3, night.status < 128 { #expect(night.errors.contains("night-audit: "), what) }
    }

    /// Expects that one more run completes the night, and repeats no question with a stored answer except about
    /// `mayBeAsked`, a query for IDs separated by commas.
    func isMadeWhole(
      asOf: String = Rehearsal.asOf, mayBeAsked: String? = nil, _ what: Comment
    ) async throws {
      // The server may not have noticed yet that the disturbed run is gone.
      let others = """
        SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
        """
      while try await value(others) != "0" { await pause() }
      let before = try await answers()
      let night = await (try start(asOf: asOf)).finish()
      #expect(night.status == 3, "\(what): \(night.errors)")
      var twice = Set(before.subtracting(try await answers()).compactMap { $0.split(separator: " ").first })
      if let mayBeAsked { twice.subtract(try await value(mayBeAsked).split(separator: ",")) }
      #expect(twice.isEmpty, "\(what): asked twice")
      let entries = try FileManager.default.contentsOfDirectory(atPath: reports).sorted()
      #expect(entries == ["2026-11-19", "latest"], what)
      let said = try await value(
        "SELECT count(*) FROM night_audit.runs WHERE publication = 'publishing' OR publication IS NULL AND complete")
      #expect(said == "0", what)
      try await shop.nightAudit("verify", environment: environment, exits: [0])
    }
  }
}
