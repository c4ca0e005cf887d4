import ArgumentParser
import NightAudit
import Run

@main
enum Program {
  static func main() async {
    ProcessGuard.stand()
    let work = Task { await NightAuditCommand.run() }
    Signals.cancelling { work.cancel() }
    await work.value
  }
}

/// Prints text. Shadows Swift's function in all commands.
func print(_ text: String, terminator: String = "\n") { Terminal.print(text, terminator: terminator) }

struct NightAuditCommand: AsyncParsableCommand {
  /// As `main`, with a JSON answer to an invalid command line.
  static func run() async {
    do {
      if let slip = CommandSlip(CommandLine.arguments.dropFirst()) { throw ValidationError(slip.description) }
      var command = try parseAsRoot()
      if var command = command as? any AsyncParsableCommand {
        try await command.run()
      } else {
        try command.run()
      }
    } catch {
      let status = exitCode(for: error)
      // A command that throws an exit code has printed its message.
      if !(error is ExitCode), !status.isSuccess { MachineError.report(message(for: error), status: status.rawValue) }
      exit(withError: error)
    }
  }

  static let configuration = CommandConfiguration(
    commandName: "night-audit",
    abstract: "Compares the shop's orders, Apple's transactions and the deliveries to users.",
    discussion: """
      Cron starts `night-audit run`. By hand:

        night-audit doctor                  check the set-up; problems and remedies
        night-audit status                  last night, open findings, due checks
        night-audit run                     the business day before now
        night-audit run --date 2026-11-19   one day
        night-audit run --since 2026-11-01 --until 2026-11-30
        night-audit run --order 4711 --date 2026-11-03
        night-audit reconcile --user 800    decide without asking Apple
        night-audit explain 4711            one order: facts, evidence, rules
        night-audit findings list --severity critical
        night-audit runs diff 2026-11-18 latest
        night-audit tie-out                 compare with Apple's sales reports

      Exit status: 0 complete, 1 name or report not found, 2 critical findings (--fail-on-findings), 3 incomplete, \
      4 held, 64 usage, 69 database unreachable, 70 internal error or failed proof (verify, rebuild), 73 cannot write \
      or send, 75 another run, 78 configuration or credentials, 130 and 143 stopped by a signal.
      """,
    version: Version.current,
    subcommands: [
      Run.self, Recheck.self, Reconcile.self, ExplainCommand.self, Findings.self, Runs.self, Init.self,
      DoctorCommand.self, ConfigCommand.self, Trust.self, TieOutCommand.self, RebuildCommand.self, Status.self,
      Verify.self, AuditPartCommand.self,
    ])
}
