import AuditStore
import Postgres
import Reconciliation
import Run
import Settings

/// Adds the shop's new and changed rows to the queue. A run reads new rows only. It reads all rows again once a week,
/// and when the relations' definition or the apps' channels have changed or the horizon has moved back. An older row that
/// an audit meets makes the next run read from its date. Receipts are added whatever their age.
struct QueueIntake: Sendable {
  let store: OpenSession
  let source: ProofSource
  let settings: Settings
  let asOf: Instant
  /// True if the as-of was past when the run began.
  let isPastAudit: Bool
  let table: CheckTable

  /// Rows dated this much before the newest known one are read again, because rows may appear late.
  private static let overlap = Span.days(3)
  private static let everything = Span.days(7)
  private static let doubtfulPageSize = 1_000

  private var horizon: Instant { asOf - settings.duenessPolicy.horizon }
  /// Earlier than every date of the shop: claims are decided over all orders, whatever their age.
  private static let beginning = Instant(seconds: -62_135_596_800)
  private var onlyBundleId: String? { settings.apps.count == 1 ? settings.apps[0].bundleId : nil }

  /// Rows dated after a past as-of did not exist then. Otherwise future dates are read, because a clock may be ahead.
  private var until: Instant { isPastAudit ? asOf : Instant(seconds: 253_402_300_799) }

  var needs: PendingLookups { PendingLookups(table: table, bundleIds: settings.serverAPIApps, asOf: asOf) }

  /// Updates the queue. Returns how many checks are new, moved or judged again. `unknownFrom` is the date of the oldest
  /// row that an audit met and no run had added.
  func run(from unknownFrom: Instant? = nil, judge: String? = nil) async throws -> Int {
    var state = try await AskingState.read(store)
    let definition = try await source.definition()
    let policy = PolicyText(settings)
    var count = 0
    if state.policy != policy {
      count += try await adopt(haveChannelsChanged: state.policy?.apps != policy.apps, former: state.policy?.times)
    }
    let hasDefinitionChanged = state.definition != definition || state.policy?.apps != policy.apps
    let isTime = state.readAllAt.map { asOf - $0 >= Self.everything } ?? true
    let extendsHorizon = state.readFrom.map { horizon < $0 } ?? true
    let isAll = hasDefinitionChanged || isTime || extendsHorizon
    let seen = start(state.receiptsUntil)
    let isUnread = hasDefinitionChanged || !state.hasReadAllReceipts
    count += try await takeReceipts(
      from: isUnread ? Self.beginning : min(unknownFrom ?? seen, isAll ? horizon : seen), comparedFrom: seen)
    try await restoreVanishedReceipts(
      missingFrom: isAll || unknownFrom != nil ? Self.beginning : asOf - Self.everything)
    count += try await takeOrders(changedFrom: isAll ? nil : start(state.ordersUntil), createdFrom: horizon)
    if let unknownFrom, !isAll {
      count += try await takeOrders(changedFrom: nil, createdFrom: max(horizon, unknownFrom))
    }
    count += try await rejudgeChangedReceipts()
    if let judge = judge.map({ "\($0) \(Version.current)" }), judge != state.judge {
      if state.judge != nil { count += try await rejudgeRefusals() }
      state.judge = judge
    }
    state.policy = policy
    state.definition = definition
    state.hasReadAllReceipts = true
    state.receiptsUntil = max(state.receiptsUntil ?? asOf, asOf)
    state.ordersUntil = max(state.ordersUntil ?? asOf, asOf)
    if hasDefinitionChanged {
      (state.readAllAt, state.readFrom) = (asOf, horizon)
    } else if isAll {
      (state.readAllAt, state.readFrom) = (max(state.readAllAt ?? asOf, asOf), min(state.readFrom ?? horizon, horizon))
    }
    try await state.save(store)
    return count
  }

  func unknownCount(_ listed: ListedProofs?) async throws -> Int {
    let count = Counter()
    let isUnread = !(try await AskingState.read(store).hasReadAllReceipts)
    try await source.receipts(from: isUnread ? Self.beginning : horizon, until: until) { receipts in
      let ids = receipts.map(\.id).filter { listed?.receiptIds.contains($0) ?? true }
      count.add(try await unknown(ids, kind: .receipt))
    }
    let bundleIds = settings.serverAPIApps
    if bundleIds.isEmpty { return count.value }
    try await source.orders(
      changedFrom: Self.beginning, createdFrom: horizon, until: until, onlyBundleId: onlyBundleId
    ) { orders in
      let naming = orders.compactMap { PendingLookups.Candidate($0) }.filter {
        bundleIds.contains($0.bundleId) && listed?.orderIds.contains($0.orderId) ?? true
      }
      let described = try await source.ordersWithReceipts(naming.map(\.orderId))
      let ids = naming.filter { !described.contains($0.orderId) }.map(\.question.id)
      count.add(try await unknown(Set(ids).sorted(), kind: .lookup))
    }
    return count.value
  }

