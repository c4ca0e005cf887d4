import AppStore
import AuditStore
import Logging
import Postgres
import Reconciliation
import Run
import SalesStore
import Synchronization

/// The queue of things to ask Apple about: `night_audit.receipt_checks`, shared by all workers of a database.
///
/// What is due stands in one index, in the order in which it is asked about. What a worker has taken is its own while it
/// lives, as `Worker` says.
package struct CheckQueue: Sendable {
  let store: OpenSession
  let source: ProofSource
  let settings: Settings
  let asOf: Instant
  private let isOfThePast: Bool
  package let worker: Worker
  private let selection: Selection
  /// Whether nothing narrows what is asked about.
  package var isWhole: Bool { !selection.isNarrowing }
  private let claims: Claims

  private final class Claims: Sendable {
    struct Values {
      var hasBegun = false
      /// Whether the worker does not count as one that asks, and sessions are not its own.
      var isResting = false
      /// What filters list, once it was read.
      var listed: [CheckSubject]?
      /// Where of it the next claim begins.
      var position = 0
    }
    let values = Mutex(Values())
  }

  /// Opens the queue for one worker.
  ///
  /// - Parameters:
  ///   - isOfThePast: whether the as-of was past already when the run began, as the audit of the run has it.
  ///   - connect: opens a session on our own store.
  ///   - connectSales: opens one on the shop's.
  ///   - selection: narrows what is asked about.
  ///   - isTaking: false to count only. That takes no worker, and changes nothing.
  ///   - logger: says when a database is waited for.
  package static func open(
    settings: Settings, asOf: Instant, isOfThePast: Bool, selection: Selection, isTaking: Bool = true,
    logger: Logger? = nil,
    connect: @escaping @Sendable () async throws -> PostgresSession,
    connectSales: @escaping @Sendable () async throws -> PostgresSession
  ) async throws -> CheckQueue {
    let first = OpenSession(logger: logger, open: connect)
    let worker =
      try await isTaking
      ? first.run { session, _ in try await Worker.next(session, timeout: settings.timeout) } : .nobody
    await first.close()
    let claims = Claims()
    let store = OpenSession(logger: logger) {
      let session = try await connect()
      if isTaking, !claims.values.withLock({ $0.isResting }) { try await worker.hold(session) }
      return session
    }
    let source = ProofSource(
      session: OpenSession(logger: logger, open: connectSales), sales: try SalesRows(schema: settings.salesSchema))
    return CheckQueue(
      store: store, source: source, settings: settings, asOf: asOf, isOfThePast: isOfThePast, worker: worker,
      selection: selection, claims: claims)
  }

  private init(
    store: OpenSession, source: ProofSource, settings: Settings, asOf: Instant, isOfThePast: Bool, worker: Worker,
    selection: Selection, claims: Claims
  ) {
    self.store = store
    self.source = source
    self.settings = settings
    self.asOf = asOf
    self.isOfThePast = isOfThePast
    self.worker = worker
    self.selection = selection
    self.claims = claims
  }

  /// Ends the worker: what it had taken and not asked about is anybody's.
  package func close() async {
    await store.close()
    await source.session.close()
  }

  package var table: CheckTable { CheckTable(policy: settings.duenessPolicy) }

  private var intake: QueueIntake {
    QueueIntake(
      store: store, source: source, settings: settings, asOf: asOf, isOfThePast: isOfThePast, table: table)
  }

  /// Takes in what the shop's relations have that the queue does not know.
  ///
  /// - Parameters:
  ///   - unknownFrom: when the oldest receipt or order was made that came to light late; nil: none is known to have.
  ///   - judge: identifies the root certificates; after a change refusals are judged again. nil: no judge is known.
  /// - Returns: how many rows were new, had moved, or are to be judged anew.
  @discardableResult
  package func enqueue(from unknownFrom: Instant? = nil, judge: String? = nil) async throws -> Int {
    try await intake.run(from: unknownFrom, judge: judge)
  }

  /// Lets proofs be asked about once more before a critical finding that rests on them is reported for the first time.
  package func ask(about critical: Set<CheckSubject>) async throws {
    let (table, asOf) = (table, asOf)
    try await store.withConnection { connection in
      for kind in [CheckSubject.Kind.receipt, .lookup] {
        try table.change(
          where: "c.subject_kind = $1 AND c.subject_id = ANY ($2)",
          [.text(kind.rawValue), .textArray(critical.filter { $0.kind == kind }.map(\.id.text).sorted())],
          on: connection
        ) { row in
          // Apple is not asked about an offline conclusion.
          guard !row.history.isOffline, row.history.answeredAt.map({ $0 < asOf }) ?? false else { return false }
          row.history.criticalSince = asOf
          return true
        }
      }
    }
  }

  /// Makes all checks of the selected order due. A run with `--order` always asks.
  func askAboutOrder() async throws {
    guard selection.orderId != nil, let subjects = try await subjects() else { return }
    let (table, asOf) = (table, asOf)
    try await store.withConnection { connection in
      try table.change(
        where: Self.isListed("$1", "$2"),
        [.textArray(subjects.map(\.kind.rawValue)), .textArray(subjects.map(\.id.text))], on: connection
      ) { row in
        guard row.history.lastAttempt.map({ $0 < asOf }) ?? false else { return false }
        row.history.criticalSince = asOf
        return true
      }
    }
  }

  // MARK: - What is due

  /// Due in a run of the as-of `$1`, on `receipt_checks` aliased `c`.
  private static let isDue = "c.due_from <= $1 AND (c.due_until IS NULL OR c.due_until > $1)"
  /// Of the ranks that are counted all are named: the index of what is due begins with them, and is read only where it is due.
  private static func isRanked(_ ranks: [Dueness.Rank] = Dueness.Rank.allCases) -> String {
    "c.due_rank IN (\(ranks.map { "\($0.rawValue)" }.joined(separator: ", ")))"
  }
  /// Taken by nobody who lives.
  private static let isFree = "(c.worker IS NULL OR c.worker <> ALL (ARRAY (\(Worker.living))))"
  private static func isListed(_ kinds: String, _ ids: String) -> String {
    "(c.subject_kind, c.subject_id) IN (SELECT * FROM unnest(\(kinds)::text[], \(ids)::text[]))"
  }

  /// How many are due now.
  package func dueCount() async throws -> Int { try await dueCount(and: "TRUE") }

  /// - Parameters:
  ///   - condition: on `receipt_checks` aliased `c`.
  ///   - most: nothing is counted beyond so many.
  private func dueCount(and condition: String, atMost most: Int = .max) async throws -> Int {
    func count(_ condition: String, _ values: [PostgresValue] = []) async throws -> Int {
      let due =
        "SELECT FROM night_audit.receipt_checks c WHERE \(Self.isRanked()) AND \(Self.isDue) AND \(condition) LIMIT $2"
      return Int(
        try await store.execute(
          "SELECT count(*) FROM (\(due)) AS due", [.timestamp(asOf.microseconds), .int(Int64(most))] + values
        ).single().int64(0))
    }
    guard let subjects = try await subjects() else { return try await count(condition) }
    var found = 0
    for start in stride(from: 0, to: subjects.count, by: settings.batchSize) where found < most {
      let part = subjects[start..<min(start + settings.batchSize, subjects.count)]
      found += try await count(
        "\(condition) AND \(Self.isListed("$3", "$4"))",
        [.textArray(part.map(\.kind.rawValue)), .textArray(part.map(\.id.text))])
    }
    return found
  }

  /// How many receipts and look-ups a run of that as-of would ask Apple about. What is judged by itself costs no question.
  package static func questionCount(at asOf: Instant, _ session: PostgresSession) async throws -> Int {
    let isAsked = "\(isRanked(Dueness.Rank.allCases.filter { $0 != .byItself })) AND \(isDue)"
    return Int(
      try await session.execute(
        "SELECT count(*) FROM night_audit.receipt_checks c WHERE \(isAsked)", [.timestamp(asOf.microseconds)]
      ).single().int64(0))
  }

  /// How many receipts and look-ups the queue does not know yet; every one of them will be due.
  package func unknownCount() async throws -> Int {
    try await intake.unknownCount(selection.isNarrowing ? try await listedProofs() : nil)
  }

  private func listedProofs() async throws -> ListedProofs {
    let onlyBundleId = settings.apps.count == 1 ? settings.apps[0].bundleId : nil
    return try await source.listed(selection, onlyBundleId: onlyBundleId)
  }

  /// What filters list of the queue; nil when nothing is filtered.
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

  /// Looks again at what filters list, from the beginning: answers have brought new questions.
  package func startOver() { claims.values.withLock { ($0.listed, $0.position) = (nil, 0) } }

  // MARK: - Taking

  /// What a claim takes.
  package enum Claim: Sendable {
    /// Everything that is due.
    case due
    /// Receipts that are due and have brought nothing yet: what they say by themselves may be unknown.
    case unread
  }

  /// One claim of one rank, with `$1` the as-of, `$2` the rank, `$3` how many and `$4` the worker.
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

  /// Takes the next batch, the most urgent first; empty when nothing is due that no living worker holds.
  package func claim(_ claim: Claim = .due) async throws -> [CheckRow] {
    switch claim {
    case .due:
      let limit = try await share()
      return try await next(limit) { try await take(and: "TRUE", $0, limit: limit, ranks: Dueness.Rank.allCases) }
    case .unread:
      let condition = "c.subject_kind = 'receipt' AND c.outcome IN ('pending', 'unanswered') AND c.brought_count = 0"
      return try await next(settings.batchSize) {
        try await take(and: condition, $0, limit: settings.batchSize, ranks: [.urgent, .open, .byItself])
      }
    }
  }

  /// How many are taken at a time: where others ask as well, or may be about to, no more than keeps this one busy for a
  /// while, so that all have something to do until the end.
  private func share() async throws -> Int {
    let isFirst = claims.values.withLock { values in
      defer { values.hasBegun = true }
      return !values.hasBegun
    }
    let share = min(settings.batchSize, max(settings.concurrency, settings.batchSize / 4))
    if isFirst { return share }
    let othersAsk = try await store.execute("SELECT \(Worker.othersLive)", [.int(worker.number)]).single().bool(0)
    return othersAsk ? share : settings.batchSize
  }

  /// Without filters one claim; with them one for each part of what they list, until one brings something.
  private func next(
    _ count: Int, _ take: ([CheckSubject]?) async throws -> [CheckRow]
  ) async throws -> [CheckRow] {
    guard let subjects = try await subjects() else { return try await take(nil) }
    while true {
      let part = claims.values.withLock { values -> [CheckSubject] in
        let end = values.position + min(count, subjects.count - values.position)
        defer { values.position = end }
        return Array(subjects[values.position..<end])
      }
      if part.isEmpty { return [] }
      let rows = try await take(part)
      if !rows.isEmpty { return rows }
    }
  }

  private func take(
    and condition: String, _ part: [CheckSubject]?, limit: Int, ranks: [Dueness.Rank]
  ) async throws -> [CheckRow] {
    var condition = condition
    var further: [PostgresValue] = []
    if let part {
      condition += " AND \(Self.isListed("$5", "$6"))"
      further = [.textArray(part.map(\.kind.rawValue)), .textArray(part.map(\.id.text))]
    }
    let (sql, values, asOf, worker) = (Self.statement(and: condition), further, asOf, worker)
    // What is read before the commit is known whether or not a session that is lost then has kept it.
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
            ] + values
          ).map { try CheckRow($0) }
          taken += rows.sorted { ($0.due?.from ?? asOf, $0.subject.id) < ($1.due?.from ?? asOf, $1.subject.id) }
        }
        read.withLock { [taken] in $0 = taken.map(\.subject) }
        return taken
      }
    }
  }

  /// Gives back what a worker may have taken in a session that was lost: no other claim takes what a living worker holds.
  private static func release(
    _ subjects: [CheckSubject], of worker: Worker, on connection: borrowing BlockingConnection
  ) throws(PostgresError) {
    if subjects.isEmpty { return }
    try connection.postpone(
      """
      UPDATE night_audit.receipt_checks c SET worker = NULL
      WHERE c.worker = $1::int AND \(isListed("$2", "$3"))
      """,
      [.int(worker.number), .textArray(subjects.map(\.kind.rawValue)), .textArray(subjects.map(\.id.text))])
  }

  /// What this worker has taken of those, as it stands now.
  func held(_ subjects: [CheckSubject]) async throws -> [CheckRow] {
    try await store.execute(
      """
      SELECT \(CheckRow.columns) FROM night_audit.receipt_checks c
      WHERE c.worker = $4::int AND \(Self.isDue) AND \(Self.isListed("$2", "$3"))
      ORDER BY c.due_rank, c.due_from, c.subject_kind, c.subject_id
      """,
      [
        .timestamp(asOf.microseconds), .textArray(subjects.map(\.kind.rawValue)),
        .textArray(subjects.map(\.id.text)), .int(worker.number),
      ]
    ).map { try CheckRow($0) }
  }

  // MARK: - What others have taken

  /// What is due when this worker has asked about all that it could take.
  package enum Remainder: Sendable {
    case nothing
    /// All of it is held by others who live: should one of them die, what it held is left to us.
    case others
    /// Nobody holds it any more, or nobody has begun to.
    case free
  }

  /// Looks at what is left, of a worker that holds nothing. From here until it resumes it does not count as one that asks:
  /// nobody need wait for it before refusals are decided.
  package func remainder() async throws -> Remainder {
    try await pause()
    let isOthers = "c.worker IS DISTINCT FROM \(worker.number)"
    if try await dueCount(and: isOthers, atMost: 1) == 0 { return .nothing }
    return try await dueCount(and: "\(isOthers) AND \(Self.isFree)", atMost: 1) > 0 ? .free : .others
  }

  /// Rests until it resumes.
  package func pause() async throws {
    claims.values.withLock { $0.isResting = true }
    try await store.withConnection { [worker] in try worker.retire($0) }
  }

  /// Renews the lease of what this worker has taken, unless it rests.
  func renew() async throws {
    if claims.values.withLock({ $0.isResting }) { return }
    try await store.run { [worker] session, _ in try await worker.renew(session) }
  }

  /// Asks again.
  package func resume() async throws {
    claims.values.withLock { $0.isResting = false }
    try await store.run { [worker] session, _ in try await worker.hold(session) }
  }

  /// The database sessions of those who ask, by the server's numbers of their processes.
  func sessions() async throws -> [Int32] { try await store.execute(Worker.sessions).map { try $0.int32(0) } }

  // MARK: - What is known

  /// What Apple has lately said about transactions, by id: what the sweep of the notifications or another question of
  /// ours has brought since an answer would be stale need not be asked for again.
  package func told(about ids: [String]) async throws -> [String: ToldTransaction] {
    if ids.isEmpty { return [:] }
    let rows = try await store.execute(
      """
      SELECT DISTINCT ON (transaction_id) transaction_id, environment, bundle_id, channel,
        CASE channel WHEN 'serverApi' THEN as_of ELSE signed_at END AS told_at
      FROM night_audit.evidence
      WHERE transaction_id = ANY ($1)
        AND (channel = 'serverApi' AND as_of > $2 AND as_of <= $3 OR channel = 'notification' AND signed_at > $2)
        -- Of a period that is over it must be asked how the subscription stands.
        AND (expires_at IS NULL OR expires_at > $3)
      ORDER BY transaction_id, told_at DESC, environment
      """,
      [
        .textArray(ids), .timestamp((asOf - settings.staleAfter).microseconds), .timestamp(asOf.microseconds),
      ])
    var told: [String: ToldTransaction] = [:]
    for row in rows {
      guard let environment = AppleEnvironment(rawValue: try row.text(1)),
        let channel = EvidenceChannel(rawValue: try row.text(3))
      else { continue }
      told[try row.text(0)] = ToldTransaction(
        environment: environment, bundleId: try row.optionalText(2), channel: channel,
        at: min(Instant(microseconds: try row.timestamp(4)), asOf))
    }
    return told
  }

  /// What of it may stand for Apple's answer about a check: where a critical finding waits for the answer, only what was
  /// told in this run. An undecided refusal is always asked about again.
  package func usable(_ told: [String: ToldTransaction], for row: CheckRow) -> [String: ToldTransaction] {
    if row.isPending { return [:] }
    return row.history.criticalSince == nil ? told : told.filter { $0.value.at >= asOf }
  }
}

/// What filters list of the shop's relations.
struct ListedProofs: Sendable {
  var receiptIds: Set<Identifier>
  var orderIds: Set<Identifier>
}

/// A number that tasks count up together.
final class Counter: Sendable {
  private let count = Mutex(0)

  var value: Int { count.withLock { $0 } }

  func add(_ more: Int) { count.withLock { $0 += more } }
}

/// What Apple said about a transaction, and when.
package struct ToldTransaction: Hashable, Sendable {
  package var environment: AppleEnvironment
  package var bundleId: String?
  package var channel: EvidenceChannel
  package var at: Instant
}

extension Settings {
  /// The configuration's part of the rule of dueness.
  package var duenessPolicy: Dueness.Policy {
    Dueness.Policy(staleAfter: staleAfter, refundWindow: refundWindow, lookback: lookback)
  }
}
