import Gzip
import Reconciliation
import Testing

@testable import TieOut

struct SalesReportTests {
  private static func example() -> SampleSales {
    var sales = SampleSales()
    sales.add(units: "41")
    sales.add(units: "7")
    sales.add(units: "-2", price: "-0.99")
    sales.add(units: "5", proceeds: "84", country: "JP", currency: "JPY", price: "120")
    sales.add("vip", type: "IAY", units: "3", proceeds: "4.28", country: "DE", currency: "EUR", price: "5.99")
    sales.add("vip", type: "IAY", units: "2", proceeds: "0", country: "DE", currency: "EUR", price: "0")
    sales.add("GAME01", type: "7F", units: "310", proceeds: "0", price: "0", parent: "")
    return sales
  }

  @Test func rowsAreSummedAndNeverLookedUp() throws {
    let rows = try SampleSales.read(Self.example().bytes)
    let gems = rows.filter { $0.sku == "gems60" && $0.country == "US" }
    #expect(gems.map(\.units).reduce(.zero, +) == Millionths(46))
    #expect(gems.map { $0.units.times($0.developerProceeds) ?? .zero }.reduce(.zero, +) == number("32.20"))
  }

  /// A negative price times negative units would be a sale.
  @Test func aRefundStaysNegative() throws {
    let refund = try #require(try SampleSales.read(Self.example().bytes).first { $0.units < .zero })
    #expect(refund.units.times(refund.developerProceeds) == number("-1.40"))
  }

  @Test func columnsAreFoundByNameInAnyOrder() throws {
    var sales = Self.example()
    let rows = try SampleSales.read(sales.bytes)
    sales.columns = ["Contingent App Name", "Something New"] + sales.columns.reversed()
    #expect(try SampleSales.read(sales.bytes) == rows)
    sales.columns = SampleSales.columns.map { "  " + $0.uppercased() + " " }
    sales.rows = sales.rows.map { row in
      Dictionary(uniqueKeysWithValues: row.map { ("  " + $0.key.uppercased() + " ", $0.value) })
    }
    #expect(try SampleSales.read(sales.bytes) == rows)
    sales.columns.append("Something New")
    let seen = try SalesReport.read(sales.bytes, days: nil) { _ in }
    #expect(seen.unknownColumns == ["something new"] && seen.rows == 7)
  }

