import AppStore
import AuditStore
import Reconciliation
import Run
import Settings

/// Describes leased checks, reads their payloads within a byte budget, and judges them offline.
struct Preparation: Sendable {
  /// The payload bytes in memory at a time. A larger payload is read alone.
  static let budget = 32 << 20
  private static let payloadBatchSize = 250

  struct Taken: Sendable {
    var context: CheckContext
    var payloadBytes: Int
  }

  let queue: CheckQueue
  let judge: OfflineJudge
  let channels: [any AppleChannel]

  func take(_ claim: CheckQueue.Claim = .due) async throws -> [Taken]? {
    while true {
      let rows = try await queue.claim(claim)
      if rows.isEmpty { return nil }
      // Skips a batch whose receipts have all vanished from the shop.
      let taken = try await describe(rows)
      if !taken.isEmpty { return taken }
    }
  }

  /// Describes checks again that had to wait and are still leased.
  func take(again subjects: [CheckSubject]) async throws -> [Taken] {
    try await describe(try await queue.leased(subjects)).map { taken in
      var taken = taken
      taken.context.isPreliminaryStored = true
      return taken
    }
  }

  private func describe(_ rows: [CheckRow]) async throws -> [Taken] {
    let described = try await queue.source.describe(
      rows.filter { $0.subject.kind == .receipt }.map(\.subject.id))
    let orders = try await queue.source.described(
      orders: Set(rows.filter { $0.subject.kind == .lookup }.compactMap(\.orderId?.text)))
    var taken: [Taken] = []
    var gone: [CheckRow] = []
    for row in rows {
      var context = CheckContext(row: row)
      switch row.subject.kind {
      case .lookup:
        context.bundleId = row.subject.lookedUp.bundleId
        let order = row.orderId.flatMap { orders[$0.text] }
        (context.userId, context.productId) = (order?.userId, order?.productId)
        taken.append(Taken(context: context, payloadBytes: 0))
      case .receipt:
        guard let receipt = described[row.subject.id] else {
          gone.append(row)
          continue
        }
        context.orderId = receipt.orderId
        context.bundleId = receipt.bundleId
        context.statedTransactionId = receipt.statedTransactionId
        context.orderCreatedAt = receipt.orderCreatedAt
        (context.userId, context.productId) = (receipt.userId, receipt.productId)
        context.fingerprint = receipt.fingerprint
        taken.append(Taken(context: context, payloadBytes: receipt.payloadBytes))
      }
    }
    try await abandon(gone)
    return taken
  }

  private func abandon(_ gone: [CheckRow]) async throws {
    if gone.isEmpty { return }
    let (table, asOf) = (queue.table, queue.asOf)
    let rows = gone.map { row in
      var row = row
      row.history.isWanted = false
      row.missingSince = asOf
      return row
    }
    try await queue.store.withConnection { try table.save(rows, on: $0) }
  }

  func read(_ taken: inout [Taken], within budget: ByteBudget) async throws -> [(check: JudgedCheck, bytes: Int)] {
    let count = budget.take(taken.prefix(Self.payloadBatchSize).map(\.payloadBytes))
    let next = Array(taken.prefix(count))
    taken.removeFirst(count)
    let described = next.compactMap { taken in
      taken.context.fingerprint.map { (taken.context.row.subject.id, $0) }
    }
    let payloads = try await queue.source.payloads(Dictionary(uniqueKeysWithValues: described))
    var read: [(check: JudgedCheck, bytes: Int)] = []
    var gone: [CheckRow] = []
    for taken in next {
      let subject = taken.context.row.subject
      let matter: DueCheck.QuestionTarget
      switch subject.kind {
      case .receipt:
        // The receipt was deleted or changed since it was described. An unread payload proves nothing.
        guard let payload = payloads[subject.id] else {
          gone.append(taken.context.row)
          budget.releaseBytes(taken.payloadBytes)
          continue
        }
        matter = .receipt(payload: payload)
      case .lookup: matter = .lookup(transactionId: subject.lookedUp.transactionId)
      }
      read.append((JudgedCheck(DueCheck(context: taken.context, matter: matter), judge: judge), taken.payloadBytes))
    }
    try await abandon(gone)
    return read
  }

  /// The channel of the receipt's app, else of the order's app, else the first one. A receipt of none of several apps
  /// is asked about with the first, because Apple's answer contains the bundle ID.
  func channel(for check: JudgedCheck) -> (any AppleChannel)? {
    let named = check.known.map(\.bundleId) + [check.bundleId, check.due.bundleId]
    for bundleId in named {
      if let channel = channels.first(where: { $0.app.bundleId == bundleId }) { return channel }
    }
    return channels.first
  }
}
