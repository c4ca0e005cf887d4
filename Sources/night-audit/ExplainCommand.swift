import ArgumentParser
import Auditing
import Foundation
import NightAudit
import Reconciliation
import Run

/// `night-audit explain`
struct ExplainCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "explain",
    abstract: "Tell everything about one order: facts, evidence, rule by rule, and why.",
    discussion: """
      Decides from what is stored, as a night would; asks Apple nothing and changes nothing.

      Examples:
        night-audit explain 4711
        night-audit explain 4711 --as-of 2026-11-20T03:00:00Z
        night-audit explain 4711 --json
      """)

  @OptionGroup var common: CommonOptions

  @Argument(help: ArgumentHelp("The order's id.", valueName: "order"))
  var order: String

  @Option(
    name: .customLong("as-of"),
    help: ArgumentHelp("The instant to decide for, such as 2026-11-20T03:00:00Z. Default: now.", valueName: "instant"))
  var asOf: String?

  @Flag(help: "Print everything as JSON.")
  var json = false

  func validate() throws {
    if let asOf, AuditOptions.instant(asOf) == nil {
      throw ValidationError("--as-of \(asOf) is no instant; write 2026-11-20T03:00:00Z.")
    }
  }

  func run() async throws {
    try await common.reporting { settings, _ in
      let dossier = try await Explain(settings: settings).dossier(
        Identifier(order), asOf: asOf.flatMap(AuditOptions.instant) ?? .now)
      print(json ? try DossierDocument(dossier).json : DossierText.text(dossier, settings: settings))
      return .complete
    }
  }
}