  @Test func aMissingColumnIsNamed() {
    var sales = Self.example()
    sales.columns.removeAll { $0 == "Customer Price" }
    #expect(throws: ReportProblem(line: 1, "the column “Customer Price” is missing")) {
      try SampleSales.read(sales.bytes)
    }
  }

  @Test func blanksExtraFieldsLineEndsAndMarksAreTolerated() throws {
    let plain = Self.example().text
    let rows = try SampleSales.read(Array(plain.utf8))
    let variants = [
      "\u{FEFF}" + plain, plain.replacing("\n", with: "\r\n"), plain.replacing("\t\t", with: "\t \t"),
      plain.replacing("iPhone\n", with: "iPhone\t\n"), plain.replacing("\tiPhone\n", with: "\n"),
      String(plain.dropLast()), plain + "\n",
    ]
    for text in variants { #expect(try SampleSales.read(Array(text.utf8)) == rows) }
  }

  @Test(arguments: [
    (4, ["Units": "1,000"], 6, "Units is “1,000”, expected a decimal number"),
    (2, ["Begin Date": "31/12/2026"], 4, "Begin Date is “31/12/2026”, expected a date such as 11/19/2026"),
    (2, ["End Date": "11/19/2016"], 4, "ends on 2016-11-19, before it begins on 2026-11-19"),
  ])
  func aBadRowMakesTheWholeFileUnreadableWithItsLine(row: Int, cell: [String: String], line: Int, words: String) {
    var sales = Self.example()
    sales.rows[row].merge(cell) { $1 }
    #expect(throws: ReportProblem(line: line, words)) { try SampleSales.read(sales.bytes) }
    #expect(throws: ReportProblem(line: line, words)) { _ = try SalesReport.read(sales.bytes, days: nil) { _ in } }
  }

  /// Postgres stores no NUL. With carriage returns alone, rows would belong to the line before them.
  @Test(arguments: [("\tgems60\t", "\tge\0ms\t", 2), ("\n", "\r", 1), ("iPhone\n", "iPhone\r", 2)])
  func aNULOrABareCarriageReturnMakesTheWholeFileUnreadable(text: String, replacement: String, line: Int) {
    let changed = Self.example().text.replacing(text, with: replacement)
    #expect(throws: ReportLines.foreignByte(in: line)) { try SampleSales.read(Array(changed.utf8)) }
  }

  @Test func aFileCutWithinItsHeaderIsNotADayWithoutSales() throws {
    let header = SampleSales().bytes
    for count in header.indices {
      #expect(throws: ReportProblem.self, "\(count)") { try SampleSales.read(Array(header[..<count])) }
    }
    #expect(throws: ReportProblem.cutHeader) { try SampleSales.read(Array(header.dropLast())) }
  }

  @Test func aReportOfAnotherDayIsRefused() {
    #expect(throws: ReportProblem.self) { try SampleSales.read(Self.example().bytes, day: "2026-11-18") }
  }

  @Test func compressedOnceTwiceOrNotAtAllIsTheSame() throws {
    let plain = Self.example().bytes
    let rows = try SampleSales.read(plain)
    let once = try gzip(plain)
    #expect(try SampleSales.read(once) == rows && SampleSales.read(gzip(once)) == rows)
    // Concatenated gzip streams are one.
    let half = plain.count / 2
    #expect(try SampleSales.read(gzip(Array(plain[..<half])) + gzip(Array(plain[half...]))) == rows)
  }

  @Test func aCutOrDamagedFileFailsWhereverItIsCut() throws {
    let whole = try gzip(Self.example().bytes)
    for count in 2..<whole.count { #expect(throws: GunzipError.cut) { try SampleSales.read(Array(whole[..<count])) } }
    var damaged = whole
    damaged[whole.count - 5] ^= 1
    #expect(throws: GunzipError.damaged) { try SampleSales.read(damaged) }
  }

  @Test func aDecompressionBombIsStoppedAtItsLimit() throws {
    let bomb = try gzip([UInt8](repeating: UInt8(ascii: "x"), count: 3 << 20))
    #expect(bomb.count < 10_000)
    #expect(throws: GunzipError.tooLong(limit: 1 << 20)) { try Gunzip.text(of: bomb, limit: 1 << 20) }
    #expect(throws: ReportProblem.self) { try SampleSales.read(bomb) }
  }

  @Test(
    arguments: [("'a'", "a"), ("'a','b'", "a,b"), ("'a', 'b.c'", "a,b.c"), ("a,b", "a,b")] as [(String, Identifier)])
  func itemsOfAdvancedCommerceAreOneProduct(written: String, product: Identifier) throws {
    var sales = SampleSales()
    sales.add(written)
    #expect(try SampleSales.read(sales.bytes).map(\.sku) == [product])
  }

  /// A SKU and three IDs are an index key, whose length Postgres limits.
  @Test func unstorableIDsAreRejectedByLine() throws {
    func report(_ sku: Int, parent: Int = 6) -> [UInt8] {
      var sales = SampleSales()
      sales.add()
      sales.add(String(repeating: "x", count: sku), parent: String(repeating: "x", count: parent))
      return sales.bytes
    }
    #expect(try SampleSales.read(report(2_000, parent: 200)).count == 2)
    let shown = String(repeating: "x", count: 80)
    #expect(throws: ReportProblem(line: 3, "SKU is “\(shown)”, expected at most 2000 bytes")) {
      try SampleSales.read(report(2_001))
    }
    #expect(throws: ReportProblem(line: 3, "Parent Identifier is “\(shown)”, expected at most 200 bytes")) {
      try SampleSales.read(report(6, parent: 201))
    }
  }

  @Test func emptyFilesAreRejectedAndBareHeadersAccepted() throws {
    #expect(throws: ReportProblem("the report has no header")) { try SampleSales.read([]) }
    #expect(try SampleSales.read(SampleSales().bytes).isEmpty)
  }

  /// Mac codes must not be lost, restores are not sales, and unknown codes are kept.
  @Test(arguments: [
    ("IA1", true, SalesRowKind.purchase), ("IA1-M", true, .purchase), ("FI1", true, .purchase),
    ("IA9", true, .purchase), ("IA9-M", true, .purchase), ("IAY", true, .purchase), ("IAY-M", true, .purchase),
    ("IA3", true, .restore),
    ("7F", false, .app), ("1-B", false, .app), ("IZ9", true, .unknown), ("XX", false, .app),
  ])
  func productTypesAreDistinguished(code: String, hasParent: Bool, kind: SalesRowKind) {
    #expect(SalesRowKind(code: Identifier(code), hasParent: hasParent) == kind)
  }

  @Test(
    arguments: [
      (.purchase, "0.99", 0, nil), (.purchase, "0.99", -1, .refund), (.unknown, "0.99", 1, .sale),
      (.purchase, "0", 1, .free), (.restore, "0", 1, .restore), (.app, "0.99", 1, nil),
    ] as [(SalesRowKind, String, Int8, TieOutClass?)])
  func rowsWithoutUnitsAreKeptApart(row: SalesRowKind, price: String, sign: Int8, kind: TieOutClass?) {
    #expect(AppleUnits.kind(of: row, price: number(price), sign: sign) == kind)
  }

  @Test func theMemoryLimitDoesNotChangeSums() throws {
    let rows = try SampleSales.read(Self.example().bytes)
    func totals(limit: Int) throws -> [SalesSums.Key: Millionths] {
      var totals: [SalesSums.Key: Millionths] = [:]
      let spill: (SalesSums.Part) -> Void = { for (key, sum) in $0 { totals[key, default: .zero] += sum.units } }
      var sums = SalesSums(limit: limit)
      for row in rows { try sums.add(row, spill: spill) }
      try sums.flush(spill)
      return totals
    }
    let whole = try totals(limit: 1 << 16)
    #expect(whole.count == 6)
    #expect(try totals(limit: 1) == whole && totals(limit: 2) == whole)
  }

  @Test(arguments: [
    ("S_D_80012345_20261119.txt.gz", "2026-11-19", "2026-11-19"),
    ("S_D_80012345_20261119_V1_0.txt.gz", "2026-11-19", "2026-11-19"),
    ("s_w_80012345_20261122.txt", "2026-11-16", "2026-11-22"),
    ("S_M_80012345_202602.txt.gz", "2026-02-01", "2026-02-28"),
    ("S_Y_80012345_2026.txt", "2026-01-01", "2026-12-31"),
  ])
  func filesAreKnownByTheirNames(name: String, first: String, last: String) throws {
    let file = try #require(ReportFileName(name))
    #expect(file.vendor == "80012345" && file.days.lowerBound.description == first)
    #expect(file.days.upperBound.description == last)
  }

  @Test(arguments: [
    "Subscription_80012345_20261119.txt", "S_D_80012345.txt", "payments.csv", "S_D_x_20261119.txt",
    "S_D_1_20261319.txt",
  ])
  func otherNamesAreNotSalesReports(name: String) { #expect(ReportFileName(name) == nil) }
}
