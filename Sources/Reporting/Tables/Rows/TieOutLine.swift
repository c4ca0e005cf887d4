import Reconciliation

/// A row of `tie-out.csv`: one key, both sides, and the classes of their difference.
package struct TieOutLine: Sendable {
  package var level: String
  package var app: String
  package var productId: Identifier
  /// Such as `2026-11-19`.
  package var day: String
  package var country: String
  package var currency: String
  package var kind: String
  /// Apple, ours, shop, difference, the classes in order, unexplained; nil if not applicable.
  package var figures: [Millionths?]

  package init(
    level: String, app: String, productId: Identifier, day: String, country: String, currency: String, kind: String,
    figures: [Millionths?]
  ) {
    (self.level, self.app, self.productId, self.day, self.country) = (level, app, productId, day, country)
    (self.currency, self.kind, self.figures) = (currency, kind, figures)
  }

  private var digits: UInt8 { level == "amount" ? Currency(code: currency)?.digits ?? 2 : 0 }
}

extension TieOutLine: TableRow {
  static let table = ReportTable.tieOut

  static let shape = ReportTable.Shape(
    title: "Tie-out", formulaName: "TieOutTable", fileName: "tie-out.csv",
    meaning: """
      Apple's sales reports compared with the transactions here, by product and Pacific day: apple - ours = \
      difference = the sum of the columns after it.
      """,
    sheetNote: "Apple's counts and the transactions here, by product and Pacific day. Countries are in the file.",
    primaryKey: ["level", "app", "product_id", "day", "country", "currency", "class"], keysMayFail: true,
    frozenColumns: 4, pagesWide: 2,
    moneyNote: " At level amount: what customers paid, tax included where Apple includes it.",
    pageNote: "&LUnits and customer amounts by Apple's sales reports, not proceeds&RPage &P of &N")

  private static let classes: [(name: String, meaning: String)] = [
    ("apple", "What Apple counts. Empty: no report of the day can be read."),
    ("ours", "The sum of the transactions known here. Empty: the price of one of them is unknown."),
    ("shop", "Orders booked as verified by the shop, for comparison. Empty where the shop does not know them."),
    ("difference", "apple - ours, and the sum of the columns after it."),
    ("not_reported", "The day's report is missing, or too new to be final."),
    ("other_scope", "Of apps and products that are not configured here."),
    ("free", "Units without money: trials, promo and offer codes."),
    ("restore", "Restored purchases, without money."),
    ("timing", "Apple counts them on another day."),
    ("refund_timing", "Refunds that Apple counts on another day."),
    ("refund_unknown", "Refunds that Apple counts, without a known revocation here."),
    ("partial_refund", "Refunds of a part of the price."),
    ("upgrade", "The refunded rest of an upgraded subscription."),
    ("renewal", "Renewals that no order claims."),
    ("country_unknown", "Transactions without a storefront."),
    ("price", "The same units at another price."),
    ("rounding", "Below half of a minor unit for one unit."),
    ("unknown_product", "A product without any order or transaction here."),
    ("unexplained", "The unexplained rest. Above zero: payments without an order or transaction here."),
  ]

  static let words: [(String, String)] = classes.map { ($0.name.displayText, $0.meaning) }

  /// A long header of two words takes two lines.
  private static func width(of name: String) -> Double {
    name.contains("_") && name.count > 12 ? 11 : Double(max(13, name.count + 2))
  }

  static let columns: [Column<TieOutLine>] =
    [
      Column("level", .word(["units", "country", "amount"]), 9, "What is compared: units, units by country, or money.")
      {
        .text($0.level)
      },
      Column("app", .text, 20, "The app's name in the configuration; of other apps the SKU that Apple names.") {
        .text($0.app)
      },
      Column("product_id", .id, 24, "App Store product identifier.") { .id($0.productId) },
      Column("day", .text, 11, "The day of Apple's report, in tieOut.timeZone.") { .text($0.day) },
      Column("country", .text, 9, "Storefront, ISO 3166 alpha-2; empty when unknown.") {
        Cell($0.country.nonEmpty)
      },
      Column("currency", .currency, 10, "ISO 4217 code, at levels country and amount.") { Cell($0.currency.nonEmpty) },
      Column("class", .word(["sale", "refund", "free", "restore"]), 9, "The kind of the counted units.") {
        .text($0.kind)
      },
    ]
    + classes.enumerated().map { place, described in
      Column(described.name, .exact, width(of: described.name), described.meaning) {
        Cell($0.figures[place], digits: $0.digits)
      }
    }
}

