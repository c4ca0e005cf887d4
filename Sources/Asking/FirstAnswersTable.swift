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

  /// Refusals that are held and may be decided, on `receipt_checks` aliased `c`.
  private static let isHeld = """
    c.held_outcome <> '\(CheckOutcome.review.rawValue)' AND c.outcome = '\(CheckOutcome.review.rawValue)'
      AND c.reason = '\(PaymentReason.systemic.rawValue)'
    """

  /// What is held of which app, what was asked last first.
  private struct HeldAlike {
    var app: String
    var held: AnsweredRuns.Held
    /// Whether any of it will be asked about again.
    var isDue: Bool
  }

  private static func allHeld(on connection: borrowing BlockingConnection) throws(PostgresError) -> [HeldAlike] {
    try connection.execute(
      """
      SELECT c.app, coalesce(c.outcome_since, c.last_attempt), c.last_attempt, bool_or(c.due_from IS NOT NULL)
      FROM night_audit.receipt_checks c WHERE \(isHeld) AND c.app IS NOT NULL AND c.last_attempt IS NOT NULL
      GROUP BY 1, 2, 3 ORDER BY 3 DESC, 2 DESC, 1
      """
    ).map { row throws(PostgresError) in
      HeldAlike(
        app: try row.text(0),
        held: AnsweredRuns.Held(
          since: Instant(microseconds: try row.timestamp(1)), asked: Instant(microseconds: try row.timestamp(2))),
        isDue: try row.bool(3))
    }
  }

  /// How many receipts that are genuine by their signature wait for Apple's word, app by app. Which app that is the
  /// signature says, until Apple was asked.
  private static func waiting(
    _ settings: Settings, on connection: borrowing BlockingConnection
  ) throws(PostgresError) -> [(app: String, count: Int)] {
    var waiting: [(app: String, count: Int)] = []
    for row in try connection.execute(
      """
      SELECT c.app, c.bundle_id, count(*) FROM night_audit.receipt_checks c
      WHERE c.due_rank IN (\(Dueness.Rank.urgent.rawValue), \(Dueness.Rank.open.rawValue)) AND c.due_from IS NOT NULL
        AND c.subject_kind = 'receipt' AND c.outcome IN ('pending', 'unanswered') AND c.brought_count > 0
        AND c.held_outcome IS NULL
      GROUP BY 1, 2
      """)
    {
      let bundleId = try row.optionalText(1)
      let app = try row.optionalText(0) ?? settings.apps.first { $0.bundleId == bundleId }?.name
      if let app { waiting.append((app, Int(try row.int64(2)))) }
    }
    return waiting
  }

  /// What counts when refusals are decided, by app.
  private static func read(
    _ all: [HeldAlike], asOf: Instant, settings: Settings, on connection: borrowing BlockingConnection
  ) throws(PostgresError) -> [String: AnsweredRuns] {
    let begin = PostgresValue.timestamp(
      ((all.map(\.held.since) + [asOf]).min() ?? asOf).microseconds - AnsweredRuns.night.microseconds)
    let new = AnsweredRuns(asOf: asOf, share: settings.systemicShare)
    var apps: [String: AnsweredRuns] = [:]
    for row in try connection.execute(
      "SELECT as_of, app, refusal, answers FROM night_audit.first_answers WHERE as_of > $1", [begin])
    {
      let (run, app) = (Instant(microseconds: try row.timestamp(0)), try row.text(1))
      var answers = apps[app]?.told[run] ?? FirstAnswers()
      let count = Int(try row.int32(3))
      if let refusal = Refusal(rawValue: try row.text(2)) {
        answers.refusals[refusal] = count
      } else {
        answers.count = count
      }
      apps[app, default: new].told[run] = answers
    }
    for (app, count) in try waiting(settings, on: connection) { apps[app, default: new].waiting += count }
    for alike in all { apps[alike.app, default: new].held.insert(alike.held) }
    if !all.contains(where: \.held.isAskedAgain) { return apps }
    for row in try connection.execute(
      """
      SELECT c.outcome_since, c.app,
        coalesce(c.refusal, CASE c.outcome WHEN 'not_found' THEN c.outcome ELSE c.reason END) COLLATE "C", count(*)
      FROM night_audit.receipt_checks c
      WHERE c.app IS NOT NULL AND c.outcome_since > $1
        AND (c.held_outcome IS NOT NULL OR c.outcome IN ('rejected', 'not_found'))
      GROUP BY 1, 2, 3
      """, [begin])
    {
      guard let refusal = try row.optionalText(2).flatMap(Refusal.init) else { continue }
      let (run, app) = (Instant(microseconds: try row.timestamp(0)), try row.text(1))
      apps[app, default: new].stillRefused[run, default: [:]][refusal] = Int(try row.int64(3))
    }
    return apps
  }

  /// Gives refusals that were held their outcome, unless they are too many of their kind in their night: those of this night,
  /// and those of nights that ended before they came so far. What was refused once more is decided by the night that it is
  /// held in, as by now it would have been.
  ///
  /// While others ask, more may come of every night: whoever is the last to ask decides for all. The worker asks no more.
  ///
  /// What goes on being held is told by every whole run until it was asked about again.
  ///
  /// To decide again is safe: what decides is stored.
  ///
  /// - Parameters:
  ///   - worker: who asked.
  ///   - isWhole: whether the run is about everything, and tells what earlier ones have left as well.
  /// - Returns: by app what is wrong and what to do, for the operator; empty when nothing is.
  package static func decide(
    asOf: Instant, worker: Worker, settings: Settings, isWhole: Bool, on connection: borrowing BlockingConnection
  ) throws -> [String: String] {
    // Of two that end at once one must see that nobody asks any more, and then read what both have counted.
    try worker.retire(connection)
    let isLast = try !connection.execute("SELECT \(Worker.othersLive)", [.int(worker.number)]).single().bool(0)
    let all = try allHeld(on: connection)
    let apps = try read(all, asOf: asOf, settings: settings, on: connection)
    if isLast { try decide(by: apps, worker: worker, settings: settings, on: connection) }
    var complaints: [String: String] = [:]
    for (app, runs) in apps { complaints[app] = runs.complaint(app: app) }
    if !isWhole { return complaints }
    for alike in all where alike.isDue && complaints[alike.app] == nil {
      complaints[alike.app] = apps[alike.app]?.complaint(app: alike.app, about: alike.held)
    }
    return complaints
  }

  private static func decide(
    by apps: [String: AnsweredRuns], worker: Worker, settings: Settings, on connection: borrowing BlockingConnection
  ) throws {
    // Reckoned once for each run and app: an outage holds as many as a shop has receipts.
    var systemic: [String: [AnsweredRuns.Held: Set<Refusal>]] = [:]
    try CheckTable(policy: settings.duenessPolicy).change(
      where: "\(isHeld) AND NOT \(Worker.othersLive)", [.int(worker.number)], on: connection
    ) { row in
      guard let held = row.held, let app = row.app, let asked = row.history.lastAttempt, let runs = apps[app] else {
        return false
      }
      let alike = AnsweredRuns.Held(since: row.history.outcomeSince ?? asked, asked: asked)
      if runs.told[alike.since] == nil {
        // Whoever was counted has a count, unless somebody began to ask meanwhile, or a run of the future was forgotten. Of
        // what that has counted the next answer is a first one.
        if alike.isAskedAgain { row.held = nil }
        return alike.isAskedAgain
      }
      let kinds = systemic[app]?[alike] ?? runs.systemic(alike)
      systemic[app, default: [:]][alike] = kinds
      if kinds.contains(held.refusal) { return false }
      row.history.outcome = held.outcome
      row.history.reason = held.reason
      row.history.unansweredSince = nil
      row.held = .decided(held.refusal)
      return true
    }
  }
}

extension CheckRow {
  /// Whether a refusal of it waits to be decided.
  var isHeld: Bool { held.map { !$0.isDecided } ?? false }
}

extension CheckContext {
  /// What the next answer is to the guard against refusals that are too many.
  ///
  /// - Parameter app: who is asked; what is held about another app is counted in none of this one's runs.
  func standing(askedOf app: String?) -> AnswerStanding {
    let held = row.held.flatMap { held in
      row.isHeld && (app == nil || app == row.app)
        ? row.history.outcomeSince.map { (refusal: held.refusal, since: $0) } : nil
    }
    return AnswerStanding(after: row.history.outcome, refused: isOfAnsweredPayload ? row.refused : nil, held: held)
  }
}

extension CheckRow.Held {
  /// That a refusal has accused its customer. It is kept until the proof is verified: to repeat it is no news.
  static func decided(_ refusal: Refusal) -> CheckRow.Held {
    CheckRow.Held(refusal: refusal, outcome: .review, reason: nil)
  }

  var isDecided: Bool { outcome == .review }
}
