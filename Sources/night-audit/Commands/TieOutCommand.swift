import ArgumentParser
import NightAudit
import Reconciliation
import Run
import Settings

struct TieOutCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "tie-out",
    abstract: "Compare Apple's sales and finance reports with the orders and transactions here.",
    discussion: """
      Fetches due reports (appStoreConnect.*) or reads the files in tieOut.folder, judges all orders as `reconcile` \
      does, compares, stores and prints. `run` does the same every night. No order's disposition depends on it.

      Examples:
        night-audit tie-out
        night-audit tie-out --offline --json
        night-audit tie-out --year 2026
      """)

  @OptionGroup var common: CommonOptions

  @Option(
    help: ArgumentHelp(
      "The instant that the tie-out describes, such as 2026-11-20T03:00:00Z. Default: now.", valueName: "instant"),
    transform: OptionValue.instant)
  var asOf: Instant?

  @Option(help: ArgumentHelp("What customers paid in this calendar year, per month and country.", valueName: "year"))
  var year: Int?

  @Flag(help: "Do not ask Apple; compare the stored reports and those in tieOut.folder.") var offline = false

  func validate() throws {
    if let year, !(2008...2199).contains(year) { throw ValidationError("--year must be a year such as 2026.") }
  }

  func run() async throws {
    try await common.listening { settings, night in
      let request = NightRequest(asOf: asOf)
      guard let outcome = try await night.tieOut(request, mayFetch: !offline, year: year) else {
        throw ConfigurationError(
          key: "appStoreConnect.privateKeyFile",
          problem: "neither a key nor tieOut.folder is set: there is nothing to compare with")
      }
      let text = TieOutText(outcome, gross: try await night.gross(year: year, asOf: request.asOf))
      try common.show(text.document, common.quiet && text.exitStatus == .complete ? nil : text.table)
      return text.exitStatus
    }
  }
}
