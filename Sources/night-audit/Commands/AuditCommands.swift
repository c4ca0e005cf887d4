import ArgumentParser
import Asking
import Auditing
import NightAudit
import Run
import Settings

struct Run: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Ask Apple about receipts, reconcile, and write the report. Cron starts this command.",
    discussion: """
      Without filters the report is written to <report.directory>/<day>/ and `latest` points to it; with filters, for \
      several days, or for a future day, to <report.directory>/ad-hoc/.

      Examples:
        night-audit run
        night-audit run --date 2026-11-19 --max-duration 30m
        night-audit run --user 800 --out /tmp/user-800
        night-audit run --dry-run
        night-audit run --accept           publish a held night after a review
        night-audit run --adopt            take over reports after a restore
        night-audit run --parts /shared/parts --as-of 2026-11-20T03:00:00Z
      """)

  @OptionGroup var common: CommonOptions
  @OptionGroup var options: AuditOptions

  @Option(
    help: ArgumentHelp(
      "Join and publish the results of audit-part in this folder. Read no orders, do not ask Apple.", valueName: "dir"))
  var parts: String?

  @Flag(help: "Take over report folders of runs that this database does not know, after it was restored from a backup.")
  var adopt = false

  func validate() throws {
    guard parts != nil else { return }
    if options.order ?? options.user ?? options.product ?? options.app != nil {
      throw ValidationError("--parts covers all orders; leave out --order, --user, --product and --app.")
    }
    if options.asOf == nil { throw ValidationError("--parts needs --as-of: the as-of of the parts.") }
  }

  func run() async throws {
    try await common.listening { settings, night in
      var request = try options.request(settings, command: "run")
      request.parts = parts
      request.isAdopting = adopt
      let outcome: NightOutcome
      if options.dryRun {
        var dry = request
        dry.out = nil
        dry.isRehearsal = true
        outcome = try await night.reconcile(dry)
      } else {
        outcome = try await night.run(request)
      }
      try common.show(outcome)
      return outcome.exitStatus
    }
  }
}

struct Recheck: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Only ask Apple about receipts that are due, and store the answers.",
    discussion: """
      Several processes may share a database. Each takes its own checks from the queue. \
      At the end each waits for the checks of the others.

      Examples:
        night-audit recheck
        night-audit recheck --order 4711
        night-audit recheck --date 2026-11-19

      With --date, --since or --until it asks about the receipts and IDs of the orders of that period only. \
      With any filter it does not sweep Apple's notifications.

      This command judges no orders and writes no report. It accepts --out, --accept, --readers, --fail-above and \
      --fail-on-findings without effect, so that one line of options serves run, recheck and reconcile.
      """)

  @OptionGroup var common: CommonOptions
  @OptionGroup var options: AuditOptions

  func run() async throws {
    try await common.listening { settings, night in
      var request = try options.request(settings, command: "recheck")
      request.selection.period = request.period
      let summary = options.dryRun ? try await night.dueOnly(request) : try await night.recheck(request)
      let isHidden = common.quiet && summary.exitStatus == .complete
      try common.show(RecheckDocument(summary), isHidden ? nil : summary.line)
      return summary.exitStatus
    }
  }
}

struct Reconcile: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Only reconcile, from the stored answers. Writes files only with --out.",
    discussion: """
      Examples:
        night-audit reconcile
        night-audit reconcile --since 2026-11-01 --until 2026-11-30 --json
        night-audit reconcile --out /tmp/november
      """)

  @OptionGroup var common: CommonOptions
  @OptionGroup var options: AuditOptions

  func run() async throws {
    try await common.listening { settings, night in
      var request = try options.request(settings, command: "reconcile")
      if options.dryRun { request.out = nil }
      let outcome = try await night.reconcile(request)
      try common.show(outcome)
      return outcome.exitStatus
    }
  }
}

extension CommonOptions {
  fileprivate func show(_ night: NightOutcome) throws { try show(night.document, quiet ? night.brief : night.table) }
}
