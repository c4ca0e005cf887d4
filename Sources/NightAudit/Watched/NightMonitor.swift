import AppStore
import Asking
import AuditStore
import Auditing
import Foundation
import Logging
import Postgres
import Publishing
import Reconciliation
import Reporting
import Run
import Settings

/// Reports a night to monitors: pings, metrics, and mail if it was held or failed. Never fails a night.
struct NightMonitor: Sendable {
  let settings: Settings
  let logger: Logger
  let record: RunRecord
  let stop: StopSignal
  /// The folder of the night's report; nil until it has appeared.
  var published: String?

  private var ping: Ping? { settings.pingURL.flatMap { Ping(url: $0, logger: logger) } }

  /// Only scheduled nights are watched: a manual run, or a run of another day, must not pass for one.
  private var isWatched: Bool {
    record.isNightly && record.period == Period.dayBefore(record.asOf, in: settings.timeZone)
  }

  func began() async {
    guard isWatched else { return }
    await ping?.send(.start, "Night audit of \(record.period.until) on \(record.host), run \(record.runId)\n")
  }

  func ended(
    _ outcome: NightOutcome, stages: [(String, Double)], requests: RequestStatistics.Counts, session: PostgresSession
  ) async {
    guard isWatched else { return }
    await write(outcome.exitStatus.rawValue, outcome, stages: stages, requests: requests, session: session)
    let event: Ping.Event =
      switch outcome.exitStatus {
      case .complete, .criticalFindings, .incomplete: .success
      case .held, .configuration, .cannotWrite, .nothingThere, .usage, .databaseUnreachable, .internalError, .locked,
        .interrupted, .terminated:
        .failure
      }
    await ping?.send(event, outcome.table + "\nExit status: \(outcome.exitStatus.rawValue)\n")
    if !outcome.held.isEmpty {
      await notify(.held(outcome.held, directory: outcome.directory.map { ReportFolder.absolute($0) }))
    }
  }

  func failed(_ error: any Error, status: Int32, requests: RequestStatistics.Counts) async {
    // A second run that finds the lock taken is not a failed night.
    guard isWatched, status != ExitStatus.locked.rawValue else { return }
    await write(status, nil, stages: [], requests: requests, session: nil)
    await ping?.send(
      .failure,
      "Night audit of \(record.period.until) on \(record.host): \(error)\nExit status: \(status), run \(record.runId)\n"
    )
    // A night that a person stopped needs no mail.
    if stop.stopped == nil { await notify(.failed(problem: "\(error)", status: status, published: published)) }
  }

  /// Mails the notice to the recipients of reports and of news, who would otherwise wait for a report.
  private func notify(_ cause: NightNotice.Cause) async {
    await NightNotice(record, cause).send(settings, logger: logger, stop: stop)
  }

  // MARK: - Metrics

  private func write(
    _ status: Int32, _ outcome: NightOutcome?, stages: [(String, Double)], requests: RequestStatistics.Counts,
    session: PostgresSession?
  ) async {
    guard let path = settings.metricsTextfile else { return }
    do {
      var metrics = await metrics(status, outcome, stages, session, path)
      metrics += NightMonitor.metrics(requests).map { $0.accumulated(from: path) }
      try MetricsFile(metrics).write(to: path)
    } catch {
      // An error, so that --quiet prints it: the monitor sees the old metrics until the night is late.
      logger.error("metrics.textfile: \(error)")
    }
  }

