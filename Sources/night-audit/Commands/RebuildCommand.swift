import ArgumentParser
import AuditStore
import NightAudit
import Run

struct RebuildCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "rebuild", abstract: "Derive what is kept for speed from the evidence anew, and compare.",
    discussion: """
      What Apple said about each transaction is folded into one row, which proof brought it is kept beside, and when each \
      proof is asked about next is kept with the proof: all of it follows from what is known. A difference ends with 70; \
      --write mends it.

      Examples:
        night-audit rebuild
        night-audit rebuild --write
      """)

  @OptionGroup var common: CommonOptions

  @Flag(help: "Mend what differs.")
  var write = false

  @Flag(help: "Print JSON.")
  var json = false

  func run() async throws {
    try await common.reporting { settings, _ in
      let outcome = try await RebuildRun(settings: settings).rebuild(isMending: write)
      print(json ? try outcome.json : outcome.text)
      return outcome.agrees || outcome.isMendedWhole ? .complete : .internalError
    }
  }
}
