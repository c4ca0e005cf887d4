import ArgumentParser
import NightAudit
import Run
import Settings

struct Runs: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "List runs, compare two runs, or take a run back.",
    subcommands: [ListRuns.self, DiffRuns.self, ForgetRun.self], defaultSubcommand: ListRuns.self)
}

struct ListRuns: SettingsCommand {
  static let configuration = CommandConfiguration(
    commandName: "list", abstract: "List runs, newest first.",
    discussion: """
      Examples:
        night-audit runs
        night-audit runs --limit 7 --json
      """)

  @OptionGroup var common: CommonOptions

  @Option(help: ArgumentHelp("The largest number of runs.", valueName: "count")) var limit = 30

  func validate() throws {
    if limit < 1 { throw ValidationError("--limit \(limit) lists nothing; give 1 or more.") }
  }

  struct Document: Encodable {
    var runs: [PastRun.Document]
  }

  func run(_ settings: Settings) async throws -> ExitStatus {
    let runs = try await RunHistory.list(settings, limit: limit)
    try common.show(Document(runs: runs.map(\.document)), runs.table(width: Terminal.width))
    return .complete
  }
}

struct DiffRuns: SettingsCommand {
  static let configuration = CommandConfiguration(
    commandName: "diff", abstract: "Print what changed between two runs, and why.",
    discussion: """
      Name a run by its ID or the first digits of it, a night by its day, and the newest night as latest. The run with the \
      earlier as-of counts as the first run.

      Examples:
        night-audit runs diff 2026-11-18 2026-11-19
        night-audit runs diff 3f0c latest --json
      """)

  @OptionGroup var common: CommonOptions

  @Argument(help: ArgumentHelp("A run.", valueName: "run")) var first: String
  @Argument(help: ArgumentHelp("Another run.", valueName: "run")) var second: String

  func run(_ settings: Settings) async throws -> ExitStatus {
    let difference = try await RunHistory.difference(settings, first, second)
    try common.show(difference.document, difference.text)
    return .complete
  }
}
