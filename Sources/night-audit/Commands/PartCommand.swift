import ArgumentParser
import Auditing
import Foundation
import Glibc
import NightAudit
import Reconciliation
import Run
import Settings

struct AuditPartCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "audit-part",
    abstract: "Audit one part of the orders, for programs that distribute a night over many hosts.",
    discussion: """
      With --plan it prints the queries for the rows of every part, and keeps its snapshots open until standard input ends. It \
      needs the configuration. With --stage it reads frames from standard input, in the order of their keys, and writes frames \
      to standard output. It needs neither configuration nor database. The page Spark describes stages and frames.

      The output is no JSON document: the command refuses --json.

      Examples:
        night-audit audit-part --plan 64 --as-of 2026-11-20T03:00:00Z
        night-audit audit-part --stage judge --context /tmp/context
      """)

  @OptionGroup var common: CommonOptions

  @Option(help: ArgumentHelp("Number of parts to plan.", valueName: "parts")) var plan: Int?

  @Option(
    help: ArgumentHelp(
      "The stage: \(AuditPart.Stage.allCases.map(\.rawValue).joined(separator: ", ")).", valueName: "stage"))
  var stage: AuditPart.Stage?

  @Option(help: ArgumentHelp("With --stage: the file with the plan's context.", valueName: "file")) var context: String?

  @Option(help: ArgumentHelp("With --plan: as for run.", valueName: "instant"), transform: OptionValue.instant)
  var asOf: Instant?

  @Flag(help: "With --plan: the orders lie in several stores, which no snapshot spans.") var severalStores = false

  @Option(help: ArgumentHelp("With --plan: first day of the period.", valueName: "day")) var since: String?
  @Option(help: ArgumentHelp("With --plan: last day of the period, included.", valueName: "day")) var until: String?

  func validate() throws {
    if isatty(STDOUT_FILENO) == 1 {
      throw ValidationError(
        "The output is for programs, and a plan contains passwords: standard output must not be a terminal.")
    }
    if common.json { throw ValidationError("audit-part prints no JSON document; leave out --json.") }
    if (plan == nil) == (stage == nil) { throw ValidationError("Give either --plan or --stage.") }
    if stage != nil, context == nil {
      throw ValidationError("--stage needs --context: the context file of the plan.")
    }
    if let plan, !(1...100_000).contains(plan) { throw ValidationError("--plan \(plan) is not from 1 to 100000.") }
    if plan != nil, asOf == nil || since == nil || until == nil {
      throw ValidationError("--plan needs --as-of, such as 2026-11-20T03:00:00Z, --since and --until.")
    }
  }

  func run() async throws {
    if let stage, let context {
      try await common.concluding {
        try AuditPart.run(
          stage, context: context, stop: StopSignal(), progress: WorkProgress(logger: common.logger, isQuiet: true))
        return .complete
      }
    } else if let plan, let asOf = asOf, let since, let until {
      try await common.listening { settings, night in
        var request = NightRequest(asOf: asOf)
        request.isOneNight = false
        request.hasOneSnapshot = !severalStores
        request.period = try Period(since: since, until: until, in: settings.timeZone)
        try await night.planParts(request, parts: plan) { line in
          print(String(decoding: line, as: UTF8.self))
          fflush(nil)
          // Keeps the snapshots open until standard input ends.
          while readLine() != nil {}
        }
        return .complete
      }
    }
  }
}

extension AuditPart.Stage: ExpressibleByArgument {}
