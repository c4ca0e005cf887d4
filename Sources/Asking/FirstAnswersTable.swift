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

  /// What is stored of a night, and of those whose refusals are still held: by night and app.
  private static func read(
    asOf: Instant, on connection: borrowing BlockingConnection
  ) throws(PostgresError) -> [Instant: [String: FirstAnswers]] {
    let rows = try connection.execute(
      """
      SELECT as_of, app, refusal, answers FROM night_audit.first_answers
      WHERE as_of = $1 OR as_of IN (SELECT last_attempt FROM night_audit.receipt_checks WHERE held_outcome IS NOT NULL)
      """, [.timestamp(asOf.microseconds)])
    var found: [Instant: [String: FirstAnswers]] = [:]
    for row in rows {
      let night = Instant(microseconds: try row.timestamp(0))
      let (app, count) = (try row.text(1), Int(try row.int32(3)))
      if let refusal = Refusal(rawValue: try row.text(2)) {
        found[night, default: [:]][app, default: FirstAnswers()].refusals[refusal] = count
      } else {
        found[night, default: [:]][app, default: FirstAnswers()].count = count
      }
    }
    return found
  }

  /// Gives refusals that were held their outcome, unless they are too many of their kind in their night: those of this night,
  /// and those of nights that ended before they came so far. While others ask, theirs are left to them.
  ///
  /// To decide again is safe: what decides is stored.
  ///
  /// - Parameter worker: who asks.
  /// - Returns: by app what is wrong tonight and what to do, for the operator; empty when nothing is.
  package static func decide(
    asOf: Instant, worker: Worker, settings: Settings, on connection: borrowing BlockingConnection
  ) throws -> [String: String] {
    let answers = try read(asOf: asOf, on: connection)
    let systemic = answers.mapValues { apps in
      apps.mapValues { Set($0.systemic(share: settings.systemicShare)) }
    }
    try CheckTable(policy: settings.duenessPolicy).change(
      where: """
        c.held_outcome IS NOT NULL AND (c.last_attempt = $1
          OR NOT EXISTS (SELECT FROM (\(Worker.living)) AS other (number) WHERE other.number <> $2::int))
        """, [.timestamp(asOf.microseconds), .int(worker.number)], on: connection
    ) { row in
      // Whoever was counted has a count, unless somebody began to ask meanwhile.
      guard let held = row.held, let night = row.history.lastAttempt.flatMap({ systemic[$0] }),
        night[row.app ?? ""]?.contains(held.refusal) == false
      else { return false }
      row.history.outcome = held.outcome
      row.history.reason = held.reason
      row.history.unansweredSince = nil
      row.held = nil
      return true
    }
    return (answers[asOf] ?? [:]).reduce(into: [:]) { complaints, line in
      complaints[line.key] = line.value.complaint(app: line.key, share: settings.systemicShare)
    }
  }
}
