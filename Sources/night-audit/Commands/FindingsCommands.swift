import ArgumentParser
import AuditStore
import Foundation
import NightAudit
import Reconciliation
import Run
import Settings

struct Findings: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "List findings, and record people's decisions about them.",
    discussion: """
      A finding closes by itself when the facts agree. People can acknowledge it, assign it, leave a remark, accept it \
      until a day or up to an amount, or close it. \
      A finding that a person closed stays in the reports, and counts as open, until the facts agree.

      Name findings by their IDs, by the first digits of the IDs, or by filters together with --all.
      """,
    subcommands: [
      ListFindings.self, AcknowledgeFindings.self, AssignFindings.self, RemarkFindings.self, CloseFindings.self,
      AcceptFindings.self, ReopenFindings.self, DueFindings.self, UndoFindings.self, ImportFindings.self,
    ],
    defaultSubcommand: ListFindings.self)
}

extension FindingKind: ExpressibleByArgument {
  /// A kind by its code or by its title in reports.
  public init?(argument: String) {
    let found = FindingKind.allCases.first {
      $0.rawValue == argument || $0.title.caseInsensitiveCompare(argument) == .orderedSame
    }
    guard let found else { return nil }
    self = found
  }

  public static var allValueStrings: [String] { allCases.map(\.rawValue) }
}

extension Severity: ExpressibleByArgument {}
extension FindingStatus: ExpressibleByArgument {}
extension FindingsFilter.State: ExpressibleByArgument {}

struct FindingsFilterOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "Findings of this kind, such as paid_not_delivered or \"Paid, not delivered\". May be repeated.",
      valueName: "kind"))
  var kind: [FindingKind] = []

  @Option(help: "critical, major or minor. May be repeated.") var severity: [Severity] = []

  @Option(help: "Findings with this status: open, acknowledged, accepted or closed. May be repeated.")
  var status: [FindingStatus] = []

  @Option(help: "Whether the finding still applies: open, closed (by itself) or any.")
  var state = FindingsFilter.State.open

  @Option(help: ArgumentHelp("Findings of this user.", valueName: "user-id")) var user: String?
  @Option(help: ArgumentHelp("Findings on this order.", valueName: "order-id")) var order: String?
  @Option(help: ArgumentHelp("Findings with this owner.", valueName: "name")) var owner: String?
  @Flag(help: "Findings without an owner.") var unassigned = false

  @Option(help: ArgumentHelp("Findings in this currency.", valueName: "code"), transform: OptionValue.currency)
  var currency: Currency?

  // Unconditional, because "Missing value" would not explain a negative amount.
  @Option(
    parsing: .unconditional, help: ArgumentHelp("Of this amount or more; with --currency.", valueName: "amount"),
    transform: OptionValue.amount)
  var minAmount: String?

  @Option(
    parsing: .unconditional, help: ArgumentHelp("Of this amount or less; with --currency.", valueName: "amount"),
    transform: OptionValue.amount)
  var maxAmount: String?

  @Option(
    help: ArgumentHelp("First reported at least this long ago (column age): 3d.", valueName: "duration"),
    transform: OptionValue.duration)
  var minAge: Reconciliation.Span?

  @Option(
    help: ArgumentHelp("First reported at most this long ago (column age): 3d.", valueName: "duration"),
    transform: OptionValue.duration)
  var maxAge: Reconciliation.Span?

  @Option(
    help: ArgumentHelp(
      "The purchase, refund or delivery was at least this long ago (column days since): 30d.", valueName: "duration"),
    transform: OptionValue.duration)
  var minDaysSince: Reconciliation.Span?

  @Option(
    help: ArgumentHelp(
      "The purchase, refund or delivery was at most this long ago (column days since): 30d.", valueName: "duration"),
    transform: OptionValue.duration)
  var maxDaysSince: Reconciliation.Span?

  func validate() throws {
    if currency == nil, minAmount != nil || maxAmount != nil {
      throw ValidationError("Amounts of different currencies are never compared; give --currency too.")
    }
    if owner != nil, unassigned { throw ValidationError("--owner and --unassigned exclude each other.") }
  }

  var filter: FindingsFilter {
    var filter = FindingsFilter()
    (filter.kinds, filter.severities, filter.statuses, filter.state) = (kind, severity, status, state)
    (filter.userId, filter.orderId, filter.owner, filter.isUnassigned) = (user, order, owner, unassigned)
    (filter.currency, filter.minAmount, filter.maxAmount) = (currency, minAmount, maxAmount)
    (filter.minAge, filter.maxAge) = (minAge, maxAge)
    (filter.minSince, filter.maxSince) = (minDaysSince, maxDaysSince)
    return filter
  }

  var isEmpty: Bool { filter == FindingsFilter() }
}