  private func unknown(_ ids: [Identifier], kind: CheckSubject.Kind) async throws -> Int {
    let known = try await store.execute(
      "SELECT count(*) FROM night_audit.receipt_checks WHERE subject_kind = $1 AND subject_id = ANY ($2)",
      [.text(kind.rawValue), .textArray(ids.map(\.text))]
    ).single().int64(0)
    return ids.count - Int(known)
  }

  private func start(_ seen: Instant?) -> Instant { min(seen ?? horizon, asOf) - Self.overlap }

  // MARK: - New rows

  /// - Parameter comparedFrom: older verified receipts are compared with the shop's payload only once they are stale.
  private func takeReceipts(from: Instant, comparedFrom: Instant) async throws -> Int {
    let count = Counter()
    try await source.receipts(from: from, until: until) { receipts in
      let rows = receipts.map { receipt in
        var history = CheckHistory(dated: receipt.receivedAt, knownSince: asOf)
        history.isUrgent = receipt.isUrgent
        let row = CheckRow(subject: CheckSubject(kind: .receipt, id: receipt.id), history: history)
        return (row: row, orderId: receipt.orderId)
      }
      let taken = try await store.run { session, _ in
        try await session.transaction { connection in
          let taken = try table.insert(rows, on: connection)
          if taken > 0 { try needs.reconsider(rows.compactMap(\.orderId), on: connection) }
          return taken
        }
      }
      count.add(taken)
      count.add(try await renewReplacedReceipts(receipts.filter { $0.receivedAt >= comparedFrom }.map(\.id)))
    }
    return count.value
  }

  private func renewReplacedReceipts(_ ids: [Identifier]) async throws -> Int {
    if ids.isEmpty { return 0 }
    let rows = try await store.execute(
      """
      SELECT c.subject_id, c.fingerprint, c.user_id FROM night_audit.receipt_checks c
      WHERE c.subject_kind = 'receipt' AND c.subject_id = ANY ($1) AND c.outcome = 'verified' AND c.fingerprint IS NOT NULL
      """, [.textArray(ids.map(\.text))])
    let known = try rows.map { row in
      (
        id: Identifier(try row.text(0)), fingerprint: ProofFingerprint(try row.text(1)),
        userId: try row.optionalText(2).map { Identifier($0) }
      )
    }
    let now = try await source.describe(known.map(\.id))
    var replaced: [Identifier] = []
    var replacedOfUsers: [ReplacedReceipt] = []
    for row in known {
      guard let described = now[row.id] else { continue }
      let fingerprint = ProofFingerprint(described.fingerprint)
      if fingerprint.isOfSamePayload(as: row.fingerprint) { continue }
      replaced.append(row.id)
      if let userId = row.userId, let payload = fingerprint.payloadText {
        replacedOfUsers.append(ReplacedReceipt(id: row.id, userId: userId, payload: payload))
      }
    }
    if replaced.isEmpty { return 0 }
    try await requireOwnPayloads(replacedOfUsers, among: Set(known.compactMap(\.userId)))
    let (table, asOf, renewed) = (table, asOf, replaced)
    return try await store.withConnection { connection in
      try table.change(
        where: "c.subject_kind = 'receipt' AND c.subject_id = ANY ($1) AND c.outcome = 'verified'",
        [.textArray(renewed.map(\.text))], on: connection
      ) { row in
        row.renew(asOf: asOf)
        return true
      }
    }
  }

