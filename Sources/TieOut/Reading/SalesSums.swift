import Reconciliation

/// Sums rows of a sales report by the columns that the tie-out needs, in bounded memory. When full, it spills its sums,
/// so one key may have several; the reader adds them up.
package struct SalesSums: ~Copyable {
  package struct Key: Hashable, Sendable {
    package var sku: Identifier
    package var parent: Identifier
    package var type: Identifier
    package var day: ReportDay
    package var country: Identifier
    package var customerCurrency: Identifier
    package var proceedsCurrency: Identifier
    /// For one unit, without sign.
    package var customerPrice: Millionths
    package var developerProceeds: Millionths
    /// -1: refunds, 0: rows without units, 1: sales. Separate, so that refunds do not cancel sales.
    package var sign: Int8
    package var isRenewal: Bool
  }

  package struct Sum: Hashable, Sendable {
    package var units = Millionths.zero
    package var rows = 0

    fileprivate mutating func add(_ units: Millionths) {
      self.units += units
      rows += 1
    }
  }

  package typealias Part = [(key: Key, sum: Sum)]

  private var sums: [Key: Sum] = [:]
  private let limit: Int

  package init(limit: Int = 1 << 16) { self.limit = limit }

  package mutating func add(_ row: SalesRow, spill: (Part) throws -> Void) throws {
    let key = Key(
      sku: row.sku, parent: row.parent, type: row.type, day: row.first, country: row.country,
      customerCurrency: row.customerCurrency, proceedsCurrency: row.proceedsCurrency,
      customerPrice: row.customerPrice.magnitude, developerProceeds: row.developerProceeds,
      sign: Int8(row.units.count.signum()), isRenewal: row.isRenewal)
    if sums.count >= limit, sums[key] == nil { try flush(spill) }
    sums[key, default: Sum()].add(row.units)
  }

  /// Spills the rest; call it after the last row.
  package mutating func flush(_ spill: (Part) throws -> Void) throws {
    guard !sums.isEmpty else { return }
    try spill(sums.map { (key: $0.key, sum: $0.value) })
    sums.removeAll(keepingCapacity: true)
  }
}
