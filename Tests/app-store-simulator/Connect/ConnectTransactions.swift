import Foundation
import SampleShops

/// The units that Apple counts and settles for a world's transactions.
struct ConnectTransactions {
  let world: World
  let horizon: Int64

  static let salesColumns = [
    "Provider", "Provider Country", "SKU", "Developer", "Title", "Version", "Product Type Identifier", "Units",
    "Developer Proceeds", "Begin Date", "End Date", "Customer Currency", "Country Code", "Currency of Proceeds",
    "Apple Identifier", "Customer Price", "Promo Code", "Parent Identifier", "Subscription", "Period", "Category",
    "CMB",
    "Device", "Supported Platforms", "Proceeds Reason", "Preserved Pricing", "Client", "Order Type",
  ]

  private struct Entry {
    var transaction: World.Transaction
    var day: String
    var units: Int
    var price: Int64
    var type: String
    /// Seven tenths of the price, rounded down.
    var share: Int64 { price * 7 / 10 }
  }

  private struct RowKey: Hashable {
    var sku: String
    var parent: String
    var type: String
    var price: Int64
    var currency: String
    var country: String
    var isRenewal: Bool
    var isRefund: Bool
  }

  // MARK: - Sales reports

  func salesRows(from first: String, to last: String) -> [[String]] {
    var sums: [RowKey: Int] = [:]
    for entry in entries() where entry.day >= first && entry.day <= last {
      let transaction = entry.transaction
      let key = RowKey(
        sku: transaction.productId, parent: world.sku(bundleId: transaction.bundleId), type: entry.type,
        price: entry.price, currency: transaction.currency ?? "USD", country: Self.country(transaction),
        isRenewal: transaction.isRenewal, isRefund: entry.units < 0)
      sums[key, default: 0] += entry.units
    }
    let own = world.connect.rows.filter { row in
      guard let day = row["Begin Date"] else { return false }
      return day >= first && day <= last
    }
    let (begin, end) = (PacificCalendar.american(first), PacificCalendar.american(last))
    return sums.filter { $0.value != 0 }.map { key, units in
      row([
        "Provider": "APPLE", "Provider Country": "US", "SKU": key.sku, "Title": key.sku,
        "Product Type Identifier": key.type, "Units": "\(units)",
        "Developer Proceeds": ConnectMoney.text(hundredths: key.price * 7 / 10), "Begin Date": begin, "End Date": end,
        "Customer Currency": key.currency, "Country Code": key.country, "Currency of Proceeds": key.currency,
        "Apple Identifier": "9900000001",
        "Customer Price": ConnectMoney.text(hundredths: key.isRefund ? -key.price : key.price),
        "Parent Identifier": key.parent, "Subscription": key.isRenewal ? "Renewal" : "", "Device": "iPhone",
      ])
    }.sorted { $0.joined(separator: "\t") < $1.joined(separator: "\t") }
      + own.map { fields in row(fields.merging(["Begin Date": begin, "End Date": end]) { $1 }) }
  }

  private func row(_ fields: [String: String]) -> [String] { Self.salesColumns.map { fields[$0] ?? "" } }

  private func entries() -> [Entry] {
    world.allTransactions.flatMap { transaction -> [Entry] in
      guard transaction.environment == .production, transaction.exists(by: horizon), transaction.isUnreported != true,
        transaction.inAppOwnershipType != "FAMILY_SHARED"
      else { return [] }
      let quantity = transaction.quantity ?? 1
      let price = (transaction.reportedPrice ?? transaction.price ?? 990) / 10 / Int64(max(1, quantity))
      let isRestore = transaction.type == .nonConsumable && transaction.originalId != transaction.transactionId
      let type =
        switch transaction.type {
        case .consumable: "IA1"
        case .nonConsumable: isRestore ? "IA3" : "IA1"
        case .autoRenewable: "IAY"
        case .nonRenewing: "IA9"
        }
      let isFree = isRestore || transaction.isTrialPeriod == true || transaction.price == 0
      var entries = [
        Entry(
          transaction: transaction, day: PacificCalendar.day(transaction.reportedDate ?? transaction.purchaseDate),
          units: quantity, price: isFree ? 0 : price, type: type)
      ]
      if let revoked = transaction.revocationDate, revoked <= horizon, !transaction.isFamilyRevocation, !isRestore {
        let day = PacificCalendar.day(transaction.refundReportedDate ?? revoked)
        let part = Int64(transaction.revocationPercentage ?? 100_000)
        // A prorated refund is one unit at an odd price.
        entries.append(
          Entry(
            transaction: transaction, day: day, units: part < 100_000 ? -1 : -quantity, price: price * part / 100_000,
            type: type))
        if let reversed = transaction.refundReversedDate, reversed <= horizon {
          entries.append(
            Entry(
              transaction: transaction, day: PacificCalendar.day(reversed), units: quantity, price: price, type: type))
        }
      }
      return entries
    }
  }

  private static func country(_ transaction: World.Transaction) -> String {
    let alpha3 = transaction.storefront ?? "USA"
    return countries[alpha3] ?? String(alpha3.prefix(2))
  }

  private static let countries = [
    "USA": "US", "DEU": "DE", "JPN": "JP", "GBR": "GB", "FRA": "FR", "CHN": "CN", "KWT": "KW", "CAN": "CA", "AUT": "AT",
  ]

