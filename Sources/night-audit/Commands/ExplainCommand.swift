import ArgumentParser
import Auditing
import NightAudit
import Reconciliation
import Run
import Settings

struct ExplainCommand: SettingsCommand {
  static let configuration = CommandConfiguration(
    commandName: "explain", abstract: "Explain one order: its facts, its evidence, and each rule with its result.",
    discussion: """
      Decides from the stored answers, as a night would. Does not ask Apple and changes nothing. An order ID of Apple's mail \
      to a customer (M…) is looked up at Apple: the transactions of that invoice are printed beside our orders.

      Examples:
        night-audit explain 4711
        night-audit explain 4711 --as-of 2026-11-20T03:00:00Z
        night-audit explain 4711 --json
        night-audit explain MK5TYVX1QZ     Apple's order ID, from the customer's mail
      """)

  @OptionGroup var common: CommonOptions

  @Argument(
    help: ArgumentHelp(
      "The order ID, or the order ID of Apple's mail. An ID that begins with a dash follows two dashes: -- -5.",
      valueName: "order"))
  var order: String

  @Option(
    help: ArgumentHelp("The instant to decide for, such as 2026-11-20T03:00:00Z. Default: now.", valueName: "instant"),
    transform: OptionValue.instant)
  var asOf: Instant?

  func run(_ settings: Settings) async throws -> ExitStatus {
    let instant = asOf ?? .now
    do {
      let explanation = try await Explain(settings: settings).order(Identifier(order), asOf: instant)
      try common.show(explanation, ExplanationText.text(explanation, settings: settings))
    } catch let missing as Explain.Missing {
      guard missing.similarIDs.isEmpty, Invoice.isOrderId(order) else { throw missing }
      let invoice = try await InvoiceRun.invoice(order, settings, asOf: instant)
      try common.show(invoice, invoice.text(settings))
    }
    return .complete
  }
}
