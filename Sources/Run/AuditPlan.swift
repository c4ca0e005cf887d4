import Reconciliation

package struct AuditPlan: Sendable {
  package var rules: Rules
  package var period: Period
  package var selection: Selection
  /// The age from which an answer is stale, within the refund window.
  package var staleAfter: Span
  package var refundWindow: Span
  /// True if the as-of was past when the run began, so that later rows are not read.
  package var isPastAudit = false
  /// False if no snapshot spans the shop's store. The report then says why it describes an earlier instant.
  package var hasOneSnapshot = true

  /// The number of parts read concurrently; nil: chosen by size. The output does not depend on it.
  package var readers: Int?

  package var parts: String?

  /// `--dry-run`: nothing is written, but the run reports whether the night would be held.
  package var isRehearsal = false

  package var threshold: FindingsThreshold?

  /// Faults of the shop's mapping that hold the night, with their remedies; only of a first night.
  package var mappingProblems: [String] = []

  package init(rules: Rules, period: Period, selection: Selection, staleAfter: Span, refundWindow: Span) {
    (self.rules, self.period, self.selection) = (rules, period, selection)
    (self.staleAfter, self.refundWindow) = (staleAfter, refundWindow)
  }

  package var asOf: Instant { rules.asOf }
  /// True for a report of one day without filters: only such a report describes a night, recorded or not.
  package var isOfNight: Bool { period.since == period.until && !selection.isNarrowing }
  package var judgedFrom: Instant { min(rules.lookbackStart, period.start) }

  package func isOutstanding(_ lookup: ProofState, of order: Order) -> Bool {
    // An app without the App Store Server API cannot look up IDs, so no answer is outstanding.
    guard rules.appsWithLookup.contains(rules.bundleId(of: order)) else { return false }
    return isOutstanding(lookup, from: order.createdAt)
  }

  package func judges(_ createdAt: Instant) -> Bool { createdAt >= rules.lookbackStart || period.contains(createdAt) }

  /// True if findings on an order of this time are stored. No later night would update those before the lookback. A
  /// filtered run lists all findings and stores none.
  package func keepsFindings(_ createdAt: Instant) -> Bool { createdAt >= rules.lookbackStart || selection.isNarrowing }

  /// The app of orders without a bundle ID; nil if there are several apps.
  package var onlyBundleId: String? { rules.bundleIds.count == 1 ? rules.bundleIds[0] : nil }
  package func bundleId(of row: OrderRow) -> String? { row.bundleId ?? onlyBundleId }

  package func lists(_ row: OrderRow) -> Bool {
    !selection.isNarrowing
      || selection.includes(
        orderId: row.orderId, userId: row.userId, productId: row.productId, bundleId: bundleId(of: row))
  }

  package func lists(_ order: BorrowedOrder) -> Bool {
    !selection.isNarrowing
      || selection.includes(
        orderId: order.orderId.id, userId: order.userId.id, productId: order.productId.id,
        bundleId: order.bundleId?.text ?? onlyBundleId)
  }

  /// True if Apple's answer about a proof of this time is outstanding, within the lookback.
  package func isOutstanding(_ state: ProofState, from time: Instant) -> Bool {
    time >= rules.lookbackStart && isAskedAbout(state, from: time)
      && state.isOwed(asOf: asOf, stuckAfter: rules.stuckAfter)
  }

  /// True if no run has queued a receipt that a run of this as-of would check, whatever its age.
  package func isUnknown(_ receipt: Receipt) -> Bool {
    receipt.state.isUnknown && isAskedAbout(receipt.state, from: receipt.receivedAt)
  }

  // A future date excludes no receipt from tonight's run; one that no run has queued arrived after the questions began.
  private func isAskedAbout(_ state: ProofState, from time: Instant) -> Bool {
    time <= asOf || !isPastAudit && state.due != nil
  }
}
