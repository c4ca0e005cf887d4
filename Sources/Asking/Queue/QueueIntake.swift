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
  /// Of changed receipts with a refusal, only `listed` ones are judged again; nil: all.
  func run(from unknownFrom: Instant? = nil, judge: String? = nil, listed: ListedProofs? = nil) async throws -> Int {
    var state = try await AskingState.read(store)
    let definition = try await source.definition()
    let times = [table.policy.staleAfter, table.policy.refundWindow, table.policy.lookback]
      .map { "\($0.microseconds)" }.joined(separator: " ")
    let apps = settings.apps.map { "\($0.bundleId)=\(settings.effectiveChannel(of: $0).rawValue)" }.sorted()
      .joined(separator: " ")
    let haveChannelsChanged = state[.apps] != apps
    var count = 0
    if haveChannelsChanged || state[.times] != times {
      count += try await adopt(haveChannelsChanged: haveChannelsChanged, former: state[.times])
    }
    let hasDefinitionChanged = state[.definition] != definition || haveChannelsChanged
    let isTime = state[instant: .all].map { asOf - $0 >= Self.everything } ?? true
    let extendsHorizon = state[instant: .from].map { horizon < $0 } ?? true
    let isAll = hasDefinitionChanged || isTime || extendsHorizon
    let seen = start(state[instant: .receipts])
    let isUnread = hasDefinitionChanged || state[.allReceipts] == nil
    count += try await takeReceipts(
      from: isUnread ? Self.beginning : min(unknownFrom ?? seen, isAll ? horizon : seen), comparedFrom: seen)
    try await restoreReceipts(
      missingFrom: isAll || unknownFrom != nil ? Self.beginning : asOf - Self.everything,
      haveAppsChanged: haveChannelsChanged)
    count += try await takeOrders(changedFrom: isAll ? nil : start(state[instant: .orders]), createdFrom: horizon)
    if let unknownFrom, !isAll {
      count += try await takeOrders(changedFrom: nil, createdFrom: max(horizon, unknownFrom))
    }
    count += try await rejudgeChangedReceipts(listed?.receiptIds.sorted().map(\.text))
    if let judge = judge.map({ "\($0) \(Version.current)" }), judge != state[.judge] {
      if state[.judge] != nil { count += try await rejudgeRefusals() }
      state[.judge] = judge
    }
    (state[.times], state[.apps], state[.definition], state[.allReceipts]) = (times, apps, definition, "read")
    for key in [AskingState.Key.receipts, .orders] { state[instant: key] = max(state[instant: key] ?? asOf, asOf) }
    if isAll {
      // A changed definition makes earlier reading worthless.
      let (all, from): (Instant?, Instant?) =
        hasDefinitionChanged ? (nil, nil) : (state[instant: .all], state[instant: .from])
      (state[instant: .all], state[instant: .from]) = (max(all ?? asOf, asOf), min(from ?? horizon, horizon))
    }
    try await state.save(store)
    return count
  }

  func unknownCount(_ listed: ListedProofs?) async throws -> Int {
    let isUnread = try await AskingState.read(store)[.allReceipts] == nil
    let from = isUnread ? Self.beginning : horizon
    let count = try await source.receipts(from: from, until: until, asOf: asOf) { receipts in
      let ids = receipts.map(\.subject.id).filter { listed?.receiptIds.contains($0) ?? true }
      return try await unknown(ids, kind: .receipt)
    }
    let bundleIds = settings.serverAPIApps
    if bundleIds.isEmpty { return count }
    let lookups = try await source.orders(
      changedFrom: Self.beginning, createdFrom: horizon, until: until, onlyBundleId: onlyBundleId
    ) { orders in
      let naming = orders.compactMap(\.candidate).filter {
        bundleIds.contains($0.bundleId) && listed?.orderIds.contains($0.orderId) ?? true
      }
      let described = try await source.present(naming.map(\.orderId), in: "order_id")
      let ids = naming.filter { !described.contains($0.orderId) }.map(\.question.id)
      return try await unknown(Set(ids).sorted(), kind: .lookup)
    }
    return count + lookups
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
    try await source.receipts(from: from, until: until, asOf: asOf) { rows in
      let taken = try await store.run { session, _ in
        try await session.transaction { connection in
          let taken = try table.insert(rows, on: connection)
          if taken > 0 { try needs.reconsider(rows.compactMap(\.orderId), on: connection) }
          try takeLaterDates(of: rows, on: connection)
          return taken
        }
      }
      let ids = rows.filter { $0.history.dated >= comparedFrom }.map(\.subject.id)
      let renewed = try await renewReplacedReceipts(ids)
      return taken + renewed
    }
  }

  /// Gives known receipts the date of the shop's row if it is later. Otherwise Apple would not be asked as long about a
  /// receipt that was sent again. Of several rows with one ID the earliest counts.
  private func takeLaterDates(of rows: [CheckRow], on connection: borrowing BlockingConnection) throws {
    let dates = Dictionary(rows.map { ($0.subject.id, $0.history.dated) }, uniquingKeysWith: min)
    let isOne = "c.subject_kind = 'receipt' AND c.subject_id = ANY ($1)"
    let known = try connection.execute(
      "SELECT c.subject_id, c.received_at FROM night_audit.receipt_checks c WHERE \(isOne)",
      [.textArray(dates.keys.map(\.text))])
    let later = try known.reduce(into: [Identifier: Instant]()) { later, row in
      let id = Identifier(try row.text(0))
      if let date = dates[id], Instant(microseconds: try row.timestamp(1)) < date { later[id] = date }
    }
    if later.isEmpty { return }
    try table.change(
      where: isOne, [.textArray(later.keys.map(\.text))], isWithinTransaction: true, on: connection
    ) { row in
      guard let date = later[row.subject.id], row.history.dated < date else { return false }
      row.history.dated = date
      return true
    }
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
      guard let fingerprint = now[row.id]?.fingerprint.map(ProofFingerprint.init) else { continue }
      if fingerprint.isOfSamePayload(as: row.fingerprint) { continue }
      replaced.append(row.id)
      if let userId = row.userId, let payload = fingerprint.payloadText {
        replacedOfUsers.append(ReplacedReceipt(id: row.id, userId: userId, payload: payload))
      }
    }
    if replaced.isEmpty { return 0 }
    try await requireOwnPayloads(replacedOfUsers, among: Set(known.compactMap(\.userId)))
    return try await table.change(receipts: replaced, in: store) { row in
      if row.history.outcome != .verified { return false }
      row.renew(asOf: asOf)
      return true
    }
  }

  /// Wants receipts again that were left out since `missingFrom`, and are in the shop and of a configured app now. A
  /// load was running, a replica was behind, or the order has another app. After a change of the apps, all of them are
  /// read again, because a receipt may belong to another app than its order.
  private func restoreReceipts(missingFrom: Instant, haveAppsChanged: Bool) async throws {
    var last = (at: missingFrom, id: Identifier())
    while true {
      let rows = try await store.execute(
        """
        SELECT c.gone_at, c.subject_id FROM night_audit.receipt_checks c
        WHERE c.gone_at >= $1 AND (c.gone_at, c.subject_id) > ($1, $2)
          AND (c.received_at >= $3 OR c.outcome = 'pending' AND c.reason = 'wrong_bundle')
        ORDER BY c.gone_at, c.subject_id LIMIT \(Self.doubtfulPageSize)
        """, [.timestamp(last.at.microseconds), .text(last.id.text), .timestamp(horizon.microseconds)])
      let gone = try rows.map { (at: Instant(microseconds: try $0.timestamp(0)), id: Identifier(try $0.text(1))) }
      guard let newest = gone.last else { return }
      last = newest
      let back = try await source.statedApps(ofReceipts: gone.map(\.id))
      if back.isEmpty { continue }
      try await table.change(receipts: back.keys.sorted(), in: store) { row in
        if !haveAppsChanged, let stated = back[row.subject.id], lacksApp(row, orderedFrom: stated) { return false }
        row.history.isWanted = true
        row.missingSince = nil
        if row.history.outcome == .pending { row.history.reason = .neverChecked }
        return true
      }
    }
  }

  /// True if a receipt was left out because its app is not configured, and its order states no other app since.
  private func lacksApp(_ row: CheckRow, orderedFrom stated: String?) -> Bool {
    if row.history.outcome == .pending, row.history.reason != .wrongBundle { return false }
    let isConfigured: (String) -> Bool = { bundleId in settings.apps.contains { $0.bundleId == bundleId } }
    if let bundleId = row.bundleId, isConfigured(bundleId) { return false }
    return stated.map { !isConfigured($0) } ?? settings.hasRemovedApp(of: row)
  }

  private func takeOrders(changedFrom: Instant?, createdFrom: Instant) async throws -> Int {
    if settings.serverAPIApps.isEmpty { return 0 }
    return try await source.orders(
      changedFrom: changedFrom ?? Self.beginning, createdFrom: createdFrom, until: until,
      onlyBundleId: onlyBundleId
    ) { orders in
      let questions = orders.map { (orderId: $0.id, question: $0.candidate?.question) }
      return try await store.run { session, _ in
        try await session.transaction { connection in
          try needs.release(questions, on: connection)
          return try needs.decide(orders.compactMap(\.candidate), on: connection)
        }
      }
    }
  }

  // MARK: - Changed settings and rows

  /// Computes due dates by a new policy; `former` has the times of the old one. Offline conclusions are judged again if
  /// a channel has changed, or if the proof has come within the horizon. Those about a removed app stay.
  private func adopt(haveChannelsChanged: Bool, former: String?) async throws -> Int {
    let former = former.flatMap { Dueness.Policy($0) }
    try await table.change(
      where: """
        c.subject_kind = 'lookup' AND CASE WHEN c.is_wanted THEN split_part(c.subject_id, '/', 1) <> ALL ($1)
          ELSE split_part(c.subject_id, '/', 1) = ANY ($1)
            AND EXISTS (SELECT 1 FROM night_audit.lookups l WHERE l.subject_id = c.subject_id) END
        """, [.textArray(settings.serverAPIApps)], in: store
    ) { row in
      row.history.isWanted.toggle()
      return true
    }
    return try await table.change(where: "TRUE", in: store) { row in
      let isNowWithinHorizon = !row.history.isBeyond(table.policy) && former.map(row.history.isBeyond) ?? false
      if haveChannelsChanged || isNowWithinHorizon, row.history.isOffline, row.history.outcome != .unanswered,
        !settings.hasRemovedApp(of: row)
      {
        row.renew(asOf: asOf)
      }
      return row.due != Dueness(of: row.history, policy: table.policy)
    }
  }

  /// Judges refusals again that depend on root certificates or the program version, and IDs unknown to Apple.
  private func rejudgeRefusals() async throws -> Int {
    try await table.change(
      where: """
        c.received_at >= $1 AND (c.outcome = 'not_found' OR c.outcome = 'rejected' AND c.channel = 'offline'
          OR c.reason IN ('no_roots', 'certificate_expired'))
        """, [.timestamp(horizon.microseconds)], in: store
    ) { row in
      row.history.judgeAgain(asOf: asOf)
      return true
    }
  }

  /// Judges refused and doubtful receipts again if the shop has changed their payload, transaction ID or app.
  private func rejudgeChangedReceipts(_ ids: [String]?) async throws -> Int {
    let isListed = ids == nil ? "TRUE" : "c.subject_id = ANY ($3)"
    var count = 0
    var last = Identifier()
    while true {
      let rows = try await store.execute(
        """
        SELECT c.subject_id, c.fingerprint FROM night_audit.receipt_checks c
        WHERE c.subject_kind = 'receipt' AND c.outcome IN ('rejected', 'review', 'not_found')
          AND c.fingerprint IS NOT NULL AND c.received_at >= $1 AND c.subject_id > $2 AND \(isListed)
        ORDER BY c.subject_id LIMIT \(Self.doubtfulPageSize)
        """, [.timestamp(horizon.microseconds), .text(last.text)] + (ids.map { [.textArray($0)] } ?? []))
      let known = try rows.map { (id: Identifier(try $0.text(0)), fingerprint: try $0.text(1)) }
      guard let newest = known.last else { return count }
      last = newest.id
      let now = try await source.describe(known.map(\.id))
      let mended = known.filter { row in
        guard let now = now[row.id]?.fingerprint else { return false }
        return !ProofFingerprint(now).isSame(as: ProofFingerprint(row.fingerprint))
      }.map(\.id)
      if mended.isEmpty { continue }
      count += try await table.change(receipts: mended, in: store) { row in
        var check = CheckInProgress(row: row)
        check.shop.fingerprint = now[row.subject.id]?.fingerprint
        if row.history.impliesAcceptance, check.hasAnsweredPayload {
          // Apple has already accepted this payload; the changed order does not matter.
          row.fingerprint = check.shop.fingerprint
        } else {
          row.renew(asOf: asOf)
        }
        return true
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

/// The settings and the reading of the newest run (`night_audit.asking_state`).
struct AskingState: Sendable {
  enum Key: String {
    /// The times of the dueness policy, and the channels of the apps.
    case times, apps
    case definition, judge
    /// How far receipts and orders were read.
    case receipts, orders
    /// When all rows were read last.
    case all
    /// All rows dated later were read with this definition.
    case from
    /// Set if receipts of any age were read with this definition.
    case allReceipts = "all_receipts"
  }

  private var values: [Key: String] = [:]

  subscript(key: Key) -> String? {
    get { values[key] }
    set { values[key] = newValue }
  }

  subscript(instant key: Key) -> Instant? {
    get { values[key].flatMap { Int64($0) }.map { Instant(microseconds: $0) } }
    set { values[key] = newValue.map { "\($0.microseconds)" } }
  }

  static func read(_ store: OpenSession) async throws -> AskingState {
    var state = AskingState()
    for row in try await store.execute("SELECT key, value FROM night_audit.asking_state") {
      if let key = Key(rawValue: try row.text(0)) { state.values[key] = try row.text(1) }
    }
    return state
  }

  func save(_ store: OpenSession) async throws {
    try await store.execute(
      """
      INSERT INTO night_audit.asking_state (key, value) SELECT * FROM unnest($1::text[], $2::text[])
      ON CONFLICT (key) DO UPDATE SET value = excluded.value
      """, [.textArray(values.keys.map(\.rawValue)), .textArray(Array(values.values))])
  }
}
