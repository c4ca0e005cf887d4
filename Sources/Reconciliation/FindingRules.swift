/// The conditions of every finding that stands on an order. Each is considered by itself; none hides another.
///
/// A class, so that a reason may look at the facts while it is noted, and that nothing is copied for it.
final class FindingRules {
  private let facts: OrderFacts
  private let rules: Rules
  private let verdict: Verdict?
  private let disposition: Disposition
  private let paidAt: Instant?
  private let deliveredAt: Instant?
  private let environment: AppleEnvironment?
  private let transactionId: Identifier?
  private var order: Order { facts.order }
  /// `OrderFacts.comparable`, looked for once.
  private let comparable: TransactionRecord?
  /// Why nothing is compared that could accuse the wrong one; nil where everything is.
  private let provisionally: String?
  private var found: [Finding] = []
  /// Whether somebody asks why the kinds that were not found do not hold.
  private let isExplaining: Bool
  /// Why each kind that was not found does not stand on the order; empty unless asked for.
  private(set) var reasonsAgainst: [FindingKind: String] = [:]

  init(facts: consuming OrderFacts, rules: Rules, judgement: borrowing Judgement, isExplaining: Bool) {
    self.isExplaining = isExplaining
    self.rules = rules
    verdict = judgement.verdict
    disposition = judgement.disposition
    paidAt = judgement.paidAt
    deliveredAt = judgement.deliveredAt
    environment = judgement.environment
    transactionId = judgement.transactionId
    comparable = facts.comparable
    provisionally =
      facts.isOwnershipFinal ? nil : "An answer that is missing could still give the payment to another order."
    self.facts = facts
  }

  /// All findings, worst first. The money at stake stands on the first one that puts it there, so that a column of
  /// amounts can be added up; a second charge is money of its own.
  func findings() -> [Finding] {
    considerDisposition()
    considerStatus()
    considerStuck()
    considerUnits()
    considerClaims()
    considerProofs()
    considerRefunds()
    considerDeliveries()
    considerComparison()
    considerDates()
    considerCatalogue()
    decline(
      [.orphanPayment, .renewalWithoutOrder, .orphanDelivery, .unreportedByShop],
      "It stands on things that no order stands behind, never on an order.")
    decline([.boughtTwice], "It is looked for among all orders of a person, after they are judged.")
    // Money of the sandbox is in no total, that of findings included.
    if disposition == .sandbox {
      for index in found.indices {
        found[index].atStake = nil
        found[index].isStakeUnknown = false
      }
    }
    guard found.count > 1 else { return found }
    found.sort { ($0.kind.index, $0.subject) < ($1.kind.index, $1.subject) }
    var isMoneyPlaced = false
    for index in found.indices where found[index].atStake != nil && found[index].kind != .chargedTwice {
      if isMoneyPlaced { found[index].atStake = nil }
      isMoneyPlaced = true
    }
    // Whose money another one carries puts no unknown money at stake.
    if isMoneyPlaced { for index in found.indices { found[index].isStakeUnknown = false } }
    return found
  }

  private func add(
    _ kind: FindingKind, atStake: Money? = nil, on transaction: TransactionRecord? = nil, receipt: Receipt? = nil,
    delivery: Delivery? = nil, subject: Subject? = nil, _ reason: String
  ) {
    var finding = Finding(kind: kind, subject: subject ?? .order(order.orderId), reason: reason)
    finding.orderId = order.orderId
    finding.userId = order.userId
    finding.productId = order.productId
    finding.transactionId = transaction?.transactionId ?? transactionId
    finding.environment = transaction?.environment ?? environment
    finding.receiptId = receipt?.receiptId ?? facts.receipts.first?.receiptId
    finding.deliveryId = delivery?.deliveryId
    finding.bundleId = rules.bundleId(of: order)
    finding.amount = order.amount
    finding.atStake = atStake
    finding.occurredAt = transaction?.saleDate ?? paidAt ?? order.createdAt
    finding.paidAt = paidAt
    finding.deliveredAt = deliveredAt
    finding.evidenceCheckedAt = evidenceCheckedAt(transaction, receipt)
    found.append(finding)
  }

