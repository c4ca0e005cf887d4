import AuditStore
import Foundation
import Postgres
import Reconciliation
import Reporting
import Run
import Streams

/// Collects the changes since the base night. Rows wait in temporary files, so memory does not grow with changes.
final class NightChanges {
  /// nil: there is no night to compare with, and no change.
  let base: BaseNight?
  private let plan: AuditPlan
  private let rows: SpillSorter
  private let closed: SpillSorter
  private var waiting: ChangeRow?
  /// Closed findings with their reasons, in the order of the file.
  private let closedByUrgency: SpillSorter
  private var record = RecordBytes()

  init(base: BaseNight?, plan: AuditPlan, temporaryDirectory: String) {
    (self.base, self.plan) = (base, plan)
    rows = SpillSorter(directory: temporaryDirectory, budget: NightChanges.budget)
    closed = SpillSorter(directory: temporaryDirectory, budget: NightChanges.budget)
    closedByUrgency = SpillSorter(directory: temporaryDirectory, budget: NightChanges.budget)
  }

  private static let budget = 1 << 20

  func add(_ row: ChangeRow) throws {
    guard base != nil else { return }
    if row.change == .closed {
      try put(row, key: row.orderId?.bytes ?? [], in: closed)
    } else {
      try put(row, key: row.sortingKey, in: rows)
    }
  }

  private func put(_ row: ChangeRow, key: [UInt8], in sorter: SpillSorter) throws {
    record.clear()
    row.write(to: &record)
    try sorter.add(key: key, content: record.content)
  }

  private static func next(_ sorter: SpillSorter) throws -> ChangeRow? {
    guard let found = try sorter.next() else { return nil }
    var reader = RecordReader(found.content)
    return try ChangeRow(from: &reader)
  }

  /// Explains closed findings of an order. Called in ascending order of IDs, after all closed findings were added.
  func meet(_ orderId: Identifier, _ order: OrderNights.DecidedOrder) throws {
    while let row = try waiting ?? NightChanges.next(closed) {
      waiting = nil
      if let own = row.orderId, own > orderId {
        waiting = row
        return
      }
      try explain(row, row.orderId == orderId ? order : nil)
    }
  }

  private func explain(_ row: ChangeRow, _ order: OrderNights.DecidedOrder?) throws {
    var row = row
    row.because = because(row, order)
    try put(row, key: row.sortingKey, in: closedByUrgency)
  }

  private func because(_ row: ChangeRow, _ order: OrderNights.DecidedOrder?) -> String {
    if let order { return "outcome changed to \(order.disposition.title): \(order.dispositionReason.words)" }
    if row.orderId != nil {
      return "the order is not audited any more: it is older than the lookback of "
        + "\((plan.asOf - plan.rules.lookbackStart).words), or gone from the shop's tables"
    }
    return "the facts of the finding have changed, or are older than the lookback"
  }

  /// The number of closed findings for which arrived evidence is looked up.
  private static let explained = 2_000

  func explainClosed(on connection: borrowing BlockingConnection) throws {
    guard let base else { return }
    while let row = try waiting ?? NightChanges.next(closed) {
      waiting = nil
      try explain(row, nil)
    }
    var worst: [ChangeRow] = []
    while worst.count < NightChanges.explained, let row = try NightChanges.next(closedByUrgency) { worst.append(row) }
    if worst.isEmpty { return }
    let reasons = try ChangeReasons(
      findingIds: worst.compactMap(\.findingId), condition: "(e.as_of > $1 AND e.as_of <= $2 AND $3::uuid IS NULL)",
      parameters: [.timestamp(base.asOf.microseconds), .timestamp(plan.asOf.microseconds), .text(nil)],
      withClaims: false, on: connection)
    for var row in worst {
      let arrived = row.findingId.map { reasons[$0] } ?? []
      row.because = ([row.because ?? ""] + arrived.suffix(3)).joined(separator: "; ")
      try put(row, key: row.sortingKey, in: rows)
    }
    while let row = try NightChanges.next(closedByUrgency) { try put(row, key: row.sortingKey, in: rows) }
  }

  /// Passes all rows to `body`, in their order, and returns their summary.
  func forEach(_ body: (ChangeRow) throws -> Void) throws -> ChangesSummary {
    var summary = ChangesSummary(since: base?.asOf, isSinceCompleteNight: base?.isComplete ?? true)
    while let row = try NightChanges.next(rows) {
      try body(row)
      summary.add(row)
    }
    return summary
  }
}

extension ChangeRow {
  fileprivate func write(to record: inout RecordBytes) {
    record.put(change.rawValue)
    record.put(findingId)
    record.put(isRefund)
    record.put(kind?.rawValue)
    record.put(severity?.rawValue)
    record.put(orderId)
    record.put(userId)
    record.put(atStake)
    record.put(currency?.code)
    record.put(before)
    record.put(after)
    record.put(because)
    record.put(amount)
    record.put(occurredAt)
  }

  fileprivate init(from record: inout RecordReader) throws(RecordReader.Mismatch) {
    guard let change = Change(rawValue: try record.text()) else { throw RecordReader.Mismatch() }
    let (findingId, isRefund) = (try record.optionalText(), try record.flag())
    self.init(
      change, findingId: findingId, kind: try record.optionalText().flatMap(FindingKind.init),
      severity: try record.optionalText().flatMap(Severity.init), orderId: try record.optionalId(),
      userId: try record.optionalId(), atStake: try record.optionalMoney(), amount: nil,
      currency: try record.optionalText().flatMap { Currency(code: $0) }, before: try record.optionalText(),
      after: try record.optionalText(), because: try record.optionalText(), occurredAt: nil)
    self.isRefund = isRefund
    amount = try record.optionalMoney()
    occurredAt = try record.optionalInstant()
  }
}
