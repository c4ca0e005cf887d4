import ArgumentParser
import AuditStore
import NightAudit
import Run
import Settings

struct RebuildCommand: SettingsCommand {
  static let configuration = CommandConfiguration(
    commandName: "rebuild", abstract: "Derive the derived tables from the evidence again, and compare.",
    discussion: """
      Derived tables hold one row per transaction, the proofs that contain it, and the date when Apple is asked about each \
      proof next. All of them follow from the evidence and the dates of the shop's rows. Findings follow from their \
      events. A difference ends with 70; --write mends it. If a part is left that only a night or a re-check restores, \
      --write says so and ends with 70.

      Examples:
        night-audit rebuild
        night-audit rebuild --write
      """)

  @OptionGroup var common: CommonOptions

  @Flag(help: "Mend what differs.") var write = false

  func run(_ settings: Settings) async throws -> ExitStatus {
    let outcome = try await RebuildRun.rebuild(settings, isRepairing: write)
    let isSuccess = outcome.agrees || outcome.isMendedWhole
    try common.show(outcome, common.quiet && isSuccess ? nil : outcome.text)
    return isSuccess ? .complete : .internalError
  }
}
