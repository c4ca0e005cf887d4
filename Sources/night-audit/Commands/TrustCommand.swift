import ArgumentParser
import NightAudit
import Run
import Settings

struct Trust: SettingsCommand {
  static let configuration = CommandConfiguration(
    abstract: "Fetch and pin Apple's root certificates for the check of signed data. Safe to repeat.",
    discussion: """
      Fetches both of Apple's roots into appstore.rootCertificates (by default /etc/night-audit/apple-roots). From any \
      source, only the two certificates whose SHA-256 night-audit knows are accepted.

      On a machine without internet access, give files that were fetched elsewhere, under any names:
        https://www.apple.com/certificateauthority/AppleRootCA-G3.cer
        https://www.apple.com/appleca/AppleIncRootCertificate.cer

      Examples:
        sudo night-audit trust
        sudo night-audit trust --from /media/usb
        sudo night-audit trust --from https://mirror.example.com/apple
      """)

  @OptionGroup var common: CommonOptions

  @Option(
    help: ArgumentHelp(
      "A directory with the certificates, or the address of a mirror. Default: Apple.", valueName: "dir-or-url"))
  var from: String?

  struct Document: Encodable {
    var certificates: [RootInstallation.Entry.Document]
  }

  func run(_ settings: Settings) async throws -> ExitStatus {
    let entries = try await TrustRun.run(settings, from: from)
    try common.show(
      Document(certificates: entries.map(\.document)),
      common.quiet ? nil : entries.map(\.line).joined(separator: "\n"))
    return .complete
  }
}
