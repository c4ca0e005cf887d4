import Reconciliation

extension ProductSides {
  /// What one transaction of ours makes Apple count, on the days on which it should.
  /// - Parameters:
  ///   - record: a transaction of this product.
  ///   - storefront: Apple's alpha-3 code, as signed transactions carry it; nil: not told.
  ///   - isClaimed: whether an order claims it.
  ///   - withdrawn: the revocation that Apple has taken back since; nil: none.
  ///   - days: those that are looked at.
  package mutating func add(
    _ record: TransactionRecord, storefront: String?, isClaimed: Bool, withdrawn: Revocation? = nil, days: ReportDays
  ) {
    // Access without a purchase, and what Apple's production never sold, is in no sales report.
    guard record.environment == .production, !record.isFamilyShared, let purchased = record.purchaseDate else { return }
    let country = storefront.flatMap { Storefront.alpha2($0) }
    let currency = record.currency.map { Identifier($0) }
    let quantity = max(1, Int(record.quantity ?? 1))
    let price = record.priceMilliunits.map { Millionths(thousandths: $0).magnitude }
    let evidence = { RefundEvidence(day: $0, country: country, currency: currency) }

    func units(on instant: Instant, _ kind: TieOutClass, _ count: Int) -> OurUnits? {
      days.day(of: instant).map {
        OurUnits(day: $0, country: country, currency: currency, kind: kind, price: price, units: count)
      }
    }
    if record.isRestore {
      if let restored = units(on: purchased, .restore, quantity) { ours.append(restored) }
      return
    }
    let kind: TieOutClass = price == .zero ? .free : .sale
    if var bought = units(on: purchased, kind, quantity) {
      bought.isUnclaimedRenewal = record.isRenewal == true && !isClaimed
      bought.mayBeFree = record.hasOffer == true && price == nil
      ours.append(bought)
    }
    let takenBack: TieOutClass = kind == .free ? .free : .refund
    // What was taken back and is not any more was counted all the same. A part of it never was a unit.
    if let revocation = record.revocation ?? withdrawn {
      if revocation.isFull {
        if let back = units(on: revocation.date, takenBack, -quantity) { ours.append(back) }
        if let again = record.revocationWithdrawnDate, let reinstated = units(on: again, kind, quantity) {
          ours.append(reinstated)
        }
      } else if let day = days.day(of: revocation.date) {
        partialRefunds.append(evidence(day))
      }
    }
    if record.isUpgraded == true { upgrades.append(evidence(days.day(of: purchased) ?? days.days.lowerBound)) }
  }
}