  /// Wants receipts again that vanished since `missingFrom` and are back: a load was running, or a replica was behind.
  private func restoreVanishedReceipts(missingFrom: Instant) async throws {
    var last = (at: missingFrom, id: Identifier())
    while true {
      let rows = try await store.execute(
        """
        SELECT c.gone_at, c.subject_id FROM night_audit.receipt_checks c
        WHERE c.gone_at >= $1 AND (c.gone_at, c.subject_id) > ($1, $2) AND c.received_at >= $3
        ORDER BY c.gone_at, c.subject_id LIMIT \(Self.doubtfulPageSize)
        """, [.timestamp(last.at.microseconds), .text(last.id.text), .timestamp(horizon.microseconds)])
      let gone = try rows.map { (at: Instant(microseconds: try $0.timestamp(0)), id: Identifier(try $0.text(1))) }
      guard let newest = gone.last else { return }
      last = newest
      let back = try await source.present(gone.map(\.id))
      if back.isEmpty { continue }
      let table = table
      try await store.withConnection { connection in
        try table.change(
          where: "c.subject_kind = 'receipt' AND c.subject_id = ANY ($1)", [.textArray(back.map(\.text))],
          on: connection
        ) { row in
          row.history.isWanted = true
          row.missingSince = nil
          return true
        }
      }
    }
  }

  private func takeOrders(changedFrom: Instant?, createdFrom: Instant) async throws -> Int {
    if settings.serverAPIApps.isEmpty { return 0 }
    let count = Counter()
    try await source.orders(
      changedFrom: changedFrom ?? Self.beginning, createdFrom: createdFrom, until: until,
      onlyBundleId: onlyBundleId
    ) { orders in
      let candidates = orders.map { PendingLookups.Candidate($0) }
      let questions = zip(orders, candidates).map { (orderId: $0.id, question: $1?.question) }
      count.add(
        try await store.run { session, _ in
          try await session.transaction { connection in
            try needs.release(questions, on: connection)
            return try needs.decide(candidates.compactMap(\.self), on: connection)
          }
        })
    }
    return count.value
  }

  // MARK: - Changed settings and rows

  /// Computes due dates by a new policy; `former` has the times of the old one. Offline conclusions are judged again if
  /// a channel has changed, or if the proof has come within the horizon.
  private func adopt(haveChannelsChanged: Bool, former: String?) async throws -> Int {
    let former = former.flatMap { Dueness.Policy($0) }
    let (table, asOf, bundleIds) = (table, asOf, settings.serverAPIApps)
    return try await store.withConnection { connection in
      try table.change(
        where: "c.subject_kind = 'lookup' AND c.is_wanted AND split_part(c.subject_id, '/', 1) <> ALL ($1)",
        [.textArray(bundleIds)], on: connection
      ) { row in
        row.history.isWanted = false
        return true
      }
      try table.change(
        where: """
          c.subject_kind = 'lookup' AND NOT c.is_wanted AND split_part(c.subject_id, '/', 1) = ANY ($1)
            AND EXISTS (SELECT 1 FROM night_audit.lookups l WHERE l.subject_id = c.subject_id)
          """, [.textArray(bundleIds)], on: connection
      ) { row in
        row.history.isWanted = true
        return true
      }
      return try table.change(where: "TRUE", on: connection) { row in
        let isNowWithinHorizon = !row.history.isBeyond(table.policy) && former.map(row.history.isBeyond) ?? false
        if haveChannelsChanged || isNowWithinHorizon, row.history.isOffline, row.history.outcome != .unanswered {
          row.renew(asOf: asOf)
        }
        return row.due != Dueness(of: row.history, policy: table.policy)
      }
    }
  }

  /// Judges refusals again that depend on root certificates or the program version, and IDs unknown to Apple.
  private func rejudgeRefusals() async throws -> Int {
    let (table, asOf) = (table, asOf)
    return try await store.withConnection { connection in
      try table.change(
        where: """
          c.received_at >= $1 AND (c.outcome = 'not_found' OR c.outcome = 'rejected' AND c.channel = 'offline'
            OR c.reason IN ('no_roots', 'certificate_expired'))
          """, [.timestamp(horizon.microseconds)], on: connection
      ) { row in
        row.history.judgeAgain(asOf: asOf)
        return true
      }
    }
  }