  private func metrics(
    _ status: Int32, _ outcome: NightOutcome?, _ stages: [(String, Double)], _ session: PostgresSession?, _ path: String
  ) async -> [Metric] {
    let complete = "night_audit_last_complete_timestamp_seconds"
    // Without an answer of the database the value of the last file stays.
    let ends = try? await lastEnds(session)
    let lastComplete = ends?.complete ?? MetricsFile.value(complete, in: path)
    var metrics = [
      Metric(
        complete, help: "When the last complete night ended. A late night counts with the time at which it was due.",
        lastComplete.map { [(labels: [], value: $0)] } ?? []),
      Metric(
        "night_audit_last_run_timestamp_seconds", help: "When the last night ended, complete or not.",
        value: ends?.any ?? String(Instant.now.seconds)),
      Metric("night_audit_exit_status", help: "Exit status of the last night.", value: String(status)),
      Metric(
        "night_audit_stage_duration_seconds", help: "How long each stage of the last night took.", by: "stage", stages),
    ]
    // A held night records no findings and a failed one knows none, so the findings of the last file stay.
    let isRecorded = outcome?.held.isEmpty ?? false
    metrics += NightMonitor.metrics(outcome?.summary.findings ?? FindingsSummary())
      .map { isRecorded ? $0 : $0.valued(asIn: path) }
    guard let outcome else { return metrics }
    let coverage = outcome.summary.feedCoverage.sorted { $0.key < $1.key }.map { ($0.key, $0.value.share) }
    metrics += [
      NightMonitor.metrics(outcome.summary.unusual),
      Metric(
        "night_audit_feed_coverage", help: "Share of an app's known sales that Apple's notifications reported.",
        by: "app", coverage),
      Metric("night_audit_orders", help: "Orders of the period.", value: String(outcome.totals.ordersRead)),
    ]
    if let recheck = outcome.recheck {
      let unanswered = recheck.outcomes[.unanswered] ?? 0
      let answered = recheck.outcomes.values.reduce(0, +) - unanswered
      metrics.append(
        Metric(
          "night_audit_receipts", help: "Receipts and IDs that were due, by the result of asking about them.",
          by: "state", [("due", recheck.due), ("answered", answered), ("unanswered", unanswered)]))
    }
    return metrics
  }

  /// Ends in seconds since 1970, without forgotten runs and reports that a forgotten run replaced.
  private func lastEnds(_ session: PostgresSession?) async throws -> (any: String?, complete: String?)? {
    guard let session else { return nil }
    let row = try await session.execute(
      """
      SELECT extract(epoch FROM max(finished_at))::bigint,
        extract(epoch FROM max(\(NightEnd.sql(settings))) FILTER (WHERE complete))::bigint
      FROM night_audit.runs r WHERE is_nightly AND publication IS DISTINCT FROM 'forgotten'
        AND NOT \(PublishedReport.isGone("r", from: "directory"))
      """
    ).single()
    return (try row.optionalInt64(0).map(String.init), try row.optionalInt64(1).map(String.init))
  }

  private static func metrics(_ findings: FindingsSummary) -> [Metric] {
    [
      Metric(
        "night_audit_findings_open", help: "Open findings.",
        FindingKind.allCases.flatMap { kind in
          // A kind without open findings is written as 0 under its own severity.
          let severities = findings.severities(of: kind)
          return (severities.isEmpty ? [(kind.severity, 0)] : severities).map { severity, count in
            (labels: [("kind", kind.rawValue), ("severity", severity.rawValue)], value: String(count))
          }
        }),
      Metric(
        "night_audit_at_stake", help: "Amount at risk in open findings, in major units.", by: "currency",
        findings.atStake.sorted.map { ($0.currency.code, Money.decimalText($0.minorUnits, digits: $0.currency.digits)) }
      ),
      Metric(
        "night_audit_at_stake_unknown", help: "Open findings with an unknown amount at risk.",
        value: String(findings.open.unknown)),
    ]
  }

  static func metrics(_ unusual: [UnusualShare]) -> MetricsFile.Metric {
    let codes = Set(unusual.map(\.subject.code))
    return Metric(
      "night_audit_unusual",
      help: "1 while a kind of finding, or refunds, have an unusually large share of the period's orders.", by: "kind",
      UnusualShare.Subject.all.map { ($0.code, codes.contains($0.code) ? 1 : 0) })
  }

  private static func metrics(_ requests: RequestStatistics.Counts) -> [Metric] {
    let groups = requests.requests.sorted {
      ($0.key.app, $0.key.outcome.rawValue) < ($1.key.app, $1.key.outcome.rawValue)
    }
    return [
      Metric(
        "night_audit_apple_requests_total", .counter,
        help: "Requests to Apple about purchases in all nights, by result.",
        groups.map { (labels: [("app", $0.key.app), ("outcome", $0.key.outcome.rawValue)], value: String($0.value)) }),
      Metric(
        "night_audit_apple_latency_seconds", help: "How long Apple took to reply, in all nights.",
        buckets: zip(RequestStatistics.bounds, requests.cumulative).map { (bound: $0, atMost: $1) },
        count: requests.replies, sum: requests.seconds),
    ]
  }
}

private typealias Metric = MetricsFile.Metric

extension MetricsFile.Metric {
  fileprivate init<Value: CustomStringConvertible>(
    _ name: String, help: String, by label: String, _ values: [(String, Value)]
  ) {
    self.init(name, help: help, values.map { (labels: [(label, $0.0)], value: $0.1.description) })
  }
}
