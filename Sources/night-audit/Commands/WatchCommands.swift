import ArgumentParser
import NightAudit
import Run
import Settings

struct Status: SettingsCommand {
  static let configuration = CommandConfiguration(
    abstract: "Print one screen: the last night, overdue or not, open findings, due checks, the owner of the lock.",
    discussion: """
      Examples:
        night-audit status
        night-audit status --json
      """)

  @OptionGroup var common: CommonOptions

  func run(_ settings: Settings) async throws -> ExitStatus {
    let status = try await NightStatus.look(settings)
    try common.show(status, status.text)
    return .complete
  }
}

struct Verify: SettingsCommand {
  static let configuration = CommandConfiguration(
    abstract: "Prove that stored data and reports are unchanged: the whole trail, a report folder, or a run.",
    discussion: """
      Without arguments it proves the whole trail: evidence, answers, the history of findings, sign-offs and runs. \
      A folder is proven by its check sums, its control totals and the run that made it. \
      A run is proven by its entry in the trail and its report. \
      The first difference is printed, and the exit status is 70.

      Examples:
        night-audit verify
        night-audit verify /var/lib/night-audit/reports/2026-11-19
        night-audit verify --run latest
      """)

  @OptionGroup var common: CommonOptions

  @Argument(help: ArgumentHelp("A report folder.", valueName: "dir")) var directory: String?
  @Option(help: ArgumentHelp("A run, as night-audit runs names it.", valueName: "run")) var run: String?

  func validate() throws {
    if directory != nil, run != nil { throw ValidationError("Give a report folder, or a run with --run, or neither.") }
  }

  func run(_ settings: Settings) async throws -> ExitStatus {
    let verification =
      if let directory {
        try await RunVerification(directory: directory, settings)
      } else if let run {
        try await RunVerification(run: run, settings)
      } else {
        try await RunVerification(trailOf: settings)
      }
    try common.show(verification.document, verification.text(isQuiet: common.quiet))
    return verification.exitStatus
  }
}

struct ForgetRun: SettingsCommand {
  static let configuration = CommandConfiguration(
    commandName: "forget", abstract: "Take back a run with a wrong as-of or over a wrong view.",
    discussion: """
      Findings that the run closed are open again, and findings that it opened are removed. \
      Apple's answers stay, with their dates. \
      The report folder is removed if people have put no files into it, and latest points to the night before. \
      If the run had replaced an earlier report, its day has no report then, and is printed.

      Examples:
        night-audit runs
        night-audit runs forget 3f0c
      """)

  @OptionGroup var common: CommonOptions

  @Argument(help: ArgumentHelp("A run.", valueName: "run")) var run: String

  func run(_ settings: Settings) async throws -> ExitStatus {
    let outcome = try await RunUndo.forget(run, settings, logger: common.logger)
    try common.show(outcome.document, common.quiet ? nil : outcome.text)
    return .complete
  }
}