struct ListFindings: SettingsCommand {
  static let configuration = CommandConfiguration(
    commandName: "list", abstract: "List findings, worst first.",
    discussion: """
      Examples:
        night-audit findings list --severity critical --unassigned
        night-audit findings list --min-age 7d --csv > old.csv
        night-audit findings list 4f2a91 --json    with the history
      """)

  @OptionGroup var common: CommonOptions
  @OptionGroup var options: FindingsFilterOptions

  @Argument(help: ArgumentHelp("Only these findings: ids, or the first digits of ids.", valueName: "finding-id"))
  var ids: [String] = []

  @Option(
    help: ArgumentHelp("Count ages to this instant, such as 2026-11-20T03:00:00Z. Default: now.", valueName: "instant"),
    transform: OptionValue.instant)
  var asOf: Instant?

  @Option(
    parsing: .unconditional,
    help: ArgumentHelp("Findings of exactly this amount, in major units such as 4.99.", valueName: "amount"),
    transform: OptionValue.amount)
  var amount: String?

  @Flag(help: "Print CSV with the columns of findings.csv.") var csv = false

  func validate() throws {
    if common.json, csv { throw ValidationError("--json and --csv exclude each other.") }
  }

  func run(_ settings: Settings) async throws -> ExitStatus {
    var filter = options.filter
    filter.amount = amount
    // A finding that is named by its ID is listed in any state.
    if !ids.isEmpty, options.isEmpty, amount == nil { filter.state = .any }
    let (now, named) = (asOf ?? .now, ids.isEmpty ? nil : ids)
    let editor = FindingsEditor(settings: settings, now: now)
    if common.json {
      try await editor.list(filter, ids: named) { FindingsJSON(asOf: now) { print($0, terminator: "") } }
    } else if csv {
      try await editor.list(filter, ids: named) {
        FindingsCSV(asOf: now, settings: settings) { print($0, terminator: "") }
      }
    } else {
      try await editor.list(filter, ids: named) {
        FindingsTable(asOf: now, width: Terminal.width) { print($0, terminator: "") }
      }
    }
    return .complete
  }
}

struct DecisionOptions: ParsableArguments {
  @OptionGroup var common: CommonOptions
  @OptionGroup var options: FindingsFilterOptions

  @Argument(help: ArgumentHelp("Findings: ids, or the first digits of ids.", valueName: "finding-id"))
  var ids: [String] = []

  @Flag(help: "Change all findings that match the filters, instead of IDs.") var all = false
  @Flag(help: "Change every open finding, without a filter.") var yes = false
  @OptionGroup var recording: RecordingOptions

  func validate() throws {
    if ids.isEmpty, !all { throw ValidationError("Name findings by their IDs, or give filters together with --all.") }
    if !ids.isEmpty, all || !options.isEmpty {
      throw ValidationError("Give either IDs, or filters with --all, not both.")
    }
    if all, options.isEmpty, !yes, !recording.dryRun {
      throw ValidationError(
        "--all without a filter changes every open finding; give a filter, or --yes. --dry-run prints how many.")
    }
  }
}

/// A command that changes findings.
protocol DecisionCommand: SettingsCommand {
  var options: DecisionOptions { get }
  var decisions: [FindingDecision] { get throws }
}

extension DecisionCommand {
  var common: CommonOptions { options.common }