  /// When Apple was last asked about what a finding rests on: a receipt, a transaction, or else every proof there is.
  private func evidenceCheckedAt(_ transaction: TransactionRecord?, _ receipt: Receipt?) -> Instant? {
    if let receipt { return receipt.state.lastAttempt }
    if let transaction = transaction ?? facts.claims.owned.first ?? verdict?.transaction {
      return transaction.checkedAt
    }
    var oldest = facts.lookup?.lastAttempt
    for receipt in facts.soundReceipts {
      guard let attempt = receipt.state.lastAttempt else { return nil }
      oldest = oldest.map { min($0, attempt) } ?? attempt
    }
    return oldest
  }

  /// Notes why kinds do not stand on the order.
  private func decline(_ kinds: @autoclosure () -> [FindingKind], _ because: @autoclosure () -> String) {
    guard isExplaining else { return }
    for kind in kinds() { reasonsAgainst[kind] = because() }
  }

  /// The same for those of the kinds that were not found.
  private func declineOthers(_ kinds: @autoclosure () -> [FindingKind], _ because: @autoclosure () -> String) {
    guard isExplaining else { return }
    for kind in kinds() where !found.contains(where: { $0.kind == kind }) { reasonsAgainst[kind] = because() }
  }

  /// The verdict as a clause.
  private var payment: String {
    switch verdict {
    case .paid: "it is paid"
    case .reversed: "Apple has refunded it in full"
    case .unpaid(let reason, _): "it is unpaid, because \(reason.explanation)"
    case .unconfirmed(let reason): "whether it is paid is not known, because \(reason.explanation)"
    case .none: "nothing is said about its payment"
    }
  }

  // MARK: - Payment against goods

  private func considerDisposition() {
    switch disposition {
    case .paidNotDelivered:
      let word =
        comparable?.consumptionRequestReason == "FULFILLMENT_ISSUE"
        ? " The customer has told Apple so, too, and asked for a refund (FULFILLMENT_ISSUE)." : ""
      add(
        .paidNotDelivered, atStake: order.amount,
        "Apple confirms the payment, but the user does not hold the goods.\(word)")
    case .partlyDelivered:
      let units = facts.deliveredUnits
      add(
        .partlyDelivered, atStake: order.amount.share(Int64(order.quantity) - units, of: Int64(order.quantity)),
        "Paid for \(order.quantity), delivered \(units).")
    case .deliveredNotPaid:
      let why = verdict?.reason.map(\.explanation) ?? ""
      let isReview =
        verdict?.reason == .sandbox && rules.isAppReview(at: verdict?.transaction?.saleDate ?? order.createdAt)
      let mark = isReview ? " App Review bought at that time: this is its purchase, no alarm." : ""
      add(
        .deliveredNotPaid, atStake: order.amount, "The user holds goods of an order that is not paid: \(why).\(mark)")
      let isTest =
        verdict?.reason == .sandbox
        || verdict?.reason == .duplicate && !rules.testUsers.contains(order.userId)
          && facts.claims.lost.contains { $0.transaction.environment == .sandbox }
      if isTest {
        add(
          .sandboxDelivered, atStake: order.amount,
          "Goods were delivered for a sandbox purchase by a user who is not on the list of test users.\(mark)")
      }
      if isReview { for index in found.indices { found[index].severity = .minor } }
    case .refundedStillDelivered:
      add(
        .refundedStillDelivered, atStake: order.amount,
        "Apple refunded the purchase and the user still holds the goods.")
    case .settled, .void, .refunded, .unconfirmed, .inFlight, .sandbox, .badRow: break
    }
    declineOthers(
      [.paidNotDelivered, .partlyDelivered, .deliveredNotPaid, .refundedStillDelivered],
      "The order is \(disposition.rawValue).")
    declineOthers([.sandboxDelivered], "The order is \(disposition.rawValue), and \(payment).")
    if case .paid = verdict, order.status == .failed || order.status == .cancelled {
      add(
        .cancelledButPaid, atStake: order.amount,
        "Apple confirms the payment, but the shop says \(order.status.rawValue).")
    } else {
      decline([.cancelledButPaid], "The shop says \(order.status.rawValue), and \(payment).")
    }
  }

  private func considerStatus() {
    let status = order.status
    switch disposition {
    case .settled where status == .pending:
      add(.statusMismatch, "Paid and delivered, but the shop still says pending.")
    case .void where status == .verified || status == .refunded:
      add(.statusMismatch, "Neither paid nor delivered, but the shop says \(status.rawValue).")
    case .refunded where status == .pending:
      add(.statusMismatch, "Refunded and taken back, but the shop still says pending.")
    case .settled, .void, .refunded:
      decline([.statusMismatch], "The shop says \(status.rawValue), which does not contradict what happened.")
    case .paidNotDelivered, .partlyDelivered, .deliveredNotPaid, .refundedStillDelivered, .inFlight, .unconfirmed,
      .sandbox, .badRow:
      decline([.statusMismatch], "The order is \(disposition.rawValue), and no status would mend that.")
    }
  }

