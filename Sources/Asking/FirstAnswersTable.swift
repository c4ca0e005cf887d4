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
    /// Of the as-of, and of those whose refusals are still held: by as-of and app.
    var nights: [Instant: [String: FirstAnswers]] = [:]
    /// Of all runs since the last night that was published, by app: a night's answers come in as many pieces as there are
    /// re-checks before it, and attempts at it.
    var sinceLastNight: [String: FirstAnswers] = [:]
    /// When that began. What is longer ago than a day is no part of a night, whether one was published since or not.
    var lastNight: Instant

    mutating func add(_ row: PostgresRow, asOf: Instant) throws(PostgresError) {
      let night = Instant(microseconds: try row.timestamp(0))
      let (app, refusal, count) = (try row.text(1), Refusal(rawValue: try row.text(2)), Int(try row.int32(3)))
      func counted(_ answers: FirstAnswers?) -> FirstAnswers {
        var answers = answers ?? FirstAnswers()
        if let refusal { answers.refusals[refusal, default: 0] += count } else { answers.count += count }
        return answers
      }
      nights[night, default: [:]][app] = counted(nights[night]?[app])
      if night <= asOf, isSinceLastNight(night) { sinceLastNight[app] = counted(sinceLastNight[app]) }
    }

    func isSinceLastNight(_ night: Instant) -> Bool { night > lastNight }

    /// The kinds of refusal about an app that were no customers' doing, by what was counted under an as-of.
    func systemic(_ app: String, _ night: Instant, share: Double) -> [Refusal] {
      let of = [nights[night]?[app], isSinceLastNight(night) ? sinceLastNight[app] : nil]
      return of.compactMap { $0?.systemic(share: share) }.flatMap(\.self)
    }
  }

  private static func read(
    asOf: Instant, settings: Settings, on connection: borrowing BlockingConnection
  ) throws(PostgresError) -> Stored {
    let day = Period.dayBefore(asOf, in: settings.timeZone).until
    let yesterday = asOf - .days(1)
    let published = try PublishedNight.last(before: asOf, day: day, on: connection)
    var stored = Stored(lastNight: max(published ?? yesterday, yesterday))
    let rows = try connection.execute(
      """
      SELECT as_of, app, refusal, answers FROM night_audit.first_answers
      WHERE as_of <= $1 AND as_of > $2
        OR as_of IN (SELECT last_attempt FROM night_audit.receipt_checks WHERE held_outcome IS NOT NULL)
      """, [.timestamp(asOf.microseconds), .timestamp(stored.lastNight.microseconds)])
    for row in rows { try stored.add(row, asOf: asOf) }
    return stored
  }

  /// Gives refusals that were held their outcome, unless they are too many of their kind in their night: those of this night,
  /// and those of nights that ended before they came so far. While others ask, theirs are left to them.
  ///
  /// What goes on being held is told by every run until it was asked about again.
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
    let stored = try read(asOf: asOf, settings: settings, on: connection)
    let share = settings.systemicShare
    try CheckTable(policy: settings.duenessPolicy).change(
      where: """
        c.held_outcome IS NOT NULL AND (c.last_attempt = $1
          OR NOT EXISTS (SELECT FROM (\(Worker.living)) AS other (number) WHERE other.number <> $2::int))
        """, [.timestamp(asOf.microseconds), .int(worker.number)], on: connection
    ) { row in
      // Whoever was counted has a count, unless somebody began to ask meanwhile.
      guard let held = row.held, let night = row.history.lastAttempt, stored.nights[night]?[row.app ?? ""] != nil,
        !stored.systemic(row.app ?? "", night, share: share).contains(held.refusal)
      else { return false }
      row.history.outcome = held.outcome
      row.history.reason = held.reason
      row.history.unansweredSince = nil
      row.held = nil
      return true
    }
    return try complaints(stored, asOf: asOf, share: share, isWhole: isWhole, on: connection)
  }

  private static func complaints(
    _ stored: Stored, asOf: Instant, share: Double, isWhole: Bool, on connection: borrowing BlockingConnection
  ) throws(PostgresError) -> [String: String] {
    var complaints: [String: String] = [:]
    func add(_ answers: FirstAnswers?, _ app: String) {
      if complaints[app] == nil { complaints[app] = answers?.complaint(app: app, share: share) }
    }
    for (app, answers) in stored.nights[asOf] ?? [:] { add(answers, app) }
    if !isWhole { return complaints }
    let held = try connection.execute(
      """
      SELECT DISTINCT last_attempt, app FROM night_audit.receipt_checks
      WHERE held_outcome IS NOT NULL AND due_from IS NOT NULL AND app IS NOT NULL ORDER BY 1 DESC, 2
      """)
    for row in held {
      let (night, app) = (Instant(microseconds: try row.timestamp(0)), try row.text(1))
      add(stored.nights[night]?[app], app)
      if stored.isSinceLastNight(night) { add(stored.sinceLastNight[app], app) }
    }
    return complaints
  }
}
