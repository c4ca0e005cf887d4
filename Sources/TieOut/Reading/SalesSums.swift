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
  }

  private var sums: [Key: Sum] = [:]
  private let limit: Int
  private let body: ([(key: Key, sum: Sum)]) throws -> Void

  /// - Parameters:
  ///   - limit: how many sums are held at most.
  ///   - body: gets them, in no order.
  package init(limit: Int = 1 << 16, _ body: @escaping ([(key: Key, sum: Sum)]) throws -> Void) {
    self.limit = limit
    self.body = body
  }

  package mutating func add(_ row: SalesRow) throws {
    let key = Key(
      sku: row.sku, parent: row.parent, type: row.type, day: row.first, country: row.country,
      customerCurrency: row.customerCurrency, proceedsCurrency: row.proceedsCurrency,
      customerPrice: row.customerPrice.magnitude, developerProceeds: row.developerProceeds,
      sign: Int8(row.units.count.signum()), isRenewal: row.isRenewal)
    if sums.count >= limit, sums[key] == nil { try flush() }
    sums[key, default: Sum()].units += row.units
    sums[key, default: Sum()].rows += 1
  }

  /// Hands on what is left. To be called after the last row.
  package mutating func flush() throws {
    guard !sums.isEmpty else { return }
    try body(sums.map { (key: $0.key, sum: $0.value) })
    sums.removeAll(keepingCapacity: true)
  }
}