  private func considerStuck() {
    let age = rules.asOf - order.createdAt
    guard disposition == .unconfirmed, let reason = verdict?.reason else {
      decline([.stuckUnconfirmed], "The order is \(disposition.rawValue).")
      return
    }
    guard age > rules.stuckAfter else {
      decline([.stuckUnconfirmed], "Unconfirmed, but not yet for longer than \(rules.stuckAfter.words).")
      return
    }
    let attempts = facts.receipts.map { Int64($0.state.attempts) }.reduce(Int64(facts.lookup?.attempts ?? 0), +)
    add(
      .stuckUnconfirmed, atStake: order.amount,
      "Unconfirmed for \(age.wholeDays) days after \(attempts) attempts: \(reason.explanation).")
  }

  private func considerUnits() {
    let held = facts.heldUnits
    if held > Int64(order.quantity) {
      add(
        .deliveredTwice, atStake: order.amount.share(held - Int64(order.quantity), of: Int64(order.quantity)),
        "Ordered \(order.quantity), delivered \(held).")
    } else {
      decline([.deliveredTwice], "Ordered \(order.quantity), and \(held) are with a user.")
    }
  }

  // MARK: - Claims

  private func considerClaims() {
    let claims = facts.claims
    let isLost = claims.owned.isEmpty && claims.refused == nil && !facts.hasOpenProofs
    if let lost = claims.lost.first, isLost, claims.lost.allSatisfy(\.isFinal) {
      let whose =
        rules.people.isSame(lost.ownerUserId, order.userId) ? "the same user" : "another user (\(lost.ownerUserId))"
      add(
        .duplicateClaim, atStake: order.amount, on: lost.transaction,
        "The payment \(lost.transaction.transactionId) belongs to order \(lost.ownerOrderId) of \(whose).")
    } else {
      decline(
        [.duplicateClaim],
        claims.lost.isEmpty
          ? "No other order owns a transaction that this one claims."
          : isLost
            ? "An answer that is missing could still change who owns the transaction."
            : claims.owned.isEmpty
              ? "The transaction that it names could not pay it anyway, or its own proofs are not answered yet."
              : "It owns a transaction of its own.")
    }
    let live = claims.liveOwned
    if live.count > 1 {
      let second = live[1]
      let others = live.dropFirst().map(\.transactionId.text).joined(separator: ", ")
      add(
        .chargedTwice, atStake: second.price ?? order.amount, on: second,
        "Apple charged \(live.count) times for one order; besides \(live[0].transactionId): \(others).")
    } else {
      decline([.chargedTwice], live.isEmpty ? "It owns no payment that stands." : "It owns one payment that stands.")
    }
    switch verdict {
    case .unpaid(.productMismatch, let transaction):
      let paid = transaction.map { " The payment is for \($0.productId)." } ?? ""
      add(.productMismatch, atStake: order.amount, on: transaction, "Ordered \(order.productId).\(paid)")
    case .unpaid(.wrongBundle, let transaction):
      let app = transaction?.bundleId ?? facts.receipts.lazy.compactMap(\.state.bundleId).first ?? "another app"
      add(.wrongBundle, atStake: order.amount, on: transaction, "The proof belongs to \(app), not to the order's app.")
    case .unpaid(.familyShared, let transaction):
      if order.amount.minorUnits > 0 {
        add(
          .familySharedSale, atStake: order.amount, on: transaction,
          "A family member's purchase gives this user access; nobody paid for this order.")
      }
    case .unpaid(.restored, let transaction):
      if order.amount.minorUnits > 0 {
        add(
          .restoredAsSale, atStake: order.amount, on: transaction,
          "What it names gives again what was bought before; no money moved for this order.")
      }
    case .paid, .reversed, .unpaid, .unconfirmed, .none: break
    }
    declineOthers(
      [.productMismatch, .wrongBundle, .familySharedSale, .restoredAsSale],
      order.amount.minorUnits == 0 && (verdict?.reason == .familyShared || verdict?.reason == .restored)
        ? "The order is for nothing, so no sale was booked." : "The payment was decided otherwise: \(payment)."
    )
  }

