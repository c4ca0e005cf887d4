import Asking
import AuditStore
import Foundation
import Postgres
import Reconciliation
import Reporting
import Run
import Settings

/// The state of the installation: the last night, open findings, receipts due, reports owed, the lock.
package struct NightStatus: Sendable, Encodable {
  package struct Night: Sendable, Encodable {
    package var day: String
    package var runId: String
    package var asOf: String
    package var finishedAt: String?
    /// `complete`, `incomplete`, `held`, `publishing`, `not_published`, `unfinished` or `failed`.
    package var state: String
    package var exitStatus: Int32?
    package var reasons: [String]
    package var directory: String?
  }

  /// The night of the newest day. Forgotten runs and earlier runs of the same day do not count.
  package var lastNight: Night?
  package var lastCompleteDay: String?
  package var lastCompleteAt: String?
  /// The newest day whose report was taken back by `runs forget` and not made again; nil for none.
  package var takenBackDay: String?
  /// True if no night left a report for longer than a day and the longest duration of a night, counted from `init` on.
  package var overdue: Bool
  /// Counts by severity; every severity has a key.
  package var openFindings: [String: Int]
  /// Receipts and IDs to ask Apple about, counted up to ``mostDue``.
  package var receiptsDue: Int
  package var reportsOwed: Int
  /// By app, the share of known sales that Apple's notifications had reported in the last night.
  package var feedCoverage: [String: Double]
  /// A sentence about this share for each app.
  package var notifications: [String]
  package var lockedBy: String?

  /// More due checks are not counted, because counting a million takes seconds.
  package static let mostDue = 100_000

  package static func look(_ settings: Settings) async throws -> NightStatus {
    try await settings.withStore("night-audit status") { try await read($0, settings) }
  }

  private static func read(_ session: PostgresSession, _ settings: Settings) async throws -> NightStatus {
    var night: Night?
    for row in try await session.execute(
      """
      SELECT period_until::text, run_id::text, as_of, finished_at, complete, publication, exit_status,
        incomplete_reasons || held_because, directory
      FROM night_audit.runs r WHERE is_nightly AND publication IS DISTINCT FROM 'forgotten'
        AND NOT \(PublishedReport.isGone("r", from: "directory"))
        AND NOT EXISTS (SELECT FROM night_audit.runs b WHERE b.is_nightly AND b.publication = 'forgotten'
          AND b.period_until = r.period_until AND \(ForgottenRun.ran("b")) > r.started_at)
      ORDER BY period_until DESC, started_at DESC LIMIT 1
      """)
    {
      let (finished, complete) = (try row.optionalTimestamp(3), try row.optionalBool(4))
      let publication = try row.optionalText(5)
      let state =
        switch (complete, publication) {
        case (true?, _): "complete"
        case (false?, _): "incomplete"
        case (nil, let word?): word
        case (nil, nil): finished == nil ? "unfinished" : "failed"
        }
      night = Night(
        day: try row.text(0), runId: try row.text(1), asOf: Instant(microseconds: try row.timestamp(2)).text,
        finishedAt: finished.map { Instant(microseconds: $0).text }, state: state, exitStatus: try row.optionalInt32(6),
        reasons: try row.textArray(7).compactMap { $0 }, directory: try row.optionalText(8))
    }
    let last = try await session.execute(
      """
      SELECT (array_agg(finished_at ORDER BY ended DESC NULLS LAST) FILTER (WHERE complete))[1],
        coalesce(max(ended), (SELECT min(applied_at) FROM night_audit.schema_migrations)),
        (array_agg(period_until::text ORDER BY ended DESC NULLS LAST) FILTER (WHERE complete))[1]
      FROM (SELECT \(NightEnd.sql(settings)) AS ended, finished_at, period_until, complete FROM night_audit.runs r
        WHERE is_nightly AND complete IS NOT NULL AND NOT \(PublishedReport.isGone("r", from: "directory"))) nights
      """
    ).single()
    let lastComplete = try last.optionalTimestamp(0)
    // Before the first report it counts from the creation of the schema.
    let overdue = Instant(microseconds: try last.timestamp(1)) + .hours(24) + NightEnd.longest(settings) < .now
    let takenBack = try await session.execute(
      """
      SELECT max(b.period_until)::text FROM night_audit.runs b
      WHERE b.is_nightly AND b.publication = 'forgotten' AND b.period_until <= (now() AT TIME ZONE 'UTC')::date
        AND NOT EXISTS (SELECT FROM night_audit.runs r WHERE r.is_nightly AND r.complete IS NOT NULL
          AND r.period_until = b.period_until AND NOT \(PublishedReport.isGone("r", from: "directory")))
      """
    ).single().optionalText(0)
    var open = Dictionary(uniqueKeysWithValues: Severity.allCases.map { ($0.rawValue, 0) })
    for row in try await session.execute(
      "SELECT severity, count(*) FROM night_audit.findings WHERE closed_at IS NULL GROUP BY 1")
    {
      open[try row.text(0)] = Int(try row.int64(1))
    }
    let due = try await CheckQueue.questionCount(at: .now, atMost: mostDue, session)
    let owed = try await session.execute(
      "SELECT count(*) FROM night_audit.dispatches WHERE state = 'owed'"
    ).single().int64(0)
    let coverage = try await session.withConnection { try FeedCoverage.ofLastNight(on: $0) }
    return NightStatus(
      lastNight: night, lastCompleteDay: try last.optionalText(2),
      lastCompleteAt: lastComplete.map { Instant(microseconds: $0).text }, takenBackDay: takenBack, overdue: overdue,
      openFindings: open, receiptsDue: due, reportsOwed: Int(owed), feedCoverage: coverage.mapValues(\.share),
      notifications: coverage.sorted { $0.key < $1.key }.map { $1.sentence($0) },
      lockedBy: try await RunLock.owner(session))
  }

  package var text: String {
    var lines: [String] = []
    if let night = lastNight {
      lines.append("Last night     \(night.day): \(night.state)\(night.exitStatus.map { ", exit status \($0)" } ?? "")")
      // A failed night has no reasons in the table of runs.
      let reasons = night.state == "failed" ? ["the log of run \(night.runId) says why"] : night.reasons
      lines += reasons.map { "               - \($0)" }
      lines.append("As of          \(night.asOf)\(night.finishedAt.map { ", ended \($0)" } ?? "")")
      if let directory = night.directory { lines.append("Report         \(directory)") }
    } else {
      lines.append("Last night     \(takenBackDay == nil ? "none yet" : "none left")")
    }
    let ended = lastCompleteAt.map { ", ended \($0)" } ?? ""
    let none = takenBackDay == nil ? "never" : "none left"
    lines.append("Last complete  \(lastCompleteDay.map { $0 + ended } ?? none)")
    if let takenBackDay {
      lines.append("Taken back     \(takenBackDay), which has no report now")
      lines.append("               run: night-audit run --date \(takenBackDay)")
    }
    lines.append(overdue ? "OVERDUE        no night has made a report for more than a day" : "Overdue        no")
    let words = Severity.allCases.map { "\(openFindings[$0.rawValue] ?? 0) \($0.rawValue)" }
    lines.append("Open findings  \(words.joined(separator: ", "))")
    let due =
      receiptsDue == 1
      ? "1 receipt or ID" : "\(receiptsDue)\(receiptsDue == Self.mostDue ? " or more" : "") receipts and IDs"
    lines.append("Due            \(due) to ask Apple about")
    lines += notifications.map { "Coverage       \($0)" }
    if reportsOwed > 0 { lines.append("Not sent       \(counted(reportsOwed, "report")), tried again the next night") }
    lines.append("Lock           \(lockedBy.map { "taken by \($0)" } ?? "free")")
    return lines.joined(separator: "\n")
  }
}