  func run(_ settings: Settings) async throws -> ExitStatus {
    let recording = options.recording
    let outcome = try await FindingsEditor(settings: settings, now: .now).change(
      options.all ? .all(options.options.filter) : .ids(options.ids), to: try decisions, by: try recording.actor,
      isDryRun: recording.dryRun)
    let text = DecisionText(outcome, isDryRun: recording.dryRun)
    try common.show(text.document, common.quiet ? nil : text.line)
    return .complete
  }
}

/// The author of a change, and options of its output.
struct RecordingOptions: ParsableArguments {
  @Option(help: ArgumentHelp("The person who decides. Default: the login name.", valueName: "name")) var by: String?
  @Flag(help: "Print what would change, and change nothing.") var dryRun = false

  /// `SUDO_USER` comes first, because the account of night-audit is no person.
  var actor: String {
    get throws {
      let name = by ?? ProcessInfo.processInfo.environment["SUDO_USER"] ?? NSUserName()
      guard let actor = try PeopleText.owner(name) else {
        throw ValidationError("Your login name is unknown; give your name with --by.")
      }
      return actor
    }
  }
}

struct AcknowledgeFindings: DecisionCommand {
  static let configuration = CommandConfiguration(
    commandName: "acknowledge", abstract: "Record that a person knows about findings.",
    discussion: """
      Examples:
        night-audit findings acknowledge 4f2a91c3 --by anna
        night-audit findings acknowledge --all --kind stuck_unconfirmed
      """)

  @OptionGroup var options: DecisionOptions

  var decisions: [FindingDecision] { [.status(.acknowledged)] }
}

struct CloseFindings: DecisionCommand {
  static let configuration = CommandConfiguration(
    commandName: "close", abstract: "Record that findings are settled.",
    discussion: """
      Closing changes no facts. Until the facts agree, the finding stays in the reports with the status closed.

      Examples:
        night-audit findings close 4f2a91c3
        night-audit findings close --all --kind bad_row --min-age 30d
      """)

  @OptionGroup var options: DecisionOptions

  var decisions: [FindingDecision] { [.status(.closed)] }
}

struct AcceptFindings: DecisionCommand {
  static let configuration = CommandConfiguration(
    commandName: "accept", abstract: "Accept findings until a day, or up to an amount at risk.",
    discussion: """
      An accepted finding stays in the reports with the status accepted. The first night after the day, or with more money \
      at risk than the amount, gives it the status open again. An unknown amount at risk is more than any amount.

      Examples:
        night-audit findings accept 4f2a91c3 --until 2026-12-31
        night-audit findings accept --all --kind amount_mismatch --amount 5.00
      """)

  @OptionGroup var options: DecisionOptions

  @Option(help: ArgumentHelp("The last day of the acceptance, in the report's time zone.", valueName: "yyyy-mm-dd"))
  var until: String?

  @Option(
    parsing: .unconditional,
    help: ArgumentHelp("The largest amount at risk, in the finding's currency.", valueName: "amount"),
    transform: OptionValue.amount)
  var amount: String?

  func validate() throws {
    if let amount, amount.utf8.count > Acceptance.longestAmount {
      throw ValidationError("--amount \(amount) has more than \(Acceptance.longestAmount) characters; shorten it.")
    }
    if until == nil, amount == nil {
      throw ValidationError("An acceptance needs a limit: --until, --amount, or both.")
    }
  }

  var decisions: [FindingDecision] {
    get throws {
      [.status(.accepted), .acceptance(Acceptance(until: try until.flatMap(PeopleText.due), amount: amount))]
    }
  }
}

struct ReopenFindings: DecisionCommand {
  static let configuration = CommandConfiguration(
    commandName: "reopen", abstract: "Take back an acknowledgement or a closing.",
    discussion: """
      Examples:
        night-audit findings reopen 4f2a91c3
      """)

  @OptionGroup var options: DecisionOptions

  var decisions: [FindingDecision] { [.status(.open)] }
}

struct AssignFindings: DecisionCommand {
  static let configuration = CommandConfiguration(
    commandName: "assign", abstract: "Record the owner of findings.",
    discussion: """
      Examples:
        night-audit findings assign 4f2a91c3 --to anna
        night-audit findings assign --all --severity critical --unassigned --to ops
      """)