  // MARK: - Proofs

  private func considerProofs() {
    for receipt in facts.soundReceipts
    where receipt.state.reason == .signatureInvalid && receipt.state.outcome == .rejected {
      add(
        .signatureInvalid, atStake: order.amount, receipt: receipt,
        "The proof in receipt \(receipt.receiptId) does not carry Apple's signature.")
      break
    }
    for receipt in facts.soundReceipts {
      guard let claimed = receipt.claimedEnvironment, let signed = receipt.state.environment, claimed != signed.rawValue
      else { continue }
      add(
        .environmentMislabelled, receipt: receipt,
        "The client called receipt \(receipt.receiptId) \(claimed); Apple says \(signed.rawValue).")
      break
    }
    for receipt in facts.receipts {
      guard let defect = receipt.defect else { continue }
      add(
        .badRow, receipt: receipt, subject: .receipt(receipt.receiptId),
        "The receipt row breaks the contract: \(defect).")
    }
    for delivery in facts.deliveries {
      guard let defect = delivery.defect else { continue }
      add(
        .badRow, delivery: delivery, subject: .delivery(delivery.deliveryId),
        "The delivery row breaks the contract: \(defect).")
    }
    declineOthers([.signatureInvalid], "No proof of it was refused for its signature.")
    declineOthers([.environmentMislabelled], "No receipt of it was called by another environment than Apple's.")
    declineOthers([.badRow], "Its rows keep the contract of the sales schema.")
  }

  // MARK: - Refunds

  private func considerRefunds() {
    switch verdict {
    case .reversed(let transaction):
      if order.status == .verified {
        add(.refundNotBooked, atStake: order.amount, "Apple refunded the purchase, but the shop still says verified.")
      } else {
        decline([.refundNotBooked], "Apple refunded the purchase, and the shop says \(order.status.rawValue).")
      }
      if let date = transaction.revocation?.date,
        let late = facts.soundDeliveries.first(where: { $0.stands && $0.deliveredAt > date })
      {
        add(.deliveredAfterRefund, atStake: order.amount, delivery: late, "Goods were delivered after Apple's refund.")
      } else {
        decline([.deliveredAfterRefund], "No goods that are with a user were delivered after Apple's refund.")
      }
      decline([.partialRefund, .refundOnlyHere, .refundReversedNotReinstated], "Apple's refund is full and in force.")
    case .paid(let transaction):
      if let revocation = transaction.revocation {
        let part = revocation.percentage.map { order.amount.share(milliPercent: $0) }
        let words = part.map { "\($0.decimalText) \($0.currency)" } ?? "a part that Apple does not name"
        let why = transaction.isUpgraded == true ? " It was upgraded, and Apple gave back the rest of its period." : ""
        add(.partialRefund, atStake: part, "Apple refunded \(words) of this order.\(why)")
        if part == nil { found[found.count - 1].isStakeUnknown = true }
        decline([.refundOnlyHere], "Apple refunded a part of it.")
      } else {
        decline([.partialRefund], "Apple told of no refund.")
        if order.status == .refunded, transaction.tellsRevocation {
          add(
            .refundOnlyHere, atStake: order.amount, "The shop says refunded, but Apple has not refunded the purchase.")
        } else {
          decline(
            [.refundOnlyHere],
            order.status == .refunded
              ? "The shop says refunded, and whoever was asked could not have told of a refund."
              : "The shop says \(order.status.rawValue).")
        }
      }
      if transaction.revocationWithdrawnDate != nil, facts.goods == .none,
        facts.soundDeliveries.contains(where: { !$0.stands })
      {
        add(
          .refundReversedNotReinstated, atStake: order.amount,
          "Apple took its refund back, so the order is paid again, but the goods are still taken back.")
      } else {
        decline(
          [.refundReversedNotReinstated],
          transaction.revocationWithdrawnDate == nil
            ? "Apple took no refund back." : "Apple took a refund back, and no goods are still taken back for it.")
      }
      decline([.refundNotBooked, .deliveredAfterRefund], "Apple has not refunded the purchase in full.")
    case .unpaid, .unconfirmed, .none:
      decline(
        [.refundNotBooked, .deliveredAfterRefund, .partialRefund, .refundOnlyHere, .refundReversedNotReinstated],
        "It has no payment that could be refunded: \(payment).")
    }
  }

  // MARK: - Deliveries

