import ArgumentParser
import NightAudit
import Run

struct Status: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "One screen: the last night, whether it is overdue, what is open, what is due, who holds the lock.",
    discussion: """
      Examples:
        night-audit status
        night-audit status --json
      """)

  @OptionGroup var common: CommonOptions

  @Flag(help: "Print JSON.")
  var json = false

  func run() async throws {
    try await common.reporting { settings, _ in
      let status = try await NightStatus.look(settings)
      print(json ? try status.json : status.text)
      return .complete
    }
  }
}

struct Verify: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Prove that what was written is what was written: all of it, a report folder, or a run.",
    discussion: """
      Alone it proves the whole trail: evidence, answers, the history of findings, sign-offs and runs. A folder is proven by
      its check sums, its control totals and the run that made it; a run by its entry in the trail and its report. The first
      thing that does not fit is named, and the exit status is 70.

      Examples:
        night-audit verify
        night-audit verify /var/lib/night-audit/reports/2026-11-19
        night-audit verify --run latest
      """)

  @OptionGroup var common: CommonOptions

  @Argument(help: ArgumentHelp("A report folder.", valueName: "dir"))
  var directory: String?

  @Option(help: ArgumentHelp("A run, as night-audit runs names it.", valueName: "run"))
  var run: String?

  @Flag(help: "Print JSON.")
  var json = false

  func validate() throws {
    if directory != nil, run != nil { throw ValidationError("Name a report folder, or a run with --run, or neither.") }
  }

  func run() async throws {
    try await common.reporting { settings, _ in
      let verification: RunVerification
      if let directory {
        verification = try await RunVerification(directory: directory, settings)
      } else if let run {
        verification = try await RunVerification(run: run, settings)
      } else {
        verification = try await RunVerification(trailOf: settings)
      }
      print(json ? try verification.json : verification.text)
      return verification.exitStatus
    }
  }
}

struct ForgetRun: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "forget", abstract: "Take back what a run with a wrong as-of did.",
    discussion: """
      Findings that it closed are open again, findings that it opened are gone, answers are as old as they are, its report
      folder is removed if nobody has put anything into it, and latest points to the night before. What Apple said stays. A
      day whose earlier report it had replaced is left without one, and is named.

      Examples:
        night-audit runs
        night-audit runs forget 3f0c
      """)

  @OptionGroup var common: CommonOptions

  @Argument(help: ArgumentHelp("A run.", valueName: "run"))
  var run: String

  @Flag(help: "Print JSON.")
  var json = false

  func run() async throws {
    try await common.reporting { settings, logger in
      let text = try await RunUndo(settings: settings, logger: logger).forget(run)
      print(json ? try text.json : text.text)
      return .complete
    }
  }
}
