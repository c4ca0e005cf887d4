extension FindingRules {
  func considerDisposition() {
    switch disposition {
    case .paidNotDelivered:
      let word =
        comparable?.refundRequest?.reason == "FULFILLMENT_ISSUE"
        ? " The customer reported this to Apple and asked for a refund (FULFILLMENT_ISSUE)." : ""
      add(
        .paidNotDelivered,
        atStake: order.amount.share(min(Int64(order.quantity), paidUnits), of: Int64(order.quantity)),
        "Apple confirms the payment, but the user does not have the goods.\(word)")
    case .partlyDelivered:
      let units = facts.deliveredUnits
      let paid = min(Int64(order.quantity), paidUnits)
      add(
        .partlyDelivered, atStake: order.amount.share(max(0, paid - units), of: Int64(order.quantity)),
        paid == Int64(order.quantity) - facts.refundedUnits
          ? "Paid for \(paid), delivered \(units)." : "Ordered \(order.quantity), delivered \(units).")
    case .deliveredNotPaid:
      let why = verdict?.reason.map { facts.explanation(of: $0) } ?? ""
      let mark = isOfAppReview ? " App Review bought at that time: this is its purchase and needs no action." : ""
      let goods: Reason =
        if let strangers {
          "This order is not paid, and its goods are with \(strangers)"
        } else {
          "The user has goods of an order that is not paid"
        }
      add(.deliveredNotPaid, atStake: order.amount, "\(goods): \(why).\(mark)")
      if isSandboxPurchase {
        add(
          .sandboxDelivered, atStake: order.amount,
          "Goods were delivered for a sandbox purchase by a user who is not on the list of test users.\(mark)")
      }
    case .refundedStillDelivered:
      let goods: Reason =
        if let strangers { "the goods are still with \(strangers)" } else { "the user still has the goods" }
      add(.refundedStillDelivered, atStake: order.amount, "Apple refunded the purchase and \(goods).")
    case .settled, .void, .refunded, .unconfirmed, .inFlight, .sandbox, .badRow: break
    }
    declineOthers(
      [.paidNotDelivered, .partlyDelivered, .deliveredNotPaid, .refundedStillDelivered],
      "The outcome is “\(disposition.title)”.")
    declineOthers([.sandboxDelivered], "The outcome is “\(disposition.title)”, and \(payment).")
    if case .paid = verdict, order.status == .failed || order.status == .cancelled {
      addForStatus(
        .cancelledButPaid, atStake: order.amount, unless: unread,
        "Apple confirms the payment, but the shop says \(order.status.rawValue).")
    } else {
      decline([.cancelledButPaid], "The shop says \(order.status.rawValue), and \(payment).")
    }
  }

  private var isSandboxPurchase: Bool {
    verdict?.reason == .sandbox
      || verdict?.reason == .duplicate && !rules.testUsers.contains(order.userId)
        && Set(facts.claims.lost.map { $0.transaction.environment }) == [.sandbox]
  }

  /// True if App Review bought it. Its purchases are marked and raise no alarm.
  var isOfAppReview: Bool {
    guard disposition == .deliveredNotPaid, isSandboxPurchase else { return false }
    return rules.isAppReview(
      at: (verdict?.transaction ?? facts.claims.lost.first?.transaction)?.saleDate ?? order.createdAt)
  }

  /// Adds a finding about the shop's status, unless the row may have differed at the as-of.
  private func addForStatus(
    _ kind: FindingKind, atStake: Money? = nil, unless open: String? = nil, _ reason: Reason
  ) {
    if let open {
      decline([kind], open)
    } else if order.isChangedAfterAsOf {
      decline([kind], "The shop's row was changed after the as-of, so its status may have been another one then.")
    } else {
      add(kind, atStake: atStake, reason)
    }
  }

  func considerStatus() {
    let status = order.status
    if verdict == .nothingToPay { return decline([.statusMismatch], "Nothing was to be paid, whatever the shop says.") }
    switch disposition {
    case .settled where status == .pending:
      addForStatus(.statusMismatch, unless: unread, "Paid and delivered, but the shop still says pending.")
    case .void where status == .verified || status == .refunded:
      addForStatus(.statusMismatch, "\(voidDescription), but the shop says \(status.rawValue).")
    case .refunded where status == .pending:
      let goods = facts.validDeliveries.isEmpty ? ", and no user has goods" : " and taken back"
      addForStatus(.statusMismatch, unless: unread, "Refunded\(goods), but the shop still says pending.")
    case .settled, .void, .refunded:
      decline([.statusMismatch], "The shop says \(status.rawValue), which does not contradict what happened.")
    case .paidNotDelivered, .partlyDelivered, .deliveredNotPaid, .refundedStillDelivered, .inFlight, .unconfirmed,
      .sandbox, .badRow:
      decline([.statusMismatch], "The outcome is “\(disposition.title)”, and no status would agree with that.")
    }
  }

  /// A void order as the beginning of a sentence. Family Sharing and restores are void with goods, too.
  private var voidDescription: String {
    if !facts.unrevokedDeliveries.isEmpty { return "Not paid (\(verdict?.reason?.explanation ?? "it is no sale"))" }
    return facts.deliveries.isEmpty ? "Neither paid nor delivered" : "Not paid, and no user has goods"
  }

  func considerStuck() {
    guard disposition == .unconfirmed, let reason = verdict?.reason else {
      decline([.stuckUnconfirmed], "The outcome is “\(disposition.title)”.")
      return
    }
    guard rules.asOf - order.createdAt > rules.stuckAfter else {
      decline([.stuckUnconfirmed], "Unconfirmed, but not yet for longer than \(rules.stuckAfter.words).")
      return
    }
    let attempts = facts.validReceipts.map { Int64($0.state.attempts) }.reduce(Int64(facts.lookup?.attempts ?? 0), +)
    let why =
      reason == .neverChecked && facts.isLookupImpossible(rules: rules)
      ? "the app's channel cannot look up a transaction ID; have the client send the receipt, or configure a Server API key"
      : reason.explanation
    add(.stuckUnconfirmed, atStake: order.amount, .unconfirmed(since: order.createdAt, attempts: attempts, why))
  }

  func considerUnits() {
    let unrevoked = facts.unrevokedUnits
    if unrevoked > Int64(order.quantity) {
      add(
        .deliveredTwice,
        atStake: order.amount.share(
          max(0, unrevoked - max(Int64(order.quantity), paidUnits)), of: Int64(order.quantity)),
        delivery: facts.unrevokedDeliveries.first { !isWithUser($0) },
        "Ordered \(order.quantity), delivered \(unrevoked).")
      if case .unconfirmed = verdict {
        requireReview("How many units were paid for is not known yet.") { $0 == .takeBack }
      }
    } else {
      decline([.deliveredTwice], "Ordered \(order.quantity), delivered and not taken back \(unrevoked).")
    }
  }

  /// The units that are paid for and not refunded in full.
  private var paidUnits: Int64 {
    guard openOwnershipReason == nil, let quantity = facts.paidQuantity else {
      return Int64(order.quantity) - facts.refundedUnits
    }
    return quantity - facts.refundedUnits
  }

  // MARK: - Claims

  func considerClaims() {
    let claims = facts.claims
    // Without this verdict the order may have another transaction to claim.
    if case .unpaid(.duplicate, _) = verdict, let lost = claims.lost.first,
      order.status == .verified || !facts.unrevokedDeliveries.isEmpty
    {
      let isSamePerson = rules.people.isSame(lost.ownerUserId, order.userId)
      let whose: Reason = isSamePerson ? "the same user" : "another user (\(user: lost.ownerUserId))"
      let payment = lost.transaction.shownId(stated: order.transactionId)
      add(
        .duplicateClaim, atStake: order.amount, on: lost.transaction, severity: isSamePerson ? .major : nil,
        "The payment \(payment) belongs to order \(lost.ownerOrderId) of \(whose).")
    } else if case .unpaid(.duplicate, _) = verdict {
      decline([.duplicateClaim], "Another order owns the payment, and this one has neither goods nor status verified.")
    } else {
      let isLost = claims.owned.isEmpty && claims.refused == nil && !facts.hasUnansweredProofs
      decline(
        [.duplicateClaim],
        claims.lost.isEmpty
          ? "No other order owns a transaction that this one claims."
          : isLost
            ? verdict?.reason == .contradiction
              ? "Apple's records contradict each other about another transaction that this order could claim."
              : "A missing answer could still change the owner of the transaction."
            : claims.owned.isEmpty
              ? "The stated transaction could not pay this order, or Apple has not answered about its proofs."
              : "It owns a transaction of its own.")
    }
    // A free purchase, such as a trial, is no charge.
    let live = claims.liveOwned.filter { $0.priceMilliunits != 0 }
    let payments = live.count > 1 ? facts.payments : []
    let further = payments.count > 1 ? live.filter { !payments.contains($0) } : Array(live.dropFirst())
    let lastCharge = live.count > 1 ? live.compactMap(\.saleDate).max() : nil
    if live.count > 1, live.contains(where: { facts.awaitsRefund(of: $0, since: lastCharge, rules: rules) }) {
      decline([.chargedTwice], "A missing answer could show that one of the \(live.count) was refunded.")
    } else if live.count > 1, let unread {
      decline([.chargedTwice], unread)
    } else if live.count > 1, further.isEmpty {
      decline([.chargedTwice], "Its payments together are for no more than the \(order.quantity) units ordered.")
    } else if live.count > 1 {
      let others = further.map { $0.shownId(stated: order.transactionId).text }.joined(separator: ", ")
      // Every charge after the first is owed to the customer. Two currencies have no sum.
      let left = further.compactMap { $0.left(of: $0.price ?? order.amount) }
      let atStake = left.count == further.count ? Money.sum(left) : nil
      add(
        .chargedTwice, atStake: atStake, on: further[0], isAmountAtRiskUnknown: atStake == nil,
        "Apple charged \(live.count) times for one order: \(live[0].shownId(stated: order.transactionId)), and again \(others)."
      )
    } else {
      decline([.chargedTwice], live.isEmpty ? "It owns no live payment." : "It owns one live payment.")
    }
    switch verdict {
    case .unpaid(.productMismatch, let transaction):
      let paid = transaction.map { " The payment is for \($0.productId)." } ?? ""
      add(.productMismatch, atStake: order.amount, on: transaction, "Ordered \(order.productId).\(paid)")
    case .unpaid(.wrongBundle, let transaction):
      let app = transaction?.bundleId ?? facts.receipts.lazy.compactMap(\.state.bundleId).first ?? "another app"
      let proof: Reason = facts.validReceipts.isEmpty ? "The stated transaction" : "The proof"
      add(.wrongBundle, atStake: order.amount, on: transaction, "\(proof) belongs to \(app), not to the order's app.")
    case .unpaid(.familyShared, let transaction):
      if isBookedWithAmount {
        add(
          .familySharedSale, atStake: order.amount, on: transaction,
          "The user has access through a family member's purchase. No payment was made for this order.")
      }
    case .unpaid(.restored, let transaction):
      if isBookedWithAmount {
        add(
          .restoredAsSale, atStake: order.amount, on: transaction,
          "The stated transaction restores an earlier purchase. No payment was made for this order.")
      }
    case .unpaid(.notFound, _):
      let receipts = facts.validReceipts
      if let foreign = receipts.first, receipts.allSatisfy({ isOfAnotherApp($0.state) }) {
        add(
          .wrongBundle, atStake: order.amount, receipt: foreign,
          "The proof belongs to \(foreign.state.bundleId ?? "another app"), not to the order's app.")
      }
    case .paid, .reversed, .unpaid, .unconfirmed, .nothingToPay, .none: break
    }
    declineOthers(
      [.productMismatch, .wrongBundle, .familySharedSale, .restoredAsSale],
      !isBookedWithAmount && (verdict?.reason == .familyShared || verdict?.reason == .restored)
        ? "No sale was booked: the shop says \(order.status.rawValue), and the amount is \(order.amount.text)."
        : "The verdict on the payment is another one: \(payment)."
    )
  }

  /// True if the shop counts the amount as a sale, or did until a refund.
  private var isBookedWithAmount: Bool {
    order.amount.minorUnits > 0 && (order.status == .verified || order.status == .refunded)
  }

  private func isOfAnotherApp(_ proof: ProofState) -> Bool {
    switch proof.outcome {
    case .verified: proof.bundleId.map { $0 != rules.bundleId(of: order) } ?? false
    case .rejected: proof.reason == .wrongBundle
    case .pending, .unanswered, .review, .notFound: false
    }
  }

  // MARK: - Proofs

  func considerProofs() {
    for receipt in facts.validReceipts {
      guard let invalid = receipt.invalidSignature else { continue }
      add(.signatureInvalid, atStake: order.amount, receipt: receipt, invalid)
      break
    }
    for receipt in facts.validReceipts {
      guard let mislabelled = receipt.mislabelledEnvironment else { continue }
      add(.environmentMislabelled, receipt: receipt, mislabelled)
      break
    }
    for receipt in facts.receipts {
      guard let brokenContract = receipt.brokenContract else { continue }
      add(.badRow, receipt: receipt, subject: receipt.subject, brokenContract)
    }
    for delivery in facts.deliveries {
      guard let brokenContract = delivery.brokenContract else { continue }
      add(.badRow, delivery: delivery, subject: delivery.subject, brokenContract)
    }
    if comparable != nil, openOwnershipReason == nil, let stated = order.transactionId,
      facts.claims.statesAnotherThanProven
    {
      let owned = facts.claims.owned[0]
      add(
        .transactionIdMismatch, on: owned,
        facts.claims.owned.contains { $0.isReferred(by: stated) }
          ? "The order states transaction \(stated), which pays it. Its own proof is of another purchase."
          : "The order states transaction \(stated). Its own proof contains \(owned.smallestId), which pays it.")
    } else {
      decline([.transactionIdMismatch], "The order states no ID that differs from its own proofs.")
    }
    declineOthers([.signatureInvalid], "No proof of it was rejected for its signature.")
    declineOthers([.environmentMislabelled], "The client stated no other environment than Apple for a receipt of it.")
    declineOthers([.badRow], "No row of it breaks the contract of the sales schema.")
  }

  // MARK: - Refunds

  /// Books the refund of a past period instead of taking back the access, which a later period pays.
  private func leaveAccess(_ transaction: TransactionRecord) {
    guard let isActive = transaction.isPastPeriodOfActiveSubscription(at: rules.asOf) else {
      return requireReview { $0 == .takeBack }
    }
    if !isActive { return }
    let isBooked = order.status != .verified || order.isChangedAfterAsOf || transaction.isRefundDoubtful
    for index in found.indices where found[index].kind.has(.isAboutRefund) && found[index].action == .takeBack {
      (found[index].action, found[index].units) = (isBooked ? .look : .bookRefund, nil)
    }
  }

  private func refundOrder(_ payment: TransactionRecord) -> (Instant, TransactionKey) {
    (payment.revocation?.date ?? rules.asOf, payment.key)
  }

  func considerRefunds() {
    switch verdict {
    case .reversed(let transaction):
      if transaction.isRefundDoubtful {
        decline([.refundNotBooked], "Apple refunded the purchase, and reversed the refund after the as-of.")
      } else if order.status == .verified {
        addForStatus(
          .refundNotBooked, atStake: order.amount, "Apple refunded the purchase, but the shop still says verified.")
      } else {
        decline([.refundNotBooked], "Apple refunded the purchase, and the shop says \(order.status.rawValue).")
      }
      if !transaction.isRefundDoubtful, let date = facts.payments.compactMap({ $0.revocation?.date }).max(),
        let late = facts.validDeliveries.first(where: { $0.stands && $0.deliveredAt > date })
      {
        add(.deliveredAfterRefund, atStake: order.amount, delivery: late, "Goods were delivered after Apple's refund.")
      } else {
        decline([.deliveredAfterRefund], "No goods that a user has were delivered after Apple's refund.")
      }
      leaveAccess(transaction)
      decline(
        [.partialRefund, .refundOnlyHere, .refundReversedNotReinstated],
        transaction.isRefundDoubtful
          ? "Apple's refund is full. Apple reported its reversal only after the as-of."
          : "Apple's refund is full and in force.")
    case .paid(let transaction):
      let payments = facts.payments
      let refunded = facts.refundedPayments
      if let newest = refunded.max(by: { refundOrder($0) < refundOrder($1) }) {
        let part = facts.refundedAmount
        let words = part?.text ?? "a part that Apple does not state"
        let why = transaction.isUpgraded == true ? " It was upgraded, and Apple refunded the rest of its period." : ""
        add(
          .partialRefund, atStake: part, on: newest, isAmountAtRiskUnknown: part == nil,
          "Apple refunded \(words) of this order.\(why)")
        requireReview("Apple refunded a part of it. The missing units may be the refunded part.")
        if order.status == .refunded {
          requireReview("The shop says refunded. It may have booked the refunded part, or more.") { $0 == .bookRefund }
        }
        decline([.refundOnlyHere], "Apple refunded a part of it.")
      } else {
        decline([.partialRefund], "Apple reported no refund.")
        if order.status == .refunded, order.isChangedAfterAsOf {
          decline(
            [.refundOnlyHere],
            "The shop's row was changed after the as-of, so the refund may be later than Apple's last answer.")
        } else if order.status == .refunded,
          payments.allSatisfy({ payment in
            payment.revocation == nil && !payment.isKnownByRestoresAlone
              && payment.hasRevocationStatement(since: order.refundBookedBy)
          })
        {
          add(
            .refundOnlyHere, atStake: order.amount, "The shop says refunded, but Apple has not refunded the purchase.")
        } else if order.status == .refunded {
          let unstated = "The shop says refunded. Apple has since given no answer that would show a refund."
          decline([.refundOnlyHere], unstated)
          requireReview(Reason(unstated))
        } else {
          decline([.refundOnlyHere], "The shop says \(order.status.rawValue).")
        }
      }
      let paidAgain = payments.filter { $0.revocationWithdrawnDate != nil && !$0.isRefundDoubtful }
      if !paidAgain.isEmpty, facts.goods != .inFull, facts.validDeliveries.contains(where: { !$0.stands }) {
        // One finding alone gives goods, because a job would give them once per finding.
        requireReview()
        add(
          .refundReversedNotReinstated, atStake: Money.sum(paidAgain.map { $0.share(of: order) }),
          "Apple reversed its refund, so the order is paid again, but the user does not have the goods back.")
      } else {
        decline(
          [.refundReversedNotReinstated],
          !paidAgain.isEmpty
            ? "Apple reversed a refund, and the user has all goods of the order."
            : payments.contains { $0.isRefundDoubtful }
              ? "Apple reported the reversal of its refund only after the as-of." : "Apple reversed no refund.")
      }
      decline([.refundNotBooked, .deliveredAfterRefund], "Apple has not refunded the purchase in full.")
    case .unpaid, .unconfirmed, .nothingToPay, .none:
      decline(
        [.refundNotBooked, .deliveredAfterRefund, .partialRefund, .refundOnlyHere, .refundReversedNotReinstated],
        "It has no payment that could be refunded: \(payment).")
    }
  }
}
