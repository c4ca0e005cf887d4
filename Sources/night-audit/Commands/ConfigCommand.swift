import ArgumentParser
import NightAudit
import Run
import Settings

struct ConfigCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "config", abstract: "Show the configuration.", subcommands: [ShowConfig.self],
    defaultSubcommand: ShowConfig.self)
}

struct ShowConfig: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "show", abstract: "Print every key with its value and its origin; secrets are masked.",
    discussion: """
      Prints invalid values too, with the reason why they cannot be used, and then ends with 78.

      Examples:
        night-audit config show
        night-audit config show --config /etc/night-audit/night-audit.yaml --json
      """)

  @OptionGroup var common: CommonOptions

  func run() async throws {
    try await common.concluding {
      let loader = try common.loader()
      let listing = SettingsListing(loader)
      try common.show(listing, listing.table(width: Terminal.width))
      // On stderr, because standard output contains the document.
      do {
        for warning in try loader.load().warnings { Terminal.complain("night-audit: \(warning)") }
      } catch {
        Terminal.complain("night-audit: \(error)")
        return ExitStatus(for: error)
      }
      return .complete
    }
  }
}