/// A row of `settlement.csv`: sales reports and finance reports by fiscal period and currency.
package struct SettlementLine: Sendable {
  /// Such as `2026-02`.
  package var period: String
  package var currency: String
  /// Sales proceeds, open at the end, settled from before, never collected, settled, difference, gross, commission, tax;
  /// nil: unknown.
  package var figures: [Millionths?]

  package init(period: String, currency: String, figures: [Millionths?]) {
    (self.period, self.currency, self.figures) = (period, currency, figures)
  }

  /// Titles for people of the figures that reconcile sales reports with finance reports.
  package static let titles = [
    "Proceeds earned", "Outstanding at period end", "Carried in", "Written off by Apple", "Proceeds paid", "Difference",
  ]

  /// Titles of the figures that lead from customer amounts to proceeds.
  static let grossTitles = ["Gross", "Commission", "Tax"]

  var proceedsEarned: Millionths? { figures[0] }

  var proceedsPaid: Millionths? { figures[4] }

  var difference: Millionths? { figures[5] }

  /// Digits after the point in the currency.
  var digits: UInt8 { Currency(code: currency)?.digits ?? 2 }
}

extension SettlementLine: TableRow {
  static let table = ReportTable.settlement

  static let shape = ReportTable.Shape(
    title: "Settlement", formulaName: "SettlementTable", fileName: "settlement.csv",
    meaning: """
      Apple's sales reports compared with its finance reports, per fiscal period: sales_proceeds - open_at_end + \
      settled_from_before - never_collected = settled + difference; gross - commission - tax = sales_proceeds. Proceeds are Apple's for the fiscal period; this is no \
      revenue recognition.
      """,
    sheetNote:
      "Proceeds are Apple's for the fiscal period, which is no calendar month; this is no revenue recognition.",
    primaryKey: ["fiscal_period", "currency"], moneyNote: " Apple's proceeds for the fiscal period.",
    pageNote: "&LApple's proceeds, not customer amounts&RPage &P of &N")

  private static let amounts: [(name: String, meaning: String)] = [
    (
      "sales_proceeds",
      "Proceeds earned, by the sales reports of the period's days. Empty: not all of the reports are there."
    ),
    ("open_at_end", "Outstanding at period end: earned in the period, not settled by then."),
    ("settled_from_before", "Carried in: settled in the period, sold before it."),
    ("never_collected", "Written off by Apple: in no finance report after 68 days."),
    ("settled", "The amount that Apple settled in the period, from FINANCE_DETAIL."),
    ("difference", "The unreconciled difference."),
    ("gross", "Customer amounts of these sales. Empty: some were paid in another currency."),
    ("commission", "gross - tax - sales_proceeds. Empty: the tax is not known."),
    ("tax", "Tax in the customer amounts. Empty: Apple's reports do not state it."),
  ]

  private static let rule = " Apple's proceeds for the fiscal period, no revenue recognition."

  static let columns: [Column<SettlementLine>] =
    [
      Column("fiscal_period", .text, 15, "Apple's fiscal year and period, no calendar month.") { .text($0.period) },
      Column("currency", .currency, 10, "ISO 4217 code of the proceeds.") { .text($0.currency) },
    ]
    + amounts.enumerated().map { place, described in
      Column(described.name, .exact, max(16, described.name.widthAsHeader), described.meaning + rule) {
        Cell($0.figures[place], digits: $0.digits)
      }
    }
}

extension Cell {
  /// A number with at least `least` digits after the point.
  init(_ figure: Millionths?, digits least: UInt8) {
    self = figure.map { $0.scaled(digits: least) }.map { .decimal($0.units, digits: $0.digits) } ?? .blank
  }
}

extension String {
  fileprivate var nonEmpty: String? { isEmpty ? nil : self }
}
