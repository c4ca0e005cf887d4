import AuditStore
import Postgres
import Reconciliation
import Run
import Settings
import Streams

/// Decides whether refusals accuse customers, or are too many of one kind to be theirs. One query counts the persons
/// with first answers by app, separately for receipts and look-ups.
package struct SystemicGuard: Sendable {
  let asOf: Instant
  let settings: Settings

  private struct Group: Hashable, Comparable {
    var app: String
    var kind: CheckSubject.Kind
    var since: Instant

    static func < (left: Group, right: Group) -> Bool {
      (right.since, left.app, left.kind.rawValue) < (left.since, right.app, right.kind.rawValue)
    }
  }

  private struct Pending {
    var refusals: PendingRefusals
    var isDue: Bool
  }

  private static let isPending = """
    c.deferred_outcome <> '\(CheckOutcome.review.rawValue)' AND c.outcome = '\(CheckOutcome.review.rawValue)'
      AND c.reason = '\(PaymentReason.systemic.rawValue)'
    """

  /// Receipts with a valid signature while Apple is silent. They count as first answers: in an outage, false receipts,
  /// which need no answer of Apple's, would otherwise be counted alone.
  private static let isWaiting = """
    c.due_rank IN (\(Dueness.Rank.urgent.rawValue), \(Dueness.Rank.open.rawValue)) AND c.due_from IS NOT NULL
      AND c.subject_kind = 'receipt' AND c.outcome IN ('pending', 'unanswered') AND c.brought_count > 0
      AND c.deferred_outcome IS NULL
    """

  private static let night = "interval '\(PendingRefusals.night.wholeSeconds) seconds'"

  /// The persons with first answers in each span of each group, in total and by refusal still in force. Parameters:
  /// as-of; names and bundle IDs of the apps; user IDs and the persons behind them.
  private static let statement = """
    WITH apps AS (SELECT * FROM unnest($2::text[], $3::text[]) AS a (app, bundle_id)),
    persons AS (SELECT * FROM unnest($4::text[], $5::text[]) AS p (user_id, person)),
    pending AS (
      SELECT c.app, c.subject_kind, coalesce(c.outcome_since, c.last_attempt) AS since, max(c.last_attempt) AS asked,
        bool_or(c.due_from IS NOT NULL) AS is_due
      FROM night_audit.receipt_checks c WHERE \(isPending) AND c.app IS NOT NULL AND c.last_attempt IS NOT NULL
      GROUP BY 1, 2, 3),
    groups AS (
      SELECT * FROM pending
      UNION ALL
      SELECT a.app, k.kind, $1::timestamptz, $1::timestamptz, false
      FROM apps a CROSS JOIN (VALUES ('receipt'), ('lookup')) AS k (kind)
      WHERE NOT EXISTS (SELECT FROM pending p WHERE p.app = a.app AND p.subject_kind = k.kind AND p.since = $1)),
    spans AS (
      SELECT DISTINCT g.*, s.starts, s.ends FROM groups g CROSS JOIN LATERAL (
        VALUES (g.since, g.since), (g.since - \(night), g.since), (g.since - \(night), greatest(g.since, $1)))
        AS s (starts, ends)),
    counted AS (
      SELECT c.app, c.subject_kind, a.as_of, c.user_id,
        CASE WHEN a.counted_as = c.refusal OR c.refusal IS NULL AND c.outcome <> 'verified'
          THEN nullif(a.counted_as, '') END AS refusal
      FROM night_audit.answers a JOIN night_audit.receipt_checks c USING (subject_kind, subject_id)
      WHERE a.counted_as IS NOT NULL AND a.as_of <= $1
        AND a.as_of > (SELECT least(min(p.since), $1) FROM pending p) - \(night)
      UNION ALL
      SELECT coalesce(c.app, a.app), c.subject_kind, NULL, c.user_id, NULL
      FROM night_audit.receipt_checks c LEFT JOIN apps a ON a.bundle_id = c.bundle_id WHERE \(isWaiting))
    SELECT s.app, s.subject_kind, s.since, s.asked, s.is_due, s.starts, s.ends, n.refusal, grouping(n.refusal) = 1,
      count(DISTINCT coalesce(p.person, n.user_id))
    FROM spans s JOIN counted n ON n.app = s.app AND n.subject_kind = s.subject_kind
      AND (n.as_of = s.since OR n.as_of > s.starts AND n.as_of <= s.ends OR n.as_of IS NULL AND s.ends > $1 - \(night))
    LEFT JOIN persons p ON p.user_id = n.user_id
    GROUP BY s.app, s.subject_kind, s.since, s.asked, s.is_due, s.starts, s.ends, GROUPING SETS ((), (n.refusal))
    """

  /// A group is missing if no stored answer counts for it, because a run of the future was forgotten.
  private func read(
    _ people: People, on connection: borrowing BlockingConnection
  ) throws(PostgresError) -> [Group: Pending] {
    let aliases = people.aliases
    var groups: [Group: Pending] = [:]
    var spans: [Group: [ClosedRange<Instant>: FirstAnswers]] = [:]
    for row in try connection.execute(
      Self.statement,
      [
        .timestamp(asOf.microseconds), .textArray(settings.apps.map(\.name)), .textArray(settings.apps.map(\.bundleId)),
        .textArray(aliases.map(\.0.text)), .textArray(aliases.map(\.1.text)),
      ])
    {
      let group = Group(
        app: try row.text(0), kind: CheckSubject.Kind(rawValue: try row.text(1)) ?? .receipt, since: try row.instant(2))
      let span = try row.instant(5)...row.instant(6)
      let persons = Int(try row.int64(9))
      if try row.bool(8) {
        spans[group, default: [:]][span, default: FirstAnswers()].persons = persons
      } else if let refusal = try row.optionalText(7).flatMap(Refusal.init) {
        spans[group, default: [:]][span, default: FirstAnswers()].refusals[refusal] = persons
      }
      groups[group] = Pending(
        refusals: PendingRefusals(since: group.since, asked: try row.instant(3), spans: []), isDue: try row.bool(4))
    }
    for (group, found) in spans {
      groups[group]?.refusals.spans = found.sorted {
        ($1.key.lowerBound, $0.key.upperBound) < ($0.key.lowerBound, $1.key.upperBound)
      }.map(\.value)
    }
    return groups
  }

  private func systemic(_ groups: [Group: Pending]) -> [Group: Set<Refusal>] {
    groups.reduce(into: [:]) { systemic, entry in
      let alike = groups.filter { $0.key.app == entry.key.app && $0.key.kind == entry.key.kind }.map(\.value.refusals)
      systemic[entry.key] = entry.value.refusals.systemic(among: alike, share: settings.systemicShare)
    }
  }

  private func faultMessage(_ group: Group, _ pending: Pending) -> String? {
    let subject = group.kind == .receipt ? "receipts" : "stated transaction IDs"
    return pending.refusals.spans.lazy
      .compactMap { $0.faultMessage(app: group.app, subject: subject, share: settings.systemicShare) }.first
  }

  /// Decides the refusals of this night, except those that are too many of their kind. Refusals of an earlier night
  /// wait for their next answer. The last worker decides for all, because answers of others may still come. To decide
  /// twice is safe, because the answers are stored. Without filters (`isWhole`), faults of earlier nights are repeated.
  /// Retires the worker. Returns a fault with its remedy for each app.
  package func decide(
    worker: Worker, isWhole: Bool, store: OpenSession, source: ProofSource
  ) async throws -> [String: String] {
    var (groups, isLast) = try await store.withConnection { connection -> ([Group: Pending], Bool) in
      // A worker retires before it reads: of two that end at once, the last one reads the answers of both.
      try worker.retire(connection)
      let isLast = try !connection.execute("SELECT \(Worker.otherWorkersLive)", [.int(worker.number)]).single().bool(0)
      // A recheck of one order would count all answers of the last night for nothing.
      let pending = "SELECT EXISTS (SELECT FROM night_audit.receipt_checks c WHERE \(Self.isPending))"
      guard try connection.execute(pending).single().bool(0) else { return ([:], false) }
      return (try read(People(), on: connection), isLast)
    }
    var systemic = systemic(groups)
    if systemic.contains(where: { !$0.value.isEmpty }) {
      // Aliases join the user IDs of one person. They only lower counts, so they are read only if a count is too high.
      let people = try await source.people()
      if !people.aliases.isEmpty {
        groups = try await store.withConnection { try read(people, on: $0) }
        systemic = self.systemic(groups)
      }
    }
    if isLast { try await release(systemic, worker: worker, in: store) }
    var faults: [String: String] = [:]
    for (group, pending) in groups.sorted(by: { $0.key < $1.key })
    where group.since == asOf || isWhole && pending.isDue {
      faults[group.app] = faults[group.app] ?? faultMessage(group, pending)
    }
    return faults
  }

  private func release(_ systemic: [Group: Set<Refusal>], worker: Worker, in store: OpenSession) async throws {
    try await CheckTable(policy: settings.duenessPolicy).change(
      where:
        "\(Self.isPending) AND NOT \(Worker.otherWorkersLive) AND c.last_attempt > $2::timestamptz - \(Self.night)",
      [.int(worker.number), .timestamp(asOf.microseconds)], in: store
    ) { row in
      guard let stored = row.storedRefusal, let app = row.app, let asked = row.history.lastAttempt else { return false }
      let group = Group(app: app, kind: row.subject.kind, since: row.history.outcomeSince ?? asked)
      guard let kinds = systemic[group] else {
        // The answer counted in a run of the future that was forgotten. The next answer is a first one.
        if group.since < asked { row.storedRefusal = nil }
        return group.since < asked
      }
      if kinds.contains(stored.refusal) { return false }
      row.history.outcome = stored.outcome
      row.history.reason = stored.reason
      row.history.unansweredSince = nil
      row.storedRefusal = .decided(stored.refusal)
      return true
    }
  }
}

extension EarlierAnswer {
  init(_ row: CheckRow, hasAnsweredPayload: Bool) {
    if row.isPending, let stored = row.storedRefusal, let since = row.history.outcomeSince {
      self = .pendingRefusal(stored.refusal, since: since)
    } else if hasAnsweredPayload, let refused = row.refused {
      self = .refused(refused)
    } else {
      self = row.history.outcome == .verified ? .verified : .none
    }
  }
}
