import Reconciliation

/// The units that Apple counts for one purchase, within the compared days.
struct ExpectedUnits: Sendable {
  private(set) var units: [OurUnits] = []
  private(set) var partialRefunds: [RefundEvidence] = []
  private(set) var upgrades: [RefundEvidence] = []

  /// `country` is that of the storefront; `withdrawn` is a revocation that Apple has reversed.
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
    // Apple counts a refund even if it is reversed later. A partial refund is never a unit.
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

/// A purchase known only from one of its restores.
struct RestoredSale: Sendable {
  let sale: ExpectedUnits
  /// The smallest rank is used: the purchase itself, then a restore with the refund, then the smaller ID.
  private let rank: (Int, Int, Identifier)

  init?(_ restore: TransactionRecord, country: Identifier?, withdrawn: Revocation?, days: ReportDays) {
    guard let purchased = restore.originalPurchaseDate else { return nil }
    var record = restore
    // The restore carries its own price and storefront, not those of another purchase.
    if restore.restoresAnotherID {
      record.priceMilliunits = nil
      record.currency = nil
      record.hasOffer = nil
    }
    sale = ExpectedUnits(
      record, purchased: purchased, country: restore.restoresAnotherID ? nil : country, isClaimed: false,
      withdrawn: withdrawn, days: days)
    let hasRefund = restore.revocation != nil || withdrawn != nil
    rank = (restore.restoresAnotherID ? 1 : 0, hasRefund ? 0 : 1, restore.transactionId)
  }

  func isBetter(than other: RestoredSale) -> Bool { rank < other.rank }
}

extension ProductSides {
  /// Adds the units that Apple should count for one transaction of this product. `storefront` is an alpha-3 code.
  package mutating func add(
    _ record: TransactionRecord, storefront: String?, isClaimed: Bool, withdrawn: Revocation? = nil, days: ReportDays
  ) {
    // Family sharing and sandbox purchases are in no sales report.
    guard record.environment == .production, !record.isFamilyShared, let purchased = record.purchaseDate else { return }
    let country = Country(storefront: storefront).map { Identifier($0.code) }
    guard record.isRestore else {
      recorded.insert(record.transactionId)
      return append(
        ExpectedUnits(
          record, purchased: purchased, country: country, isClaimed: isClaimed, withdrawn: withdrawn, days: days))
    }
    if let day = days.day(of: purchased) {
      ours.append(
        OurUnits(
          day: day, country: country, currency: record.currency.map { Identifier($0) }, kind: .restore,
          price: record.priceMilliunits.map { Millionths(thousandths: $0).magnitude }, units: record.countedUnits))
    }
    guard let sale = RestoredSale(record, country: country, withdrawn: withdrawn, days: days) else { return }
    let purchase = record.purchaseKey.transactionId
    if restored[purchase].map(sale.isBetter) ?? true { restored[purchase] = sale }
  }

  var withRestoredSales: ProductSides {
    if restored.isEmpty { return self }
    var sides = self
    for (purchase, restoredSale) in restored where !recorded.contains(purchase) { sides.append(restoredSale.sale) }
    // Cleared so that a second call does not count them twice.
    sides.restored = [:]
    return sides
  }

  private mutating func append(_ sale: ExpectedUnits) {
    ours += sale.units
    partialRefunds += sale.partialRefunds
    upgrades += sale.upgrades
  }
}

extension TransactionRecord {
  fileprivate var countedUnits: Int { max(1, Int(self.quantity ?? 1)) }
}
