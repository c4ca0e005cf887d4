import AuditStore
import Postgres
import Reconciliation
import Run

/// `night_audit.first_answers`: how many first answers each app got in a night, and how many of them were refusals. When
/// the asking is over they tell whether refusals accuse the customers or ourselves.
package struct FirstAnswersTable: Sendable {
  private let asOf: Instant
  private var answers: [String: FirstAnswers] = [:]

  package init(asOf: Instant) { self.asOf = asOf }

  /// Counts one.
  mutating func note(app: String, _ refusal: Refusal?) {
    answers[app, default: FirstAnswers()].count += 1
    if let refusal { answers[app, default: FirstAnswers()].refusals[refusal, default: 0] += 1 }
  }

  /// Adds what was counted to what is stored.
  func add(on connection: borrowing BlockingConnection) throws(PostgresError) {
    var lines: [(app: String, refusal: String, answers: Int)] = []
    for (app, first) in answers.sorted(by: { $0.key < $1.key }) {
      lines.append((app, "", first.count))
      for (refusal, count) in first.refusals { lines.append((app, refusal.rawValue, count)) }
    }
    if lines.isEmpty { return }
    try connection.postpone(
      """
      INSERT INTO night_audit.first_answers AS f (as_of, app, refusal, answers)
      SELECT $1, * FROM unnest($2::text[], $3::text[], $4::int[])
      ON CONFLICT (as_of, app, refusal) DO UPDATE SET answers = f.answers + excluded.answers
      """,
      [
        .timestamp(asOf.microseconds), .textArray(lines.map(\.app)), .textArray(lines.map(\.refusal)),
        .intArray(lines.map { Int64($0.answers) }),
      ])
  }

  /// What counts when refusals are decided.
  private struct Stored {
    /// By as-of and app.
    var runs: [Instant: [String: FirstAnswers]] = [:]
    let asOf: Instant
    let share: Double

    /// A night's answers come in as many pieces as there are re-checks before it, and attempts at it. What was held longer ago
    /// has been asked about again since.
    static let night = RetrySchedule.span(afterAttempt: .max)

    /// The answers about an app that count for what a run was told: its own, those of its night so far, and all since.
    func counted(_ app: String, _ run: Instant) -> [FirstAnswers] {
      let begin = run - Self.night + Span(microseconds: 1)
      return [run...run, begin...run, begin...max(run, asOf)].map { sum(app, $0) }
    }

    private func sum(_ app: String, _ span: ClosedRange<Instant>) -> FirstAnswers {
      var sum = FirstAnswers()
      for (run, apps) in runs where span.contains(run) {
        guard let answers = apps[app] else { continue }
        sum.count += answers.count
        sum.refusals.merge(answers.refusals, uniquingKeysWith: +)
      }
      return sum
    }

    /// The kinds of refusal that were no customers' doing.
    func systemic(_ app: String, _ run: Instant) -> Set<Refusal> {
      Set(counted(app, run).flatMap { $0.systemic(share: share) })
    }

    func complaint(_ app: String, _ run: Instant) -> String? {
      counted(app, run).lazy.compactMap { $0.complaint(app: app, share: share) }.first
    }
  }

  private static func read(
    asOf: Instant, share: Double, on connection: borrowing BlockingConnection
  ) throws(PostgresError) -> Stored {
    let rows = try connection.execute(
      """
      SELECT as_of, app, refusal, answers FROM night_audit.first_answers
      WHERE as_of > least($1, (SELECT min(last_attempt) FROM night_audit.receipt_checks WHERE held_outcome IS NOT NULL))
        - $2 * interval '1 microsecond'
      """, [.timestamp(asOf.microseconds), .int(Stored.night.microseconds)])
    var stored = Stored(asOf: asOf, share: share)
    for row in rows {
      let (run, app) = (Instant(microseconds: try row.timestamp(0)), try row.text(1))
      var answers = stored.runs[run]?[app] ?? FirstAnswers()
      let count = Int(try row.int32(3))
      if let refusal = Refusal(rawValue: try row.text(2)) {
        answers.refusals[refusal] = count
      } else {
        answers.count = count
      }
      stored.runs[run, default: [:]][app] = answers
    }
    return stored
  }

  /// Gives refusals that were held their outcome, unless they are too many of their kind in their night: those of this night,
  /// and those of nights that ended before they came so far. While others ask, theirs are left to them.
  ///
  /// What goes on being held is told by every whole run until it was asked about again.
  ///
  /// To decide again is safe: what decides is stored.
  ///
  /// - Parameters:
  ///   - worker: who asks.
  ///   - isWhole: whether the run is about everything, and tells what earlier ones have left as well.
  /// - Returns: by app what is wrong and what to do, for the operator; empty when nothing is.
  package static func decide(
    asOf: Instant, worker: Worker, settings: Settings, isWhole: Bool, on connection: borrowing BlockingConnection
  ) throws -> [String: String] {
    let stored = try read(asOf: asOf, share: settings.systemicShare, on: connection)
    // Reckoned once for each run and app: an outage holds as many as a shop has receipts.
    var systemic: [Instant: [String: Set<Refusal>]] = [:]
    try CheckTable(policy: settings.duenessPolicy).change(
      where: """
        c.held_outcome IS NOT NULL AND (c.last_attempt = $1
          OR NOT EXISTS (SELECT FROM (\(Worker.living)) AS other (number) WHERE other.number <> $2::int))
        """, [.timestamp(asOf.microseconds), .int(worker.number)], on: connection
    ) { row in
      // Whoever was counted has a count, unless somebody began to ask meanwhile.
      guard let held = row.held, let app = row.app, let run = row.history.lastAttempt, stored.runs[run]?[app] != nil
      else { return false }
      let kinds = systemic[run]?[app] ?? stored.systemic(app, run)
      systemic[run, default: [:]][app] = kinds
      if kinds.contains(held.refusal) { return false }
      row.history.outcome = held.outcome
      row.history.reason = held.reason
      row.history.unansweredSince = nil
      row.held = nil
      return true
    }
    var complaints: [String: String] = [:]
    for (app, answers) in stored.runs[asOf] ?? [:] {
      complaints[app] = answers.complaint(app: app, share: settings.systemicShare)
    }
    if !isWhole { return complaints }
    let held = try connection.execute(
      """
      SELECT DISTINCT last_attempt, app FROM night_audit.receipt_checks
      WHERE held_outcome IS NOT NULL AND due_from IS NOT NULL AND app IS NOT NULL ORDER BY 1 DESC, 2
      """)
    for row in held {
      let (run, app) = (Instant(microseconds: try row.timestamp(0)), try row.text(1))
      if complaints[app] == nil { complaints[app] = stored.complaint(app, run) }
    }
    return complaints
  }
}