  // MARK: - Finance reports

  private struct Settled {
    var entry: Entry
    var settlementDay: String
  }

  /// Days from sale to settlement, with their frequencies in a real report of 76 rows.
  private static let lags = [0: 31, 1: 39, 2: 2, 3: 1, 4: 1, 9: 1, 10: 1]

  /// A share of the sales is never settled.
  private func settled(_ period: (first: String, last: String)) -> [Settled] {
    entries().compactMap { entry -> Settled? in
      guard entry.price > 0 else { return nil }
      var generator = SampleRandom(seed: 7, text: entry.transaction.transactionId, count: 0)
      if Int.random(in: 0..<1_000, using: &generator) < world.connect.uncollectedPermille { return nil }
      var draw = Int.random(in: 0..<76, using: &generator)
      var lag = 0
      for (days, count) in Self.lags.sorted(by: { $0.key < $1.key }) {
        lag = days
        if draw < count { break }
        draw -= count
      }
      let day = PacificCalendar.adding(lag, to: entry.day)
      return day >= period.first && day <= period.last ? Settled(entry: entry, settlementDay: day) : nil
    }
  }

  /// The settled units by the columns of a row, sorted by them.
  private func sums(
    _ period: (first: String, last: String), by columns: (Settled) -> [String]
  ) -> [(key: [String], value: Int64)] {
    var sums: [[String]: Int64] = [:]
    for row in settled(period) { sums[columns(row), default: 0] += Int64(row.entry.units) }
    return sums.sorted { $0.key.joined(separator: "\t") < $1.key.joined(separator: "\t") }
  }

  func detail(_ period: (first: String, last: String), name: String) -> ConnectReportText {
    let header = [
      "Transaction Date", "Settlement Date", "Apple Identifier", "SKU", "Title", "Developer Name",
      "Product Type Identifier", "Country of Sale", "Quantity", "Partner Share", "Extended Partner Share",
      "Partner Share Currency", "Customer Price", "Customer Currency", "Sale or Return", "Promo Code", "Order Type",
      "Region",
    ]
    let rows = sums(period) { row in
      let (entry, currency) = (row.entry, row.entry.transaction.currency ?? "USD")
      let isReturn = entry.units < 0
      return [
        PacificCalendar.american(entry.day), PacificCalendar.american(row.settlementDay), entry.transaction.productId,
        entry.type, Self.country(entry.transaction), ConnectMoney.text(hundredths: entry.share), currency,
        ConnectMoney.text(hundredths: isReturn ? -entry.price : entry.price), isReturn ? "R" : "S",
      ]
    }.map { key, units in
      [
        key[0], key[1], "9900000001", key[2], key[2], "", key[3], key[4], "\(units)", key[5],
        ConnectMoney.text(hundredths: units * ConnectMoney.hundredths(key[5])), key[6], key[7], key[6], key[8], "", "",
        "", "",
      ]
    }
    return ConnectReportText(
      preamble: [
        ["Vendor Name", "Example Games Ltd"], ["Start Date", PacificCalendar.american(period.first)],
        ["End Date", PacificCalendar.american(period.last)],
      ], header: header, rows: rows, fileName: "\(world.connect.vendor)_\(name.replacing("-", with: ""))_Z1.txt.gz")
  }

  func financial(_ period: (first: String, last: String), name: String) -> ConnectReportText {
    let header = [
      "Start Date", "End Date", "UPC", "ISRC/ISBN", "Vendor Identifier", "Quantity", "Partner Share",
      "Extended Partner Share", "Partner Share Currency", "Sale or Return", "Apple Identifier",
      "Artist/Show/Developer/Author", "Title", "Label/Studio/Network/Developer/Publisher", "Grid",
      "Product Type Identifier", "ISAN/Other Identifier", "Country Of Sale", "Pre-order Flag", "Promo Code",
      "Customer Price", "Customer Currency",
    ]
    let sums = sums(period) { row in
      let (entry, currency) = (row.entry, row.entry.transaction.currency ?? "USD")
      return [
        entry.transaction.productId, ConnectMoney.text(hundredths: entry.share), currency, entry.units < 0 ? "R" : "S",
        entry.type, Self.country(entry.transaction), ConnectMoney.text(hundredths: entry.price),
      ]
    }
    let (first, last) = (PacificCalendar.american(period.first), PacificCalendar.american(period.last))
    var (units, amount): (Int64, Int64) = (0, 0)
    let rows = sums.map { key, count in
      let extended = count * ConnectMoney.hundredths(key[1])
      units += count
      amount += extended
      return [
        first, last, "", "", key[0], "\(count)", key[1], ConnectMoney.text(hundredths: extended), key[2], key[3],
        "9900000001", "", key[0], "", "", key[4], "", key[5], "", "", key[6], key[2],
      ]
    }
    return ConnectReportText(
      header: header, rows: rows,
      footer: [
        ["Total_Rows", "\(rows.count)"], ["Total_Amount", ConnectMoney.text(hundredths: amount)],
        ["Total_Units", "\(units)"],
      ], fileName: "\(world.connect.vendor)_\(name.replacing("-", with: ""))_ZZ.txt.gz")
  }
}
