import ArgumentParser
import AuditStore
import NightAudit
import Postgres
import Run
import SalesStore
import Settings

struct Init: SettingsCommand {
  static let configuration = CommandConfiguration(
    abstract: "Create or update night-audit's own schema. Safe to repeat.",
    discussion: """
      Examples:
        night-audit init
        night-audit init --with-sales-schema    also create the sales tables
      """)

  @OptionGroup var common: CommonOptions

  @Flag(help: "Also create the sales tables in database.url, where there are none.") var withSalesSchema = false

  struct Document: Encodable {
    var applied: [String]
    var salesSchema: String?
  }

  func run(_ settings: Settings) async throws -> ExitStatus {
    // The relations would be created in `database.url`, which is not read.
    if withSalesSchema, settings.salesURL != nil {
      throw ConfigurationError(
        key: "database.salesUrl",
        problem: "is only read: run init without --with-sales-schema, and create the relations there yourself")
    }
    let session = try await PostgresSession.connect(
      settings.databaseURL, applicationName: "night-audit init", profile: .migration)
    let withSalesSchema = withSalesSchema
    let applied = try await session.withConnection { connection in
      if withSalesSchema { try SalesSchema.create(settings.salesSchema, connection) }
      let applied = try Migrator.migrate(connection)
      try Partitions.record(retention: settings.evidenceRetention, ofReports: settings.retention, on: connection)
      return applied
    }
    await session.close()
    let own = applied.isEmpty ? "The schema night_audit is up to date" : "Applied: \(applied.joined(separator: ", "))"
    let sales = ".\nThe schema \(settings.salesSchema) has orders, receipts and deliveries."
    try common.show(
      Document(applied: applied, salesSchema: withSalesSchema ? settings.salesSchema : nil),
      common.quiet ? nil : own + (withSalesSchema ? sales : "."))
    return .complete
  }
}

struct DoctorCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "doctor",
    abstract: "Check everything that a night needs, and print each problem with its remedy.",
    discussion: """
      Examples:
        night-audit doctor
        night-audit doctor --online     also send Apple one request for each key
        night-audit doctor --config /etc/night-audit/night-audit.yaml --json
      """)

  @OptionGroup var common: CommonOptions

  @Flag(help: "Also send Apple one harmless request for each secret and key, and compare the clocks.")
  var online = false

  struct Document: Encodable {
    var diagnoses: [Diagnosis.Document]
  }

  func run() async throws {
    try await common.concluding {
      let found: [Diagnosis]
      do { found = await Doctor(settings: try common.settings(), isOnline: online).examine() } catch let error
        as ConfigurationError
      {
        found = [.problem(error.key, error.problem)]
      }
      let shown = found.filter { !common.quiet || $0.problem != nil }
      try common.show(
        Document(diagnoses: found.map(\.document)), shown.isEmpty ? nil : shown.map(\.line).joined(separator: "\n"))
      return found.first { $0.problem != nil }?.status ?? .complete
    }
  }
}
