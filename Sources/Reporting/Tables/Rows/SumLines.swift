import Reconciliation

/// A row with the count and the amount of orders, and the amount by disposition.
protocol SumRow: TableRow {
  var sums: Totals.Line { get }
  var currency: Currency { get }
}

extension SumRow {
  static var sumColumns: [Column<Self>] {
    [
      Column("orders", .tally, 10, "Number of orders.") { .count(Int64($0.sums.orders)) },
      Column("ordered", .amount, 14, "Sum of the orders' amounts: the sum of the columns that follow.") {
        .decimal($0.sums.ordered, digits: $0.currency.digits)
      },
    ]
      + Disposition.inMoneyTotals.map { disposition in
        Column(
          disposition.rawValue, .share, disposition.rawValue.widthAsHeader, "Amounts of orders \(disposition.clause)."
        ) {
          .decimal($0.sums.sum(of: disposition), digits: $0.currency.digits)
        }
      }
  }
}

struct UserLine: SumRow {
  let key: Totals.UserKey
  let sums: Totals.Line

  var currency: Currency { key.currency }

  static let table = ReportTable.users

  static let shape = ReportTable.Shape(
    title: "Users", formulaName: "UsersTable", fileName: "users.csv",
    meaning: "Orders created in the period, by user and currency. Without sandbox orders and invalid source rows.",
    sheetNote: "Orders of the period by user and currency, with the sums below.",
    primaryKey: ["user_id", "currency"], frozenColumns: 2, totalLabelColumn: "user_id", tabColour: Palette.blue)

  static let columns: [Column<UserLine>] =
    [
      Column("user_id", .user, 21, "The shop's id of the user.") { .id($0.key.userId) },
      Column("currency", .currency, 10, "ISO 4217 code.") { .text($0.currency.code) },
    ] + sumColumns
}

struct PricePointLine: SumRow {
  let key: Totals.PricePoint
  let app: String?
  let sums: Totals.Line

  var currency: Currency { key.currency }

  static let table = ReportTable.amounts

  static let shape = ReportTable.Shape(
    title: "Amounts", formulaName: "AmountsTable", fileName: "amounts.csv",
    meaning:
      "Orders created in the period, by currency, amount and product. Without sandbox orders and invalid source rows.",
    sheetNote: "Orders of the period by price and product, with the sums below.",
    primaryKey: ["currency", "amount", "product_id", "app"], frozenColumns: 3, totalLabelColumn: "product_id",
    tabColour: Palette.blue)

  static let columns: [Column<PricePointLine>] =
    [
      Column("currency", .currency, 10, "ISO 4217 code.") { .text($0.currency.code) },
      Column("amount", .price, 14, "The price point: amount of one order as the shop recorded it.") {
        .decimal(Int128($0.key.minorUnits), digits: $0.key.currency.digits)
      },
      Column("product_id", .id, 24, "App Store product identifier.") { .id($0.key.productId) },
    ] + sumColumns + [.app { $0.app }]
}

struct ProductLine: SumRow {
  let key: Totals.ProductKey
  let app: String?
  let sums: Totals.Line

  var currency: Currency { key.currency }

  static let table = ReportTable.products

  static let shape = ReportTable.Shape(
    title: "Products", formulaName: "ProductsTable", fileName: "products.csv",
    meaning:
      "Orders created in the period, by app, product, country and currency. Without sandbox orders and invalid source rows.",
    sheetNote: "Orders of the period by app, product and country, with the sums below.",
    primaryKey: ["app", "product_id", "country", "currency"], keysMayFail: true, frozenColumns: 4,
    totalLabelColumn: "product_id", tabColour: Palette.blue)

  static let columns: [Column<ProductLine>] =
    [
      .app { $0.app },
      Column("product_id", .id, 24, "App Store product identifier.") { .id($0.key.productId) },
      .country { $0.key.country },
      Column("currency", .currency, 10, "ISO 4217 code.") { .text($0.currency.code) },
    ] + sumColumns
}