  /// Judges refused and doubtful receipts again if the shop has changed their payload, transaction ID or app.
  private func rejudgeChangedReceipts() async throws -> Int {
    var count = 0
    var last = Identifier()
    while true {
      let rows = try await store.execute(
        """
        SELECT c.subject_id, c.fingerprint FROM night_audit.receipt_checks c
        WHERE c.subject_kind = 'receipt' AND c.outcome IN ('rejected', 'review', 'not_found')
          AND c.fingerprint IS NOT NULL AND c.received_at >= $1 AND c.subject_id > $2
        ORDER BY c.subject_id LIMIT \(Self.doubtfulPageSize)
        """, [.timestamp(horizon.microseconds), .text(last.text)])
      let known = try rows.map { (id: Identifier(try $0.text(0)), fingerprint: try $0.text(1)) }
      guard let newest = known.last else { return count }
      last = newest.id
      let now = try await source.describe(known.map(\.id))
      let mended = known.filter { row in
        guard let now = now[row.id] else { return false }
        return !ProofFingerprint(now.fingerprint).isSame(as: ProofFingerprint(row.fingerprint))
      }.map(\.id)
      if mended.isEmpty { continue }
      let (table, asOf) = (table, asOf)
      count += try await store.withConnection { connection in
        try table.change(
          where: "c.subject_kind = 'receipt' AND c.subject_id = ANY ($1)", [.textArray(mended.map(\.text))],
          on: connection
        ) { row in
          var context = CheckContext(row: row)
          context.fingerprint = now[row.subject.id]?.fingerprint
          if row.history.impliesAcceptance, context.hasAnsweredPayload {
            // Apple has already accepted this payload; the changed order does not matter.
            row.fingerprint = context.fingerprint
          } else {
            row.renew(asOf: asOf)
          }
          return true
        }
      }
    }
  }
}

extension CheckRow {
  /// Forgets the conclusion, but keeps the refusal and the run in which it counts.
  fileprivate mutating func renew(asOf: Instant) {
    let since = isPending ? history.outcomeSince : nil
    if let refused { storedRefusal = .decided(refused) }
    history.renew(asOf: asOf)
    history.outcomeSince = since
  }
}

/// The settings that due dates depend on, as texts to compare.
struct PolicyText: Hashable, Sendable {
  var times: String
  var apps: String

  init(_ settings: Settings) {
    let policy = settings.duenessPolicy
    times = [policy.staleAfter, policy.refundWindow, policy.lookback].map { "\($0.microseconds)" }.joined(
      separator: " ")
    apps = settings.apps.map { "\($0.bundleId)=\(settings.effectiveChannel(of: $0).rawValue)" }.sorted()
      .joined(separator: " ")
  }

  init(times: String, apps: String) {
    self.times = times
    self.apps = apps
  }
}

struct AskingState: Sendable {
  var policy: PolicyText?
  var definition: String?
  var judge: String?
  var receiptsUntil: Instant?
  var ordersUntil: Instant?
  var readAllAt: Instant?
  /// All rows dated later were read with this definition.
  var readFrom: Instant?
  /// True if receipts of any age were read with this definition.
  var hasReadAllReceipts = false

  static func read(_ store: OpenSession) async throws -> AskingState {
    var values: [String: String] = [:]
    for row in try await store.execute("SELECT key, value FROM night_audit.asking_state") {
      values[try row.text(0)] = try row.text(1)
    }
    func instant(_ key: String) -> Instant? { values[key].flatMap(Int64.init).map { Instant(microseconds: $0) } }
    var state = AskingState()
    if let times = values["times"], let apps = values["apps"] { state.policy = PolicyText(times: times, apps: apps) }
    state.definition = values["definition"]
    state.judge = values["judge"]
    state.receiptsUntil = instant("receipts")
    state.ordersUntil = instant("orders")
    state.readAllAt = instant("all")
    state.readFrom = instant("from")
    state.hasReadAllReceipts = values["all_receipts"] != nil
    return state
  }

  func save(_ store: OpenSession) async throws {
    let values: [(String, String?)] = [
      ("times", policy?.times), ("apps", policy?.apps), ("definition", definition),
      ("judge", judge),
      ("receipts", receiptsUntil.map { "\($0.microseconds)" }), ("orders", ordersUntil.map { "\($0.microseconds)" }),
      ("all", readAllAt.map { "\($0.microseconds)" }), ("from", readFrom.map { "\($0.microseconds)" }),
      ("all_receipts", hasReadAllReceipts ? "read" : nil),
    ]
    let known = values.filter { $0.1 != nil }
    try await store.execute(
      """
      INSERT INTO night_audit.asking_state (key, value) SELECT * FROM unnest($1::text[], $2::text[])
      ON CONFLICT (key) DO UPDATE SET value = excluded.value
      """, [.textArray(known.map(\.0)), .textArray(known.map(\.1))])
  }
}
