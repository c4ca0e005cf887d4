import Reconciliation

/// What one purchase makes Apple count, as far as it is within the days that are looked at.
struct CountedSale: Sendable {
  private(set) var units: [OurUnits] = []
  private(set) var partialRefunds: [RefundEvidence] = []
  private(set) var upgrades: [RefundEvidence] = []

  /// - Parameters:
  ///   - record: the purchase.
  ///   - purchased: when money moved.
  ///   - country: of its storefront; nil: not told.
  ///   - withdrawn: the revocation that Apple has taken back since; nil: none.
  init(
    _ record: TransactionRecord, purchased: Instant, country: Identifier?, isClaimed: Bool, withdrawn: Revocation?,
    days: ReportDays
  ) {
    let currency = record.currency.map { Identifier($0) }
    let quantity = record.countedUnits
    let price = record.priceMilliunits.map { Millionths(thousandths: $0).magnitude }
    let evidence = { RefundEvidence(day: $0, country: country, currency: currency) }

    func units(on instant: Instant, _ kind: TieOutClass, _ count: Int) -> OurUnits? {
      days.day(of: instant).map {
        OurUnits(day: $0, country: country, currency: currency, kind: kind, price: price, units: count)
      }
    }
    let kind: TieOutClass = price == .zero ? .free : .sale
    if var bought = units(on: purchased, kind, quantity) {
      bought.isUnclaimedRenewal = record.isLaterPeriod && !isClaimed
      bought.mayBeFree = record.hasOffer == true && price == nil
      self.units.append(bought)
    }
    let takenBack: TieOutClass = kind == .free ? .free : .refund
    // What was taken back and is not any more was counted all the same. A part of it never was a unit.
    if let revocation = record.revocation ?? withdrawn {
      if revocation.isFull {
        if let back = units(on: revocation.date, takenBack, -quantity) { self.units.append(back) }
        if let again = record.revocationWithdrawnDate, let reinstated = units(on: again, kind, quantity) {
          self.units.append(reinstated)
        }
      } else if let day = days.day(of: revocation.date) {
        partialRefunds.append(evidence(day))
      }
    }
    if record.isUpgraded == true { upgrades.append(evidence(days.day(of: purchased) ?? days.days.lowerBound)) }
  }
}

/// A purchase as one of its restores tells it.
struct RestoredSale: Sendable {
  /// Of the tellers of one purchase the least: the purchase itself, then who knows of its refund.
  private struct Rank: Comparable {
    var isOther: Bool
    var knowsNoRefund: Bool
    var teller: Identifier

    static func < (left: Rank, right: Rank) -> Bool {
      if left.isOther != right.isOther { return right.isOther }
      if left.knowsNoRefund != right.knowsNoRefund { return right.knowsNoRefund }
      return left.teller < right.teller
    }
  }

  let sale: CountedSale
  private let rank: Rank

  /// nil: nobody knows when it was.
  /// - Parameter restore: what restores it.
  init?(_ restore: TransactionRecord, country: Identifier?, withdrawn: Revocation?, days: ReportDays) {
    guard let purchased = restore.originalPurchaseDate else { return nil }
    var record = restore
    // What another one cost, and where, its own record alone can tell.
    if restore.restoresOther {
      record.priceMilliunits = nil
      record.currency = nil
      record.hasOffer = nil
    }
    sale = CountedSale(
      record, purchased: purchased, country: restore.restoresOther ? nil : country, isClaimed: false,
      withdrawn: withdrawn, days: days)
    rank = Rank(
      isOther: restore.restoresOther, knowsNoRefund: restore.revocation == nil && withdrawn == nil,
      teller: restore.transactionId)
  }

  func isBetter(than other: RestoredSale) -> Bool { rank < other.rank }
}

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
    let country = Country(storefront: storefront).map { Identifier($0.code) }
    guard record.isRestore else {
      recorded.insert(record.transactionId)
      return append(
        CountedSale(
          record, purchased: purchased, country: country, isClaimed: isClaimed, withdrawn: withdrawn, days: days))
    }
    if let day = days.day(of: purchased) {
      ours.append(
        OurUnits(
          day: day, country: country, currency: record.currency.map { Identifier($0) }, kind: .restore,
          price: record.priceMilliunits.map { Millionths(thousandths: $0).magnitude }, units: record.countedUnits))
    }
    guard let told = RestoredSale(record, country: country, withdrawn: withdrawn, days: days) else { return }
    let purchase = record.saleKey.transactionId
    if restored[purchase].map(told.isBetter) ?? true { restored[purchase] = told }
  }

  /// With the purchases that are here only as what restores them.
  var withRestoredSales: ProductSides {
    if restored.isEmpty { return self }
    var sides = self
    for (purchase, told) in restored where !recorded.contains(purchase) { sides.append(told.sale) }
    // Counted once, however often this is asked.
    sides.restored = [:]
    return sides
  }

  private mutating func append(_ sale: CountedSale) {
    ours += sale.units
    partialRefunds += sale.partialRefunds
    upgrades += sale.upgrades
  }
}

extension TransactionRecord {
  fileprivate var countedUnits: Int { max(1, Int(self.quantity ?? 1)) }
}
