import Reconciliation

/// The parameters of one audit.
package struct AuditPlan: Sendable {
  package var rules: Rules
  package var period: Period
  package var selection: Selection
  /// The age from which an answer is stale, within the refund window.
  package var staleAfter: Span
  package var refundWindow: Span
  /// True if the as-of was past when the run began, so that later rows are not read.
  package var isOfThePast = false

  /// The number of parts read concurrently; nil: chosen by size. The output does not depend on it.
  package var readers: Int?

  /// The folder with parts audited elsewhere; nil: everything is read here.
  package var parts: String?

  /// `--dry-run`: nothing is written, but the run reports whether the night would be held.
  package var isRehearsal = false

  /// The findings that end a complete audit with status 2; nil: none.
  package var threshold: FindingsThreshold?

  package init(rules: Rules, period: Period, selection: Selection, staleAfter: Span, refundWindow: Span) {
    self.rules = rules
    self.period = period
    self.selection = selection
    self.staleAfter = staleAfter
    self.refundWindow = refundWindow
  }

  package var asOf: Instant { rules.asOf }

  /// The first instant whose orders and receipts are listed.
  package var judgedFrom: Instant { min(rules.lookbackStart, period.start) }

  /// True if Apple's answer about the transaction ID of an order is outstanding.
  package func isOutstanding(_ lookup: ProofState, of order: Order) -> Bool {
    // An app without the App Store Server API cannot look up IDs, so no answer is outstanding.
    guard rules.lookedUpApps.contains(rules.bundleId(of: order)) else { return false }
    return isOutstanding(lookup, from: order.createdAt)
  }

  /// True if an order of this time is audited: within the lookback or the period.
  package func judges(_ createdAt: Instant) -> Bool {
    createdAt >= rules.lookbackStart || period.contains(createdAt)
  }

  /// True if findings on an order of this time are stored: within the lookback. Older orders are listed and totalled by
  /// a report of their period, but no later night would update their findings. A filtered run lists all findings and
  /// stores none.
  package func keepsFindings(_ createdAt: Instant) -> Bool {
    createdAt >= rules.lookbackStart || selection.isNarrowing
  }

  /// The app of orders without a bundle ID; nil if there are several apps.
  package var onlyBundleId: String? { rules.bundleIds.count == 1 ? rules.bundleIds[0] : nil }

  /// The order's bundle ID, or that of the only app.
  package func bundleId(of row: OrderRow) -> String? { row.bundleId ?? onlyBundleId }

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

  /// True if Apple's answer about a proof of this time is outstanding. Proofs older than the lookback are not waited
  /// for.
  package func isOutstanding(_ state: ProofState, from time: Instant) -> Bool {
    time >= rules.lookbackStart && isAskedAbout(state, from: time)
      && state.isOwed(asOf: asOf, stuckAfter: rules.stuckAfter)
  }

  /// True if no run has queued a receipt that a run of this as-of would check, whatever its age.
  package func isUnknown(_ receipt: Receipt) -> Bool {
    receipt.state.isUnknown && isAskedAbout(receipt.state, from: receipt.receivedAt)
  }

  // A future date does not exclude a receipt from tonight's run. A receipt with such a date that no run has queued
  // arrived after the run began to ask.
  private func isAskedAbout(_ state: ProofState, from time: Instant) -> Bool {
    time <= asOf || !isOfThePast && state.due != nil
  }
}
