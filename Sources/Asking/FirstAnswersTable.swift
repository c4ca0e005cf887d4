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

  /// What is stored of a night, by app.
  static func read(
    asOf: Instant, on connection: borrowing BlockingConnection
  ) throws(PostgresError) -> [String: FirstAnswers] {
    let rows = try connection.execute(
      "SELECT app, refusal, answers FROM night_audit.first_answers WHERE as_of = $1", [.timestamp(asOf.microseconds)])
    var found: [String: FirstAnswers] = [:]
    for row in rows {
      let (app, count) = (try row.text(0), Int(try row.int32(2)))
      if let refusal = Refusal(rawValue: try row.text(1)) {
        found[app, default: FirstAnswers()].refusals[refusal] = count
      } else {
        found[app, default: FirstAnswers()].count = count
      }
    }
    return found
  }

  /// Gives the refusals of a night that were held their outcome, unless they are too many of their kind.
  ///
  /// To decide again is safe: what decides is stored.
  /// - Returns: by app what is wrong and what to do, for the operator; empty when nothing is.
  package static func decide(
    asOf: Instant, settings: Settings, on connection: borrowing BlockingConnection
  ) throws -> [String: String] {
    let answers = try read(asOf: asOf, on: connection)
    let systemic = answers.mapValues { Set($0.systemic(share: settings.systemicShare)) }
    try CheckTable(policy: settings.duenessPolicy).change(
      where: "c.held_outcome IS NOT NULL AND c.last_attempt = $1", [.timestamp(asOf.microseconds)], on: connection
    ) { row in
      guard let held = row.held, systemic[row.app ?? ""]?.contains(held.refusal) != true else { return false }
      row.history.outcome = held.outcome
      row.history.reason = held.reason
      row.history.unansweredSince = nil
      row.held = nil
      return true
    }
    return try complaints(asOf: asOf, settings: settings, on: connection)
  }

  /// What was systemic in a night, by app.
  package static func complaints(
    asOf: Instant, settings: Settings, on connection: borrowing BlockingConnection
  ) throws(PostgresError) -> [String: String] {
    var complaints: [String: String] = [:]
    for (app, answers) in try read(asOf: asOf, on: connection) {
      complaints[app] = answers.complaint(app: app, share: settings.systemicShare)
    }
    return complaints
  }
}