  private func considerDeliveries() {
    let standing = facts.standingDeliveries
    if let astray = standing.first(where: { !rules.people.isSame($0.userId, order.userId) }) {
      add(
        .wrongUser, atStake: order.amount, delivery: astray,
        "User \(order.userId) ordered, user \(astray.userId) got the goods.")
    } else if facts.asksForTokenHolder, provisionally == nil {
      considerTokenHolder()
    }
    declineOthers(
      [.wrongUser],
      "Its goods are with nobody else, and no account token that both sides have says otherwise for good.")
    guard let transaction = comparable else {
      decline(
        [.deliveredBeforePaid, .lapsedStillServed, .purchasePredatesOrder],
        "It owns no production transaction with a date to compare with.")
      return
    }
    if let provisionally {
      decline([.deliveredBeforePaid, .lapsedStillServed, .purchasePredatesOrder], provisionally)
      return
    }
    // Renewals are signed, announced and served ahead of their purchase date.
    let signed = transaction.isLaterPeriod ? transaction.firstSignedDate ?? transaction.signedDate : nil
    let paid = [transaction.saleDate, signed].compactMap { $0 }.min()
    if let first = standing.min(by: { $0.deliveredAt < $1.deliveredAt }), let paid,
      first.deliveredAt < paid - rules.clockSkew
    {
      add(
        .deliveredBeforePaid, delivery: first,
        transaction.isLaterPeriod
          ? "The goods were delivered before Apple signed the renewal."
          : "The goods were delivered before Apple's purchase date.")
    } else {
      decline(
        [.deliveredBeforePaid],
        "No goods that are with a user left more than \(rules.clockSkew.words) before Apple's purchase date.")
    }
    considerLapse(of: transaction, isServed: !standing.isEmpty)
    if let sold = transaction.saleDate, !transaction.isLaterPeriod, order.createdAt - sold > rules.matchWindow {
      add(
        .purchasePredatesOrder, on: transaction,
        "Apple's purchase is \((order.createdAt - sold).words) older than the order.")
    } else {
      decline(
        [.purchasePredatesOrder],
        transaction.isLaterPeriod
          ? "It is a renewal." : "The purchase is not more than \(rules.matchWindow.words) older than the order.")
    }
  }

  /// The order has no account token, or another one than Apple's transaction.
  private func considerTokenHolder() {
    let holder = facts.accountTokenUser
    if let holder, rules.people.isSame(holder, order.userId) { return }
    if order.appAccountToken != nil {
      add(
        .wrongUser, atStake: order.amount, on: comparable,
        "Apple's account token is not the one of this order's user.")
    } else if let holder {
      add(.wrongUser, atStake: order.amount, on: comparable, "Apple's account token belongs to user \(holder).")
    }
  }

  /// Access that outlasts its subscription. Apple has to have said, after the last period's end, that it gives none.
  private func considerLapse(of transaction: TransactionRecord, isServed: Bool) {
    let newest = [transaction.subscriptionExpiresDate, transaction.expiresDate, transaction.renewalDate]
      .compactMap { $0 }.max()
    guard transaction.expiresDate != nil, let newest else {
      decline([.lapsedStillServed], "It is no subscription.")
      return
    }
    guard case .paid = verdict, isServed, rules.asOf - newest > rules.subscriptionGrace else {
      decline(
        [.lapsedStillServed],
        "No access is left \(rules.subscriptionGrace.words) after the newest period's end.")
      return
    }
    guard let status = transaction.subscriptionStatus, !status.givesAccess,
      transaction.subscriptionStatusDate.map({ $0 >= newest }) ?? true
    else {
      decline(
        [.lapsedStillServed],
        transaction.subscriptionStatus?.givesAccess == true
          ? "Apple says that the subscription gives access."
          : "Apple was not asked about the subscription since its newest period ended, or has not answered.")
      return
    }
    add(
      .lapsedStillServed, atStake: order.amount,
      "The subscription ended \((rules.asOf - newest).wholeDays) days ago and access was not taken back.")
  }

  // MARK: - The order against Apple's record

