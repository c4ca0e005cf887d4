import ArgumentParser
import Asking
import Foundation
import NightAudit
import Run

/// `night-audit run`
struct Run: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Re-check receipts with Apple, reconcile, and write the report: what cron starts.",
    discussion: """
      Without filters the report lies in <report.directory>/<day>/ and `latest` points to it; with filters, or for several \
      days, in <report.directory>/ad-hoc/.

      Examples:
        night-audit run
        night-audit run --date 2026-11-19 --max-duration 30m
        night-audit run --user 800 --out /tmp/user-800
        night-audit run --dry-run
      """)

  @OptionGroup var common: CommonOptions
  @OptionGroup var options: AuditOptions

  @Flag(name: .customLong("fail-on-findings"), help: "End with status 2 when critical findings are open.")
  var failOnFindings = false

  func run() async throws {
    try await common.listening { settings, night in
      let request = try options.request(settings, command: "run")
      let outcome: NightOutcome
      if options.dryRun {
        var dry = request
        dry.out = nil
        outcome = try await night.reconcile(dry)
      } else {
        outcome = try await night.run(request)
      }
      return try conclude(outcome, options: options, isQuiet: common.quiet, failOnFindings: failOnFindings)
    }
  }
}

/// `night-audit recheck`
struct Recheck: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Only ask Apple about receipts that are due, and store the answers.",
    discussion: """
      Several of these may share a database; each takes its own part of the queue.

      Examples:
        night-audit recheck
        night-audit recheck --order 4711
      """)

  @OptionGroup var common: CommonOptions
  @OptionGroup var options: AuditOptions

  func run() async throws {
    try await common.listening { settings, night in
      let request = try options.request(settings, command: "recheck")
      let summary = options.dryRun ? try await night.dueOnly(request) : try await night.recheck(request)
      if options.json {
        print(try RecheckText(summary).json)
      } else if !common.quiet {
        print(RecheckText(summary).line)
      }
      return summary.exitStatus
    }
  }
}

/// `night-audit reconcile`
struct Reconcile: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Only decide, from what is stored. Writes nothing unless --out says where.",
    discussion: """
      Examples:
        night-audit reconcile
        night-audit reconcile --since 2026-11-01 --until 2026-11-30 --json
        night-audit reconcile --out /tmp/november
      """)

  @OptionGroup var common: CommonOptions
  @OptionGroup var options: AuditOptions

  @Flag(name: .customLong("fail-on-findings"), help: "End with status 2 when critical findings are open.")
  var failOnFindings = false

  func run() async throws {
    try await common.listening { settings, night in
      var request = try options.request(settings, command: "reconcile")
      if options.dryRun { request.out = nil }
      let outcome = try await night.reconcile(request)
      return try conclude(outcome, options: options, isQuiet: common.quiet, failOnFindings: failOnFindings)
    }
  }
}

/// Prints what a night came to and decides the exit status.
private func conclude(
  _ outcome: NightOutcome, options: AuditOptions, isQuiet: Bool, failOnFindings: Bool
) throws -> ExitStatus {
  if options.json {
    print(try OutcomeText(outcome).json)
  } else if !isQuiet {
    print(OutcomeText(outcome).table)
  }
  if outcome.exitStatus == .complete, failOnFindings, outcome.criticalFindings > 0 { return .criticalFindings }
  return outcome.exitStatus
}
