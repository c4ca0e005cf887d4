import Foundation
import Postgres
import Reconciliation
import Reporting
import Run
import Settings
import Streams

/// Reads stored findings and records decisions of people. Never changes facts.
package struct FindingsEditor: Sendable {
  private let settings: Settings
  private let now: Instant

  package init(settings: Settings, now: Instant) { (self.settings, self.now) = (settings, now) }

  package enum Choice: Sendable {
    /// By ID or by a unique prefix of one.
    case ids([String])
    case all(FindingsFilter)
  }

  /// SQL: another change than that of event `e` decided about the same matter of its finding since, and is not undone.
  /// An acceptance is a status with its limit, so the two are one matter.
  private static let isSuperseded = """
    EXISTS (SELECT FROM night_audit.finding_events n
      WHERE n.finding_id = e.finding_id AND n.event_id > e.event_id AND n.undoes IS NULL
        AND n.change_id IS DISTINCT FROM e.change_id
        AND (n.event IN (e.event, 'opened') OR e.event IN ('status', 'acceptance')
          AND n.event IN ('status', 'acceptance', 'reopened', 'returned'))
        AND NOT EXISTS (SELECT FROM night_audit.finding_events u
          WHERE u.finding_id = n.finding_id AND u.event = n.event AND u.undoes = n.change_id))
    """

  /// SQL: the change of event `e` is undone for its finding. A later decision keeps some findings from being undone, until
  /// it is undone itself.
  private static let isUndone = """
    EXISTS (SELECT FROM night_audit.finding_events u
      WHERE u.finding_id = e.finding_id AND u.event = e.event AND u.undoes = e.change_id)
    """

  /// Undoes a change (nil: the last one) and its sign-off, except for columns changed since. Throws `FindingsError`.
  package func undo(
    _ changeId: String?, by actor: String, isDryRun: Bool = false
  ) async throws -> (changeId: String, outcome: Outcome) {
    try await withDatabase(isDryRun ? .snapshot : .readWrite) { connection in
      let rows = try connection.execute(
        """
        WITH changes AS (
          SELECT e.change_id, e.recorded_at FROM night_audit.finding_events e
          WHERE e.change_id IS NOT NULL AND e.undoes IS NULL AND NOT \(Self.isUndone)
            AND CASE WHEN $1::text IS NULL THEN NOT \(Self.isSuperseded)
              ELSE starts_with(e.change_id::text, $1::text) END
          UNION ALL
          SELECT s.change_id, s.recorded_at FROM night_audit.run_events s
          WHERE s.change_id IS NOT NULL AND starts_with(s.change_id::text, coalesce($1::text, ''))
            AND NOT EXISTS (SELECT 1 FROM night_audit.run_events u WHERE u.undoes = s.change_id))
        SELECT c.change_id::text FROM changes c
        GROUP BY c.change_id ORDER BY max(c.recorded_at) DESC LIMIT 2
        """, [.text(changeId.map { $0.lowercased() })])
      let found = try rows.texts()
      guard let change = found.first else { throw FindingsError.noChange(changeId) }
      if let changeId, found.count > 1 { throw FindingsError.ambiguous([changeId]) }
      let parameters: [PostgresValue] = [.text(change)]
      let events = try connection.execute(
        """
        SELECT DISTINCT ON (e.finding_id, e.event) e.finding_id, e.event, e.before,
          NOT \(Self.isSuperseded)
        FROM night_audit.finding_events e WHERE e.change_id = $1::uuid AND NOT \(Self.isUndone)
        ORDER BY e.finding_id, e.event, e.event_id DESC
        """, parameters)
      var changes: [FindingChange] = []
      var outcome = Outcome()
      for event in events {
        let id = try event.text(0)
        guard try event.bool(3),
          let decision = FindingDecision(event: try event.text(1), value: try event.optionalText(2))
        else {
          outcome.unchanged.append(id)
          continue
        }
        changes.append(FindingChange(findingId: id, decision: decision))
        outcome.changed.append(id)
      }
      if !isDryRun {
        let undoing = UUID().uuidString.lowercased()
        _ = try FindingChange.apply(changes, by: actor, at: now, changeId: undoing, undoing: change, on: connection)
      }
      outcome.changed = Set(outcome.changed).sorted()
      outcome.unchanged = Set(outcome.unchanged).subtracting(outcome.changed).sorted()
      outcome.signedRuns = try StoredSignOff.undo(change, by: actor, isDryRun: isDryRun, on: connection)
      return (change, outcome)
    }
  }

  package struct Outcome: Sendable {
    package var changed: [String] = []
    /// Findings that had the value already, or were changed since.
    package var unchanged: [String] = []
    /// The ID for `findings undo`; nil if nothing changed.
    package var changeId: String?
    package var signedRuns: [String] = []
  }

  private static let page = 1_000

  /// Reads findings page by page in one snapshot, sorted by ID. `ids` may be prefixes. Throws `FindingsError`.
  package func list<Output: FindingsOutput & ~Copyable>(
    _ filter: FindingsFilter, ids: [String]? = nil, to make: @Sendable () throws -> Output
  ) async throws -> Output.Result {
    try await withDatabase(.snapshot) { connection in
      var output = try make()
      var (condition, parameters) = filter.condition(asOf: now)
      if let ids {
        parameters.append(.textArray(try FindingsEditor.resolve(ids, connection)))
        condition += " AND f.finding_id = ANY ($\(parameters.count))"
      }
      try connection.execute(
        """
        DECLARE found NO SCROLL CURSOR FOR
        SELECT \(StoredFinding.columns) FROM night_audit.findings f WHERE \(condition) ORDER BY f.finding_id
        """, parameters)
      while true {
        let rows = try connection.execute("FETCH \(Self.page) FROM found")
        if rows.isEmpty { break }
        var findings = try rows.compactMap { row throws(PostgresError) in try StoredFinding(row) }
        if Output.requestsHistory { try FindingsEditor.addHistory(to: &findings, connection) }
        for finding in findings { try output.add(finding) }
      }
      try connection.execute("CLOSE found")
      return try output.finish()
    }
  }

  private static func addHistory(
    to findings: inout [StoredFinding], _ connection: borrowing BlockingConnection
  ) throws(PostgresError) {
    let places = Dictionary(uniqueKeysWithValues: findings.enumerated().map { ($1.reported.findingId, $0) })
    let events = try connection.execute(
      """
      SELECT e.finding_id, CASE WHEN e.run_id IS NULL THEN e.recorded_at ELSE e.as_of END, e.event, e.actor, e.detail
      FROM night_audit.finding_events e WHERE e.finding_id = ANY ($1) AND e.event <> 'changed'
      ORDER BY e.finding_id, e.event_id
      """, [.textArray(findings.map(\.reported.findingId))])
    for row in events {
      guard let place = places[try row.text(0)] else { continue }
      findings[place].history.append(
        StoredFinding.Event(
          at: try row.instant(1), event: try row.text(2), actor: try row.optionalText(3),
          detail: try row.optionalText(4)))
    }
  }

  /// Records decisions about all of the findings. If an ID is unknown, or an acceptance cannot have its limit, throws
  /// `FindingsError` and changes none.
  package func change(
    _ choice: Choice, to decisions: [FindingDecision], by actor: String, isDryRun: Bool = false
  ) async throws -> Outcome {
    try await withDatabase(isDryRun ? .snapshot : .readWrite) { connection in
      for decision in decisions { try requireLasting(decision, connection) }
      let ids: [String]
      switch choice {
      case .ids(let prefixes): ids = try FindingsEditor.resolve(prefixes, connection)
      case .all(let filter):
        let (condition, parameters) = filter.condition(asOf: now)
        ids = try connection.execute(
          "SELECT f.finding_id FROM night_audit.findings f WHERE \(condition) ORDER BY f.finding_id", parameters
        ).texts()
      }
      for decision in decisions { try FindingsEditor.requireComparable(decision, of: ids, connection) }
      let changes = ids.flatMap { id in decisions.map { FindingChange(findingId: id, decision: $0) } }
      let changeId = UUID().uuidString.lowercased()
      let changed = Set(
        isDryRun
          ? try FindingChange.effective(changes, on: connection)
          : try FindingChange.apply(changes, by: actor, at: now, changeId: changeId, on: connection))
      return Outcome(
        changed: changed.sorted(), unchanged: Set(ids).subtracting(changed).sorted(),
        changeId: isDryRun || changed.isEmpty ? nil : changeId)
    }
  }

  /// Throws `FindingsError` for an acceptance that ends before the newest audit, which no night would report.
  private func requireLasting(_ decision: FindingDecision, _ connection: borrowing BlockingConnection) throws {
    guard decision.column == .acceptance, let day = decision.value.flatMap({ Acceptance(text: $0) })?.until,
      let newest = try connection.execute("SELECT max(as_of) FROM night_audit.findings_met").single().optionalInstant(0)
    else { return }
    let newestDay = Period.dayText(of: newest, in: settings.timeZone)
    if day < newestDay { throw FindingsError.pastAcceptance(day, newest: newestDay) }
  }

  /// Throws `FindingsError` for an amount that cannot limit the acceptance: the finding has no money at risk, or its
  /// currency has fewer decimals.
  private static func requireComparable(
    _ decision: FindingDecision, of ids: [String], _ connection: borrowing BlockingConnection
  ) throws {
    guard decision.column == .acceptance, let limit = decision.value.flatMap({ Acceptance(text: $0) }),
      let amount = limit.amount
    else { return }
    let rows = try connection.execute(
      """
      SELECT f.finding_id, f.at_stake IS NOT NULL OR f.at_stake_unknown, f.currency FROM night_audit.findings f
      WHERE f.finding_id = ANY ($1) ORDER BY f.finding_id
      """, [.textArray(ids)])
    for row in rows {
      let id = try row.text(0)
      guard try row.bool(1) else { throw FindingsError.nothingAtStake(id, amount: amount) }
      if let currency = try row.optionalText(2).flatMap({ Currency(code: $0) }), !limit.isExpressible(in: currency) {
        throw FindingsError.tooManyDecimals(id, amount: amount, currency)
      }
    }
  }

  /// Runs one transaction. A writing one first waits for nights and other writers.
  package func withDatabase<Result: Sendable>(
    _ mode: TransactionMode, _ body: @Sendable (borrowing BlockingConnection) throws -> Result
  ) async throws -> Result {
    try await settings.withStore("night-audit findings", mode) { connection in
      switch mode {
      // Taken before anything is read, because a decision must not rest on rows that are being changed.
      case .readWrite: try Trail.lockForDecision(on: connection)
      case .snapshot, .importedSnapshot: break
      }
      return try body(connection)
    }
  }

  private static func resolve(_ prefixes: [String], _ connection: borrowing BlockingConnection) throws -> [String] {
    let wanted = prefixes.map { $0.lowercased() }
    let possible = wanted.filter {
      $0.utf8.count >= Self.fewestDigits && $0.utf8.allSatisfy { FindingsEditor.digits.contains($0) }
    }
    let rows = try connection.execute(
      """
      SELECT p.prefix, f.finding_id FROM unnest($1::text[]) p (prefix)
      CROSS JOIN LATERAL (
        SELECT finding_id FROM night_audit.findings
        WHERE finding_id >= p.prefix AND finding_id < p.prefix || 'g' ORDER BY finding_id LIMIT 2) f
      """, [.textArray(possible)])
    var found: [String: Set<String>] = [:]
    for row in rows { found[try row.text(0), default: []].insert(try row.text(1)) }
    let unknown = prefixes.filter { found[$0.lowercased()] == nil }
    if !unknown.isEmpty { throw FindingsError.unknown(unknown) }
    let ambiguous = prefixes.filter { (found[$0.lowercased()]?.count ?? 0) > 1 }
    if !ambiguous.isEmpty { throw FindingsError.ambiguous(ambiguous) }
    return Set(found.values.flatMap { $0 }).sorted()
  }

  fileprivate static let fewestDigits = 4
  private static let digits = Set("0123456789abcdef".utf8)
}