  private func considerComparison() {
    guard let transaction = comparable else {
      decline(
        [.quantityMismatch, .accountTokenMissing, .currencyMismatch, .amountMismatch],
        "It owns no production transaction to compare with.")
      return
    }
    if let provisionally {
      decline([.quantityMismatch, .accountTokenMissing, .currencyMismatch, .amountMismatch], provisionally)
      return
    }
    if let quantity = transaction.quantity, quantity != order.quantity {
      add(.quantityMismatch, on: transaction, "Ordered \(order.quantity), Apple's transaction is for \(quantity).")
    } else {
      decline(
        [.quantityMismatch],
        transaction.quantity == nil ? "Apple told no quantity." : "Ordered and charged \(order.quantity).")
    }
    if order.appAccountToken != nil, case .says(.none) = transaction.appAccountToken {
      add(.accountTokenMissing, on: transaction, "The order has an account token, Apple's transaction has none.")
    } else {
      decline(
        [.accountTokenMissing],
        order.appAccountToken == nil
          ? "The order has no account token." : "Apple did not say that the transaction has none.")
    }
    guard let code = transaction.currency else {
      decline([.currencyMismatch, .amountMismatch], "Apple told no price: this way of asking cannot.")
      return
    }
    guard code == order.amount.currency.code else {
      decline([.amountMismatch], "Amounts of two currencies are not compared.")
      add(
        .currencyMismatch, atStake: order.amount, on: transaction,
        "Ordered in \(order.amount.currency), charged in \(code).")
      return
    }
    decline([.currencyMismatch], "Ordered and charged in \(code).")
    guard let milliunits = transaction.priceMilliunits, transaction.hasOffer != true else {
      decline(
        [.amountMismatch],
        transaction.priceMilliunits == nil ? "Apple told no price." : "An offer or a trial explains another price.")
      return
    }
    let ours = Int128(order.amount.minorUnits) * Int128(Money.millionthsPerMinorUnit(order.amount.currency))
    let theirs = Int128(milliunits) * 1_000
    guard (ours - theirs).magnitude > UInt128(max(rules.amountToleranceMillionths, 0)) else {
      decline([.amountMismatch], "Apple's price is the order's amount, or within the tolerance.")
      return
    }
    let difference = transaction.price.map {
      let gap = (Int128($0.minorUnits) - Int128(order.amount.minorUnits)).magnitude
      return Money(minorUnits: Int64(clamping: gap), currency: $0.currency)
    }
    let price = transaction.price?.decimalText ?? Money.decimalText(Int128(milliunits), digits: 3)
    add(
      .amountMismatch, atStake: difference ?? order.amount, on: transaction,
      "Ordered for \(order.amount.decimalText), Apple charged the customer \(price) \(code).")
  }

  // MARK: - Dates

  private func considerDates() {
    var late: [String] = []
    if rules.isInFuture(order.createdAt) { late.append("the order's creation") }
    if let date = order.verifiedAt, rules.isInFuture(date) { late.append("the order's verification") }
    for delivery in facts.soundDeliveries {
      if rules.isInFuture(delivery.deliveredAt) { late.append("delivery \(delivery.deliveryId)") }
      if let date = delivery.revokedAt, rules.isInFuture(date) {
        late.append("the taking back of \(delivery.deliveryId)")
      }
    }
    if let transaction = comparable {
      // Of a renewal, which is signed ahead of its purchase date, the earlier of the two: the later says only when we asked.
      let isRenewal = transaction.isLaterPeriod
      let signed = isRenewal ? transaction.firstSignedDate ?? transaction.signedDate : nil
      if let date = [transaction.purchaseDate, signed].compactMap({ $0 }).min(), rules.isInFuture(date) {
        late.append(isRenewal ? "Apple's signature on the renewal" : "Apple's purchase date")
      }
    }
    if late.isEmpty {
      decline([.futureDated], "No date of it lies more than \(rules.clockSkew.words) after the audit.")
    } else {
      add(.futureDated, "Dated later than the audit: \(late.joined(separator: ", ")).")
    }
  }

  // MARK: - The catalogue

  private func considerCatalogue() {
    guard let catalogue = rules.catalogue else {
      decline([.unknownProduct, .soldOutsideCatalogue], "Nobody says what the shop sells.")
      return
    }
    let product = order.productId
    if !catalogue.knows(product) {
      add(.unknownProduct, "The catalogue has no product \(product).")
    }
    if let sold = comparable?.saleDate, provisionally == nil, catalogue.isOnSale(product, at: sold) == false {
      add(.soldOutsideCatalogue, on: comparable, "\(product) was sold when the catalogue had it off sale.")
    }
    declineOthers([.unknownProduct], "The catalogue has the product.")
    declineOthers(
      [.soldOutsideCatalogue], "It owns no payment from a time at which the catalogue had the product off sale.")
  }
}
