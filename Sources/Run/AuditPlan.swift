import Reconciliation

/// What one reading of the facts is made for.
package struct AuditPlan: Sendable {
  package var rules: Rules
  package var period: Period
  package var selection: Selection
  /// Age at which an answer is stale, while a refund is still likely.
  package var staleAfter: Span
  package var refundWindow: Span
  /// Whether the as-of was past already when the run began: rows that came later are not read.
  package var isOfThePast = false

  /// How many parts are read side by side; nil: as many as are worth it. Nothing that is written depends on it.
  package var readers: Int?

  /// The folder with what was audited elsewhere; nil: everything is read here.
  package var parts: String?

  /// `--dry-run`: whether the night would be held is asked, although nothing is written.
  package var isRehearsal = false

  /// What makes a complete audit end with 2; nil: nothing.
  package var threshold: FindingsThreshold?

  package init(rules: Rules, period: Period, selection: Selection, staleAfter: Span, refundWindow: Span) {
    self.rules = rules
    self.period = period
    self.selection = selection
    self.staleAfter = staleAfter
    self.refundWindow = refundWindow
  }

  package var asOf: Instant { rules.asOf }

  /// Orders and receipts from here on are listed.
  package var judgedFrom: Instant { min(rules.lookbackStart, period.start) }

  /// Whether Apple still owes an answer about the id that an order names.
  package func isOutstanding(_ lookup: ProofState, of order: Order) -> Bool {
    // An app that cannot ask about ids is owed no answer.
    guard rules.lookedUpApps.contains(rules.bundleId(of: order)) else { return false }
    return isOutstanding(lookup, from: order.createdAt)
  }

  /// Whether an order of this time is judged: in the lookback, or in the period.
  package func judges(_ createdAt: Instant) -> Bool {
    createdAt >= rules.lookbackStart || period.contains(createdAt)
  }

  /// Whether the findings on an order of this time are kept: in the lookback. What is older is listed and totalled by a
  /// report of its period, and no night would meet its findings again. A narrowed run is asked about just that, and what it
  /// finds is stored nowhere.
  package func keepsFindings(_ createdAt: Instant) -> Bool {
    createdAt >= rules.lookbackStart || selection.isNarrowing
  }

  /// The app of orders that name none, where there is just one.
  package var onlyBundleId: String? { rules.bundleIds.count == 1 ? rules.bundleIds[0] : nil }

  /// The bundle id of an order row, of one that names none too.
  package func bundleId(of row: OrderRow) -> String? { row.bundleId ?? onlyBundleId }

  /// Whether an order row is listed.
  package func lists(_ row: OrderRow) -> Bool {
    !selection.isNarrowing
      || selection.includes(
        orderId: row.orderId, userId: row.userId, productId: row.productId, bundleId: bundleId(of: row))
  }

  package func lists(_ order: PlainOrder) -> Bool {
    !selection.isNarrowing
      || selection.includes(
        orderId: order.orderId.id, userId: order.userId.id, productId: order.productId.id,
        bundleId: order.bundleId?.text ?? onlyBundleId)
  }

  /// Whether Apple still owes an answer about a proof of that time; of what is older than the lookback none is awaited.
  package func isOutstanding(_ state: ProofState, from time: Instant) -> Bool {
    time >= rules.lookbackStart && isAskedAbout(state, from: time)
      && state.isOwed(asOf: asOf, stuckAfter: rules.stuckAfter)
  }

  /// Whether no run has taken a receipt in that one of this as-of would, whatever its age.
  package func isUnknown(_ receipt: Receipt) -> Bool {
    receipt.state.isUnknown && isAskedAbout(receipt.state, from: receipt.receivedAt)
  }

  /// Whether a run of this as-of asks about a proof of that time. A date that lies ahead keeps nothing from being asked about
  /// tonight; what bears one and was taken in by no run came after the asking had begun.
  private func isAskedAbout(_ state: ProofState, from time: Instant) -> Bool {
    time <= asOf || !isOfThePast && state.due != nil
  }
}
