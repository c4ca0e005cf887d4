import AppStore
import AuditStore
import Reconciliation
import Run
import Settings

/// Describes leased checks, reads their payloads, and judges them offline.
struct Preparation: Sendable {
  /// The payload bytes in memory at a time. A larger payload is read alone.
  static let budget = 32 << 20

  let queue: CheckQueue
  let judge: OfflineJudge
  let channels: [any AppleChannel]

  func take(_ claim: CheckQueue.Claim = .due) async throws -> [CheckInProgress]? {
    while true {
      let rows = try await queue.claim(claim)
      if rows.isEmpty { return nil }
      // Skips a batch whose receipts have all vanished from the shop.
      let taken = try await describe(rows)
      if !taken.isEmpty { return taken }
    }
  }

  /// Describes checks again that had to wait and are still leased.
  func take(again subjects: [CheckSubject]) async throws -> [CheckInProgress] {
    var taken = try await describe(try await queue.leased(subjects))
    for index in taken.indices { taken[index].isPreliminaryStored = true }
    return taken
  }

  private func describe(_ rows: [CheckRow]) async throws -> [CheckInProgress] {
    let described = try await queue.source.describe(
      rows.filter { $0.subject.kind == .receipt }.map(\.subject.id))
    let orders = try await queue.source.described(
      orders: Set(rows.filter { $0.subject.kind == .lookup }.compactMap(\.orderId)))
    var taken: [CheckInProgress] = []
    var gone: [CheckRow] = []
    for row in rows {
      var check = CheckInProgress(row: row)
      switch row.subject.kind {
      case .lookup:
        check.shop.bundleId = row.subject.lookedUp.bundleId
        let order = row.orderId.flatMap { orders[$0] }
        (check.shop.userId, check.shop.productId) = (order?.userId, order?.productId)
      case .receipt:
        guard let receipt = described[row.subject.id] else {
          gone.append(row)
          continue
        }
        check.shop = receipt
      }
      taken.append(check)
    }
    try await abandon(gone)
    return taken
  }

  /// Ends the questions about receipts that the shop has deleted, and about checks of no configured app.
  private func abandon(_ gone: [CheckRow]) async throws {
    if gone.isEmpty { return }
    let (table, asOf) = (queue.table, queue.asOf)
    let rows = gone.map { row in
      var row = row
      row.history.isWanted = false
      if row.subject.kind == .receipt { row.missingSince = asOf }
      return row
    }
    try await queue.store.withConnection { try table.save(rows, on: $0) }
  }

  /// Reads and judges the payloads of checks. Receipts that the shop has deleted or changed meanwhile are missing, and
  /// so are checks of no configured app, which keep their answers.
  func read(_ next: [CheckInProgress]) async throws -> [CheckInProgress] {
    let described = next.compactMap { check in check.shop.fingerprint.map { (check.subject.id, $0) } }
    let payloads = try await queue.source.payloads(Dictionary(uniqueKeysWithValues: described))
    var read: [CheckInProgress] = []
    var gone: [CheckRow] = []
    for var check in next {
      if check.subject.kind == .receipt {
        // The receipt was deleted or changed since it was described. An unread payload proves nothing.
        guard let payload = payloads[check.subject.id] else {
          gone.append(check.row)
          continue
        }
        check.judge(payload, by: judge)
      }
      guard channel(for: check) != nil else {
        // Tells the audit that no answer is owed.
        if check.row.history.outcome == .pending { check.row.history.reason = .wrongBundle }
        gone.append(check.row)
        continue
      }
      read.append(check)
    }
    try await abandon(gone)
    return read
  }

  /// The channel of the receipt's app, else of the order's app. nil if the order states an app that is not configured,
  /// or the app of the last answer was removed. Another receipt is asked about with the first channel, because Apple's
  /// answer contains the bundle ID.
  func channel(for check: CheckInProgress) -> (any AppleChannel)? {
    let named = check.known.map(\.bundleId) + [check.genuine?.bundleId, check.shop.bundleId]
    for bundleId in named {
      if let channel = channels.first(where: { $0.app.bundleId == bundleId }) { return channel }
    }
    if check.shop.bundleId != nil || queue.settings.hasRemovedApp(of: check.row) { return nil }
    return channels.first
  }
}

extension Settings {
  /// True if the last answer about a proof was given to an app that was removed from the configuration.
  func hasRemovedApp(of row: CheckRow) -> Bool {
    guard row.history.answeredAt != nil, let name = row.app, let bundleId = row.bundleId else { return false }
    return !apps.contains { $0.name == name || $0.bundleId == bundleId }
  }
}
