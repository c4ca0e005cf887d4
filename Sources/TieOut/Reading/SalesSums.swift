import Reconciliation

/// Rows of a sales report added up to what the tie-out distinguishes. Devices, titles and categories are gone.
///
/// It holds a limited number of sums and hands them on when it has more: two parts of one sum are added up by whoever
/// reads them, so a report of any length is read in the same memory.
package struct SalesSums: ~Copyable {
  /// What is told apart.
  package struct Key: Hashable, Sendable {
    package var sku: Identifier
    package var parent: Identifier
    package var type: Identifier
    package var day: ReportDay
    package var country: Identifier
    package var customerCurrency: Identifier
    package var proceedsCurrency: Identifier
    /// For one unit, without its sign.
    package var customerPrice: Millionths
    /// For one unit.
    package var developerProceeds: Millionths
    /// -1 refunds, 0 rows without units, 1 sales: a refund must not cancel a sale.
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

  /// - Parameter limit: how many sums are held at most.
  package init(limit: Int = 1 << 16) { self.limit = limit }

  /// - Parameter spill: gets the sums, in no order, when there are too many.
  package mutating func add(_ row: SalesRow, spill: (Part) throws -> Void) throws {
    let key = Key(
      sku: row.sku, parent: row.parent, type: row.type, day: row.first, country: row.country,
      customerCurrency: row.customerCurrency, proceedsCurrency: row.proceedsCurrency,
      customerPrice: row.customerPrice.magnitude, developerProceeds: row.developerProceeds,
      sign: Int8(row.units.count.signum()), isRenewal: row.isRenewal)
    if sums.count >= limit, sums[key] == nil { try flush(spill) }
    sums[key, default: Sum()].add(row.units)
  }

  /// Hands on what is left. To be called after the last row.
  package mutating func flush(_ spill: (Part) throws -> Void) throws {
    guard !sums.isEmpty else { return }
    try spill(sums.map { (key: $0.key, sum: $0.value) })
    sums.removeAll(keepingCapacity: true)
  }
}
