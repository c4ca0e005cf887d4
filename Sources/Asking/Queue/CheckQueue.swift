import AppStore
import AuditStore
import Logging
import Postgres
import Reconciliation
import Run
import SalesStore
import Settings
import Streams
import Synchronization

/// The checks in `night_audit.receipt_checks`, a queue shared by all workers of a database. Workers lease due checks in
/// the order of one index.
package struct CheckQueue: Sendable {
  let store: OpenSession
  let source: ProofSource
  let settings: Settings
  let asOf: Instant
  private let isPastAudit: Bool
  package let worker: Worker
  private let selection: Selection
  /// True if no filter narrows the checks.
  package var isWhole: Bool { !selection.isNarrowing }
  /// True for a run about one order, which always asks.
  var isOfOrder: Bool { selection.orderId != nil }
  private let claims: Claims

  private final class Claims: Sendable {
    struct Values {
      var hasBegun = false
      /// True while the worker does not count as asking. New sessions then take no lock.
      var isPaused = false
      var listed: [CheckSubject]?
      var position = 0
    }
    let values = Mutex(Values())
  }

  /// Opens the queue for one worker. `isTaking` is false to count only, without a worker and without changes.
  package static func open(
    settings: Settings, asOf: Instant, isPastAudit: Bool, selection: Selection, isTaking: Bool = true,
    logger: Logger? = nil,
    connect: @escaping @Sendable () async throws -> PostgresSession,
    connectSales: @escaping @Sendable () async throws -> PostgresSession
  ) async throws -> CheckQueue {
    let first = OpenSession(logger: logger, open: connect)
    let worker =
      try await isTaking
      ? first.run { session, _ in try await Worker.next(session, timeout: settings.timeout) } : .idle
    await first.close()
    let claims = Claims()
    let store = OpenSession(logger: logger) {
      let session = try await connect()
      if isTaking, !claims.values.withLock({ $0.isPaused }) { try await worker.own(session) }
      return session
    }
    let source = ProofSource(
      session: OpenSession(logger: logger, open: connectSales), sales: try SalesRows(schema: settings.salesSchema))
    return CheckQueue(
      store: store, source: source, settings: settings, asOf: asOf, isPastAudit: isPastAudit, worker: worker,
      selection: selection, claims: claims)
  }

  package func close() async {
    await store.close()
    await source.session.close()
  }

  package var table: CheckTable { CheckTable(policy: settings.duenessPolicy) }

  private var intake: QueueIntake {
    QueueIntake(store: store, source: source, settings: settings, asOf: asOf, isPastAudit: isPastAudit, table: table)
  }

  /// Adds the shop's new and changed rows. Returns how many checks are new, moved or judged again.
  /// `judge` identifies the root certificates; after it changes, refusals are judged again.
  @discardableResult
  package func enqueue(from unknownFrom: Instant? = nil, judge: String? = nil) async throws -> Int {
    let listed = selection.isOfOrderOrUser ? try await listedProofs() : nil
    let count = try await intake.run(from: unknownFrom, judge: judge, listed: listed)
    // A run about one order asks about it anyway, and leaves the others to the night.
    if isWhole {
      try await store.withConnection { [table, asOf] in try table.noteAccusations(before: asOf, on: $0) }
    }
    return count
  }

  /// Makes the proofs of a new critical finding due once more before it is reported.
  package func ask(about critical: Set<CheckSubject>) async throws {
    for kind in [CheckSubject.Kind.receipt, .lookup] {
      try await table.change(
        where: "c.subject_kind = $1 AND c.subject_id = ANY ($2)",
        [.text(kind.rawValue), .textArray(critical.filter { $0.kind == kind }.map(\.id.text).sorted())], in: store
      ) { row in
        // Apple is not asked about an offline conclusion.
        guard !row.history.isOffline, row.history.answeredAt.map({ $0 < asOf }) ?? false else { return false }
        row.history.criticalSince = asOf
        return true
      }
    }
  }

  /// Makes all checks of the selected order due, because a run with `--order` always asks.
  func askAboutOrder() async throws {
    guard isOfOrder, let subjects = try await subjects() else { return }
    try await table.change(where: Self.isListed("$1", "$2"), subjects.parameters, in: store) { row in
      guard row.history.lastAttempt.map({ $0 < asOf }) ?? false else { return false }
      row.history.criticalSince = asOf
      return true
    }
  }

  // MARK: - Due checks

  /// A check that is due at the as-of `$1`, on `receipt_checks` aliased `c`.
  private static let isDue = "c.due_from <= $1 AND (c.due_until IS NULL OR c.due_until > $1)"
  /// Names every rank, because the index of due checks begins with the rank. Postgres then reads due checks only.
  private static func isRanked(_ ranks: [Dueness.Rank] = Dueness.Rank.allCases) -> String {
    "c.due_rank IN (\(ranks.map { "\($0.rawValue)" }.joined(separator: ", ")))"
  }
  private static let isFree = "(c.worker IS NULL OR c.worker <> ALL (ARRAY (\(Worker.living))))"
  static func isListed(_ kinds: String, _ ids: String) -> String {
    "(c.subject_kind, c.subject_id) IN (SELECT * FROM unnest(\(kinds)::text[], \(ids)::text[]))"
  }

  package func dueCount() async throws -> Int { try await dueCount(and: "TRUE") }

  private func dueCount(and condition: String, atMost most: Int = .max) async throws -> Int {
    func count(_ condition: String, _ values: [PostgresValue] = []) async throws -> Int {
      let count = Self.count(of: "\(Self.isRanked()) AND \(Self.isDue) AND \(condition)")
      let rows = try await store.execute(count, [.timestamp(asOf.microseconds), .int(Int64(most))] + values)
      return Int(try rows.single().int64(0))
    }
    guard let subjects = try await subjects() else { return try await count(condition) }
    var found = 0
    for start in stride(from: 0, to: subjects.count, by: settings.batchSize) where found < most {
      let part = subjects[start..<min(start + settings.batchSize, subjects.count)]
      found += try await count("\(condition) AND \(Self.isListed("$3", "$4"))", part.parameters)
    }
    return found
  }

  /// A query that counts checks up to `$2`, so that a long queue costs no more.
  private static func count(of checks: String) -> String {
    "SELECT count(*) FROM (SELECT FROM night_audit.receipt_checks c WHERE \(checks) LIMIT $2) AS due"
  }

  /// The number of checks that a run with this as-of would ask Apple about, counted up to `most`.
  package static func questionCount(
    at asOf: Instant, atMost most: Int, _ session: PostgresSession
  ) async throws -> Int {
    let isAsked = "\(isRanked(Dueness.Rank.allCases.filter { $0 != .judgedOffline })) AND \(isDue)"
    let rows = try await session.execute(count(of: isAsked), [.timestamp(asOf.microseconds), .int(Int64(most))])
    return Int(try rows.single().int64(0))
  }

  /// The number of receipts and look-ups that the queue does not know yet. All of them will be due.
  package func unknownCount() async throws -> Int {
    try await intake.unknownCount(selection.isNarrowing ? try await listedProofs() : nil)
  }

  private func listedProofs() async throws -> ListedProofs {
    let onlyBundleId = settings.apps.count == 1 ? settings.apps[0].bundleId : nil
    return try await source.listed(selection, onlyBundleId: onlyBundleId)
  }

  private func subjects() async throws -> [CheckSubject]? {
    if isWhole { return nil }
    if let known = claims.values.withLock({ $0.listed }) { return known }
    let proofs = try await listedProofs()
    var subjects = proofs.receiptIds.sorted().map { CheckSubject(kind: .receipt, id: $0) }
    let lookups = try await store.execute(
      "SELECT DISTINCT l.subject_id FROM night_audit.lookups l WHERE l.order_id = ANY ($1)",
      [.textArray(proofs.orderIds.sorted().map(\.text))])
    subjects += try lookups.map { CheckSubject(kind: .lookup, id: Identifier(try $0.text(0))) }.sorted { $0.id < $1.id }
    let found = subjects
    claims.values.withLock { $0.listed = found }
    return found
  }

  /// Reads the filtered checks again from the beginning, because answers have added checks.
  package func restartReading() { claims.values.withLock { ($0.listed, $0.position) = (nil, 0) } }

  // MARK: - Claims

  package enum Claim: Sendable {
    case due
    /// Due receipts that have given no transaction yet. Their own content may be unread.
    case unread
  }

  /// One claim of one rank: `$1` is the as-of, `$2` the rank, `$3` the limit and `$4` the worker.
  static func statement(and condition: String = "TRUE") -> String {
    """
    UPDATE night_audit.receipt_checks c SET worker = $4::int
    WHERE c.ctid = ANY (ARRAY (
      SELECT c.ctid FROM night_audit.receipt_checks c
      WHERE c.due_rank = $2::int AND \(isDue) AND \(condition)
        AND \(isFree)
      ORDER BY c.due_rank, c.due_from, c.subject_kind, c.subject_id LIMIT $3 FOR UPDATE OF c SKIP LOCKED))
    RETURNING \(CheckRow.columns)
    """
  }

  /// Leases the next batch, the most urgent first. The batch is empty if no free check is due.
  package func claim(_ claim: Claim = .due) async throws -> [CheckRow] {
    var (condition, ranks, limit) = ("TRUE", Dueness.Rank.allCases, settings.batchSize)
    switch claim {
    case .due: limit = try await share()
    case .unread:
      condition = "c.subject_kind = 'receipt' AND c.outcome IN ('pending', 'unanswered') AND c.brought_count = 0"
      ranks = [.urgent, .open, .judgedOffline]
    }
    guard let subjects = try await subjects() else { return try await take(and: condition, limit: limit, ranks) }
    condition += " AND \(Self.isListed("$5", "$6"))"
    while true {
      let part = claims.values.withLock { values -> ArraySlice<CheckSubject> in
        let start = values.position
        values.position = min(start + limit, subjects.count)
        return subjects[start..<values.position]
      }
      if part.isEmpty { return [] }
      let rows = try await take(and: condition, part.parameters, limit: limit, ranks)
      if !rows.isEmpty { return rows }
    }
  }

  /// The size of a batch. It is smaller while other workers ask or may start, so that all have work until the end.
  private func share() async throws -> Int {
    let isFirst = claims.values.withLock { values in
      defer { values.hasBegun = true }
      return !values.hasBegun
    }
    let share = min(settings.batchSize, max(settings.concurrency, settings.batchSize / 4))
    if isFirst { return share }
    let othersAsk = try await store.execute("SELECT \(Worker.otherWorkersLive)", [.int(worker.number)]).single().bool(0)
    return othersAsk ? share : settings.batchSize
  }

  private func take(
    and condition: String, _ listed: [PostgresValue] = [], limit: Int, _ ranks: [Dueness.Rank]
  ) async throws -> [CheckRow] {
    let (sql, asOf, worker) = (Self.statement(and: condition), asOf, worker)
    // Outlives the attempt: if the session is lost at the commit, the retry releases the checks of the first attempt.
    let read = Mutex<[CheckSubject]>([])
    return try await store.run { session, _ in
      try await session.pipelinedTransaction { connection in
        try Self.release(read.withLock { $0 }, of: worker, on: connection)
        var taken: [CheckRow] = []
        for rank in ranks where taken.count < limit {
          let rows = try connection.execute(
            sql,
            [
              .timestamp(asOf.microseconds), .int(Int64(rank.rawValue)), .int(Int64(limit - taken.count)),
              .int(worker.number),
            ] + listed
          ).map { try CheckRow($0) }
          taken += rows.sorted { ($0.due?.from ?? asOf, $0.subject.id) < ($1.due?.from ?? asOf, $1.subject.id) }
        }
        read.withLock { [taken] in $0 = taken.map(\.subject) }
        return taken
      }
    }
  }

  /// Releases checks that the worker may have leased in a lost session, because claims skip a living worker's checks.
  private static func release(
    _ subjects: [CheckSubject], of worker: Worker, on connection: borrowing BlockingConnection
  ) throws(PostgresError) {
    if subjects.isEmpty { return }
    try connection.postpone(
      """
      UPDATE night_audit.receipt_checks c SET worker = NULL
      WHERE c.worker = $1::int AND \(isListed("$2", "$3"))
      """,
      [.int(worker.number)] + subjects.parameters)
  }

  func leased(_ subjects: [CheckSubject]) async throws -> [CheckRow] {
    try await store.execute(
      """
      SELECT \(CheckRow.columns) FROM night_audit.receipt_checks c
      WHERE c.worker = $4::int AND \(Self.isDue) AND \(Self.isListed("$2", "$3"))
      ORDER BY c.due_rank, c.due_from, c.subject_kind, c.subject_id
      """, [.timestamp(asOf.microseconds)] + subjects.parameters + [.int(worker.number)]
    ).map { try CheckRow($0) }
  }

  // MARK: - Other workers

  /// The due checks that are left when this worker has asked about all that it could lease.
  package enum Remainder: Sendable {
    case nothing
    /// Other living workers own all of them. If one dies, this worker can lease its checks.
    case others
    case free
  }

  /// Releases this worker's leases. Until it resumes, other workers decide refusals without it.
  package func remainder() async throws -> Remainder {
    try await pause()
    let isOthers = "c.worker IS DISTINCT FROM \(worker.number)"
    if try await dueCount(and: isOthers, atMost: 1) == 0 { return .nothing }
    return try await dueCount(and: "\(isOthers) AND \(Self.isFree)", atMost: 1) > 0 ? .free : .others
  }

  package func pause() async throws {
    claims.values.withLock { $0.isPaused = true }
    try await store.withConnection { [worker] in try worker.retire($0) }
  }

  func renew() async throws {
    if claims.values.withLock({ $0.isPaused }) { return }
    try await store.run { [worker] session, _ in try await worker.renew(session) }
  }

  package func resume() async throws {
    claims.values.withLock { $0.isPaused = false }
    try await store.run { [worker] session, _ in try await worker.own(session) }
  }

  func sessions() async throws -> [Int32] { try await store.execute(Worker.sessions).map { try $0.int32(0) } }

  // MARK: - Recent statements of Apple

  /// Recent statements of Apple about transactions, by ID. They replace questions until they are stale.
  package func reportedTransactions(withIDs ids: [String]) async throws -> [String: ReportedTransaction] {
    if ids.isEmpty { return [:] }
    let rows = try await store.execute(
      """
      SELECT DISTINCT ON (transaction_id) transaction_id, environment, bundle_id, channel,
        CASE channel WHEN 'serverApi' THEN as_of ELSE signed_at END AS stated_at
      FROM night_audit.evidence e
      WHERE transaction_id = ANY ($1)
        AND (channel = 'serverApi' AND as_of > $2 AND as_of <= $3 OR channel = 'notification' AND signed_at > $2)
        -- Of a period that is over it must be asked how the subscription stands.
        AND (expires_at IS NULL OR expires_at > $3)
        AND \(EvidenceTable.isCredible("e"))
      ORDER BY transaction_id, stated_at DESC, environment
      """,
      [.textArray(ids), .timestamp((asOf - settings.staleAfter).microseconds), .timestamp(asOf.microseconds)])
    var reported: [String: ReportedTransaction] = [:]
    for row in rows {
      guard let environment = AppleEnvironment(rawValue: try row.text(1)),
        let channel = EvidenceChannel(rawValue: try row.text(3))
      else { continue }
      reported[try row.text(0)] = ReportedTransaction(
        environment: environment, bundleId: try row.optionalText(2), channel: channel,
        at: min(try row.instant(4), asOf))
    }
    return reported
  }

  /// The statements that may replace an answer. If a critical finding rests on it, only statements of this run count.
  /// An undecided refusal is always asked about again.
  package func usable(_ reported: [String: ReportedTransaction], for row: CheckRow) -> [String: ReportedTransaction] {
    if row.isPending { return [:] }
    let isCritical = row.history.criticalSince != nil || row.history.accusedSince != nil
    return isCritical ? reported.filter { $0.value.at >= asOf } : reported
  }
}

struct ListedProofs: Sendable {
  var receiptIds: Set<Identifier>
  var orderIds: Set<Identifier>
}

extension Settings {
  package var duenessPolicy: Dueness.Policy {
    Dueness.Policy(staleAfter: staleAfter, refundWindow: refundWindow, lookback: lookback)
  }
}