package enum FindingsError: RunEndingError, Equatable, CustomStringConvertible {
  case unknown([String])
  case ambiguous([String])
  case noChange(String?)
  /// The last day of an acceptance is before that of the newest audit.
  case pastAcceptance(String, newest: String)
  /// An acceptance up to an amount of a finding without money at risk, which would never end.
  case nothingAtStake(String, amount: String)
  case tooManyDecimals(String, amount: String, Currency)

  package var exitStatus: ExitStatus {
    switch self {
    case .unknown, .noChange: .nothingThere
    case .ambiguous, .pastAcceptance, .nothingAtStake, .tooManyDecimals: .usage
    }
  }

  package var description: String {
    switch self {
    case .unknown(let ids):
      "no finding has the ID \(ids.joined(separator: ", ")), so the command did nothing. "
        + (ids.contains { $0.utf8.count < FindingsEditor.fewestDigits }
          ? "At least \(FindingsEditor.fewestDigits) digits name one. " : "")
        + "night-audit findings list --state any lists them all"
    case .ambiguous(let ids):
      "several findings have IDs that begin with \(ids.joined(separator: ", ")), so the command did nothing. "
        + "Give more digits"
    case .noChange(let id):
      (id.map { "there is no change \($0) that could be taken back" }
        ?? "there is no change left to take back") + "; nothing was changed"
    case .pastAcceptance(let day, let newest):
      "--until \(day) is before \(newest), the day of the newest audit; nothing was changed. "
        + "Give \(newest) or a later day"
    case .nothingAtStake(let id, let amount):
      "finding \(id) has no money at risk, so --amount \(amount) would never end its acceptance; nothing was changed. "
        + "Give --until instead, or leave this finding out"
    case .tooManyDecimals(let id, let amount, let currency):
      "--amount \(amount) has more decimals than \(currency) has, the currency of finding \(id); nothing was changed. "
        + (currency.digits == 0 ? "Give a whole amount" : "Give at most \(currency.digits) decimals")
        + ", or select one currency with --currency"
    }
  }
}
