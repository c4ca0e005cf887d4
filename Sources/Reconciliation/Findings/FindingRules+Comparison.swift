extension FindingRules {
  func considerDeliveries() {
    let unrevoked = facts.unrevokedDeliveries
    if let astray = unrevoked.first(where: { !isWithUser($0) }) {
      add(
        .wrongUser, atStake: order.amount, delivery: astray,
        "User \(user: order.userId) ordered, user \(user: astray.userId) received the goods.")
    } else if comparable != nil, facts.needsAccountTokenUser, openOwnershipReason == nil {
      considerAccountTokenUser()
    }
    if let subscriber = facts.subscriber, openOwnershipReason == nil,
      !found.contains(where: { $0.kind == .wrongUser }),
      facts.accountTokenUser.map({ !rules.people.isSame($0, order.userId) }) ?? true
    {
      add(
        .wrongUser, atStake: order.amount, on: comparable,
        "The purchase continues a subscription whose earlier periods belong to orders of user \(user: subscriber).")
    }
    if found.contains(where: { $0.kind == .wrongUser }) {
      requireReview("First find out which user paid and which user must have the goods.")
    }
    declineOthers(
      [.wrongUser],
      "No other user has its goods, and no final comparison of account tokens shows another user.")
    guard let transaction = comparable else {
      if case .unpaid(.familyShared, .some(let shared)) = verdict {
        considerLapse(of: shared, isServed: !unrevoked.isEmpty)
      }
      declineOthers(
        [.deliveredBeforePaid, .lapsedStillServed, .purchasePredatesOrder],
        "It owns no production transaction with a date to compare with.")
      return
    }
    if let openOwnershipReason {
      decline([.deliveredBeforePaid, .lapsedStillServed, .purchasePredatesOrder], openOwnershipReason)
      return
    }
    // Renewals are signed, announced and served ahead of their purchase date.
    let paid = [transaction.saleDate, transaction.renewalSignedDate].compactMap { $0 }.min()
    if let first = unrevoked.min(by: { $0.deliveredAt < $1.deliveredAt }), let paid,
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
        "No goods that a user has were delivered more than \(rules.clockSkew.words) before Apple's purchase date.")
    }
    considerLapse(of: transaction, isServed: !unrevoked.isEmpty)
    if let sold = transaction.saleDate, !transaction.isLaterPeriod, order.createdAt - sold > rules.matchWindow {
      let isOld = order.createdAt - sold > .days(30)
      add(
        .purchasePredatesOrder, atStake: isOld ? order.amount : nil, on: transaction, severity: isOld ? .major : nil,
        "Apple's purchase is \((order.createdAt - sold).words) older than the order.")
      requireReview("Apple's purchase is so much older than the order that it may have paid for another one.")
    } else {
      decline(
        [.purchasePredatesOrder],
        transaction.isLaterPeriod
          ? "It is a renewal." : "The purchase is not more than \(rules.matchWindow.words) older than the order.")
    }
  }

  func considerAccountTokenUser() {
    let tokenUser = facts.accountTokenUser
    if let tokenUser, rules.people.isSame(tokenUser, order.userId) { return }
    if let comparable, AccountToken.relation(of: order, to: comparable) == .other {
      add(
        .wrongUser, atStake: order.amount, on: comparable,
        "Apple's account token is not the one of this order's user.")
    } else if let tokenUser {
      add(
        .wrongUser, atStake: order.amount, on: comparable, "Apple's account token belongs to user \(user: tokenUser).")
    }
  }

  /// Apple must have stated after the last period's end that it gives no access.
  func considerLapse(of transaction: TransactionRecord, isServed: Bool) {
    let revoked = transaction.isFamilyShared ? transaction.revocation?.date : nil
    let newest = [transaction.subscriptionExpiresDate, transaction.expiresDate, transaction.renewalDate]
      .compactMap { $0 }.max()
    guard let end = revoked ?? newest, revoked != nil || transaction.expiresDate != nil else {
      decline([.lapsedStillServed], "The purchase is not a subscription.")
      return
    }
    guard disposition == .settled || transaction.isFamilyShared || disposition == .partlyDelivered, isServed,
      rules.asOf - end > rules.subscriptionGrace
    else {
      decline(
        [.lapsedStillServed],
        "No user has access more than \(rules.subscriptionGrace.words) after the end of the newest period.")
      return
    }
    // The family has access to a later period, whatever happened to an earlier one.
    if transaction.expiresDate != nil, let open = reasonAccessContinues(transaction, since: end) {
      decline([.lapsedStillServed], open)
      return
    }
    let ended = revoked == nil ? "The subscription ended" : "Apple ended the family's access"
    // A person's orders of all periods of one subscription have one finding.
    let person = rules.people.person(order.userId)
    let subject = transaction.originalTransactionId.map { Subject.transaction(Identifier("\($0.text) \(person.text)")) }
    add(
      .lapsedStillServed, atStake: order.amount, on: transaction,
      subject: transaction.expiresDate == nil ? nil : subject,
      "\(ended) on \(end.text), and access was not taken back.")
  }

  private func reasonAccessContinues(_ transaction: TransactionRecord, since end: Instant) -> String? {
    // The missing answer might differ from Apple's earlier statement.
    let unansweredSince = (facts.validReceipts.map(\.state) + [facts.lookup].compactMap(\.self)).compactMap(
      \.unansweredSince)
    let statusDate = transaction.subscriptionStatusDate
    let isStated =
      statusDate.map { date in date >= end && unansweredSince.allSatisfy { $0 <= date } } ?? unansweredSince.isEmpty
    guard let status = transaction.subscriptionStatus, isStated else {
      return "Apple was not asked about the subscription since its access ended, or has not answered."
    }
    return status.givesAccess ? "Apple says that the subscription gives access." : nil
  }

  // MARK: - The order against Apple's record

  func considerComparison() {
    guard let transaction = comparable else {
      decline(
        [.quantityMismatch, .accountTokenMissing, .currencyMismatch, .amountMismatch],
        "It owns no production transaction to compare with.")
      return
    }
    if let openOwnershipReason {
      decline([.quantityMismatch, .accountTokenMissing, .currencyMismatch, .amountMismatch], openOwnershipReason)
      return
    }
    let payments = facts.payments
    if payments.contains(where: { $0.isKnownByRestoresAlone }) {
      decline([.quantityMismatch], "The original purchase, which may be refunded, is not known.")
    } else if let quantity = facts.paidQuantity, quantity != order.quantity {
      let isUnpaid = facts.unrevokedUnits > quantity
      let charge =
        payments.count == 1
        ? "Apple's transaction is for \(quantity)." : "Apple's \(payments.count) transactions are for \(quantity)."
      add(
        .quantityMismatch,
        atStake: isUnpaid && quantity < order.quantity
          ? order.amount.share(Int64(order.quantity) - quantity, of: Int64(order.quantity)) : nil,
        on: transaction, severity: isUnpaid ? .critical : nil,
        "Ordered \(order.quantity), \(charge)")
      requireReview(Reason(charge)) { $0.deliversGoods || $0 == .takeBack }
    } else {
      decline(
        [.quantityMismatch],
        facts.paidQuantity == nil ? "Apple stated no quantity." : "Ordered and charged \(order.quantity).")
    }
    if order.appAccountToken != nil, case .stated(.none) = transaction.appAccountToken {
      add(.accountTokenMissing, on: transaction, "The order has an account token, Apple's transaction has none.")
    } else {
      decline(
        [.accountTokenMissing],
        order.appAccountToken == nil
          ? "The order has no account token." : "Apple did not say that the transaction has none.")
    }
    guard let code = transaction.currency else {
      decline([.currencyMismatch, .amountMismatch], "Apple stated no price: this channel cannot show prices.")
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
    guard let milliunits = facts.paidMilliunits else {
      decline([.amountMismatch], "Apple stated no price.")
      return
    }
    let whole = transaction.details.commitmentPrice
    guard !rules.tolerates(order.amount, charged: milliunits),
      whole.map({ !rules.tolerates(order.amount, charged: $0) }) ?? true
    else {
      decline([.amountMismatch], "Apple's price is the order's amount, or within the tolerance.")
      return
    }
    // Apple's price may have fractions of minor units, which are rounded up.
    let scale = (0..<order.amount.currency.digits).reduce(Int128(1)) { scale, _ in 10 * scale }
    let gap = (Int128(milliunits) * scale - 1_000 * Int128(order.amount.minorUnits)).magnitude
    let difference = Money(minorUnits: Int64(clamping: (gap + 999) / 1_000), currency: order.amount.currency)
    let price =
      Money(milliunits: milliunits, currency: order.amount.currency)?.decimalText
      ?? Money.decimalText(Int128(milliunits), digits: 3)
    add(
      .amountMismatch, atStake: difference, on: transaction,
      "Ordered for \(order.amount.text), Apple charged the customer \(Money.grouped(price)) \(code)\(transaction.details.commitmentMonth)."
    )
  }

  // MARK: - Dates

  func considerDates() {
    var late: [String] = []
    if rules.isInFuture(order.createdAt) { late.append("the order's creation") }
    if let date = order.verifiedAt, rules.isInFuture(date) { late.append("the order's verification") }
    for delivery in facts.validDeliveries {
      if rules.isInFuture(delivery.deliveredAt) { late.append("delivery \(delivery.deliveryId)") }
      if let date = delivery.revokedAt, rules.isInFuture(date) {
        late.append("the revocation of delivery \(delivery.deliveryId)")
      }
    }
    if let transaction = comparable {
      // A renewal is signed before its purchase date. The later of the two dates depends on when Apple was asked.
      let date = [transaction.purchaseDate, transaction.renewalSignedDate].compactMap { $0 }.min()
      if let date, rules.isInFuture(date) {
        late.append(transaction.isLaterPeriod ? "Apple's signature on the renewal" : "Apple's purchase date")
      }
    }
    if late.isEmpty {
      decline([.futureDated], "No date of the order is more than \(rules.clockSkew.words) later than the as-of.")
    } else {
      add(.futureDated, "Dated later than the as-of: \(late.joined(separator: ", ")).")
    }
  }

  // MARK: - The catalogue

  func considerCatalogue() {
    guard let catalogue = rules.catalogue else {
      decline([.unknownProduct, .soldOutsideCatalogue], "The shop has no catalogue (relation products).")
      return
    }
    let product = order.productId
    if !catalogue.knows(product) {
      add(.unknownProduct, "The catalogue has no product \(product).")
    }
    if let sold = comparable?.saleDate, openOwnershipReason == nil, catalogue.isOnSale(product, at: sold) == false {
      add(.soldOutsideCatalogue, on: comparable, "\(product) was bought when the catalogue had it off sale.")
    }
    declineOthers([.unknownProduct], "The catalogue has the product.")
    declineOthers(
      [.soldOutsideCatalogue], "It owns no payment from a time when the catalogue had the product off sale.")
  }
}
