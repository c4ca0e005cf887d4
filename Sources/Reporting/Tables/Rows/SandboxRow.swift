import Reconciliation

/// The sandbox purchases of a user and product. Sandbox money is in no total.
package struct SandboxRow: Hashable, Sendable {
  package var userId: Identifier
  package var productId: Identifier
  package var currency: Currency
  package var orders: Int
  package var minorUnits: Int128
  /// True if the user is in `audit.testUsers`.
  package var isAllowed: Bool

  package init(
    userId: Identifier, productId: Identifier, currency: Currency, orders: Int, minorUnits: Int128, isAllowed: Bool
  ) {
    (self.userId, self.productId, self.currency, self.orders) = (userId, productId, currency, orders)
    (self.minorUnits, self.isAllowed) = (minorUnits, isAllowed)
  }
}

extension SandboxRow: TableRow {
  static let table = ReportTable.sandbox

  static let shape = ReportTable.Shape(
    title: "Sandbox", formulaName: "SandboxTable", fileName: "sandbox.csv",
    meaning: "Orders of the period paid in Apple's sandbox. Sandbox money is in no total.",
    sheetNote: "Test purchases: who bought what. They are in no total.",
    primaryKey: ["user_id", "product_id", "currency"],
    emptyNote: "No order of the period was paid in the sandbox.", moneyNote: " Sandbox money is in no total.")

  static let columns: [Column<SandboxRow>] = [
    Column("user_id", .user, 21, "Who bought.") { .id($0.userId) },
    Column("product_id", .id, 24, "App Store product identifier.") { .id($0.productId) },
    Column("currency", .currency, 10, "ISO 4217 code.") { .text($0.currency.code) },
    Column("orders", .tally, 10, "Number of orders.") { .count(Int64($0.orders)) },
    Column("amount", .amount, 14, "Sum of the orders, in sandbox money.") {
      .decimal($0.minorUnits, digits: $0.currency.digits)
    },
    Column("allowed", .flag, 10, "Whether the user is on the list of test users.") {
      .text($0.isAllowed ? "true" : "false")
    },
  ]
}