  @OptionGroup var options: DecisionOptions

  @Option(help: ArgumentHelp("The owner; \"\" for none.", valueName: "name")) var to: String

  var decisions: [FindingDecision] { get throws { [.owner(try PeopleText.owner(to))] } }
}

struct RemarkFindings: DecisionCommand {
  static let configuration = CommandConfiguration(
    commandName: "remark", abstract: "Leave a remark on findings; it replaces the one before, which the history keeps.",
    discussion: """
      Examples:
        night-audit findings remark 4f2a91c3 --text "customer was called on Monday"
      """)

  @OptionGroup var options: DecisionOptions

  @Option(help: ArgumentHelp("The remark; \"\" for none.", valueName: "text")) var text: String

  var decisions: [FindingDecision] { get throws { [.remark(try PeopleText.remark(text))] } }
}

struct DueFindings: DecisionCommand {
  static let configuration = CommandConfiguration(
    commandName: "due", abstract: "Record the day by which findings must be settled.",
    discussion: """
      Examples:
        night-audit findings due 4f2a91c3 --on 2026-12-01
      """)

  @OptionGroup var options: DecisionOptions

  @Option(help: ArgumentHelp("The day; \"\" for none.", valueName: "yyyy-mm-dd")) var on: String

  var decisions: [FindingDecision] { get throws { [.due(try PeopleText.due(on))] } }
}

struct UndoFindings: SettingsCommand {
  static let configuration = CommandConfiguration(
    commandName: "undo", abstract: "Take back the last change, of any size, sign-offs included.",
    discussion: """
      Without an ID the newest change that is not undone yet is taken back: a decision about one finding or many, or an \
      import with its sign-off. Findings that a person has changed since stay as they are.

      Examples:
        night-audit findings undo --dry-run
        night-audit findings undo 1c9f
      """)

  @OptionGroup var common: CommonOptions
  @OptionGroup var recording: RecordingOptions

  @Argument(help: ArgumentHelp("The printed ID of the change, or its first digits.", valueName: "change-id"))
  var change: String?

  func run(_ settings: Settings) async throws -> ExitStatus {
    let (change, outcome) = try await FindingsEditor(settings: settings, now: .now).undo(
      change, by: try recording.actor, isDryRun: recording.dryRun)
    let text = DecisionText(outcome, isDryRun: recording.dryRun, undone: change)
    try common.show(text.document, common.quiet ? nil : text.line)
    return .complete
  }
}

struct ImportFindings: SettingsCommand {
  static let configuration = CommandConfiguration(
    commandName: "import", abstract: "Import people's entries from a workbook: status, owner, due, remark, sign-off.",
    discussion: """
      Rows are found by their finding ID, in any order. Only these four columns are read, and the sign-off on the first \
      sheet. A row with an invalid cell is refused as a whole and printed with the reason. All other rows are imported, \
      and the exit status is 1. Importing the same file twice \
      changes nothing the second time.

      A sign-off is refused when one person prepares and reviews, or when a control of the workbook is not balanced. \
      Without --accept-incomplete it is also refused when the report is incomplete or its period has not ended. \
      A second sign-off is kept beside the first.

      Examples:
        night-audit findings import night-audit-2026-11-19.xlsx --dry-run
        night-audit findings import night-audit-2026-11-19.xlsx --by finance
      """)

  @OptionGroup var common: CommonOptions
  @OptionGroup var recording: RecordingOptions

  @Flag(help: "Accept the sign-off of an incomplete report, or of a period that has not ended.")
  var acceptIncomplete = false

  @Argument(help: ArgumentHelp("The workbook.", valueName: "file.xlsx")) var file: String

  func run(_ settings: Settings) async throws -> ExitStatus {
    let outcome = try await WorkbookImport.run(
      file, settings, by: try recording.actor, now: .now, acceptsIncomplete: acceptIncomplete,
      isDryRun: recording.dryRun)
    let text = ImportText(outcome, isDryRun: recording.dryRun)
    try common.show(text.document, common.quiet ? nil : text.lines)
    return text.exitStatus
  }
}
