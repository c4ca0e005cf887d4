import Reconciliation
import Testing

@testable import TieOut

struct FinanceReportTests {
  static let detail = """
    Vendor Name\tExample Games Ltd
    Start Date\t11/02/2025
    End Date\t11/29/2025
    Transaction Date\tSettlement Date\tApple Identifier\tSKU\tTitle\tDeveloper Name\tProduct Type Identifier\tCountry of Sale\tQuantity\tPartner Share\tExtended Partner Share\tPartner Share Currency\tCustomer Price\tCustomer Currency\tSale or Return\tPromo Code\tOrder Type\tRegion
    10/31/2025\t11/02/2025\t9900000001\tgems60\t60 Gems\t\tIA1\tUS\t3\t0.70\t2.10\tUSD\t0.990\tUSD\tS\t\t\t\t
    11/05/2025\t11/06/2025\t9900000001\tgems60\t60 Gems\t\tIA1\tCA\t2\t0.91\t1.82\tCAD\t1.290\tCAD\tS\t\t\tON\t
    11/07/2025\t11/07/2025\t9900000007\tvip\tVIP\t\tIAY\tDE\t-1\t4.28\t-4.28\tEUR\t-5.990\tEUR\tR\t\t\t\t
    """
  static let financial = """
    Start Date\tEnd Date\tUPC\tVendor Identifier\tQuantity\tPartner Share\tExtended Partner Share\tPartner Share Currency\tSale or Return\tCountry Of Sale
    11/02/2025\t11/29/2025\t\tgems60\t3\t0.70\t2.10\tUSD\tS\tUS
    11/02/2025\t11/29/2025\t\tvip\t-1\t4.28\t-4.28\tEUR\tR\tDE
    Total_Rows\t2
    Total_Amount\t-2.18
    Total_Units\t2
    """

  private func read(_ text: String, period: String? = "2026-02") throws -> ([SettlementRow], FinanceReport.Reading) {
    var rows: [SettlementRow] = []
    let period = try period.map { try #require(FiscalCalendar.period(named: $0)) }
    let reading = try FinanceReport.read(Array(text.utf8), period: period) { rows.append($0) }
    return (rows, reading)
  }

  @Test func detailReportsStateBothDates() throws {
    let (rows, reading) = try read(Self.detail)
    #expect(reading.kind == .detail && reading.rows == 3 && reading.first == ReportDay("2025-11-02"))
    #expect(rows[0].transactionDay == ReportDay("2025-10-31") && rows[0].settlementDay == ReportDay("2025-11-02"))
    #expect(rows[2].extendedShare == number("-4.28") && rows[2].quantity == Millionths(-1))
  }

  @Test func aFileCutWithinItsHeaderIsNotAPeriodWithoutSettlements() throws {
    let head = Self.detail.split(separator: "\n").prefix(4).joined(separator: "\n")
    #expect(try read(head + "\n").0.isEmpty)
    #expect(throws: ReportProblem.cutHeader) { try read(head) }
    #expect(throws: ReportLines.foreignByte(in: 1)) { try read(Self.detail.replacing("\n", with: "\r")) }
  }

  @Test func totalsAreComparedAndNeverAdded() throws {
    let (rows, reading) = try read(Self.financial)
    #expect(rows.count == 2 && reading.kind == .financial)
    for wrong in [("Total_Rows\t2", "Total_Rows\t3"), ("-2.18", "-2.19"), ("Total_Units\t2", "Total_Units\t4")] {
      #expect(throws: ReportProblem.self) { try read(Self.financial.replacing(wrong.0, with: wrong.1)) }
    }
    #expect(throws: Never.self) { try read(Self.financial.replacing("Total_Amount\t", with: "Total_Amount:")) }
  }

  @Test func sumsByCountryMustEqualTheRows() throws {
    let block = """

      Country Of Sale\tPartner Share Currency\tQuantity\tExtended Partner Share
      US\tUSD\t3\t2.10
      CA\tCAD\t2\t1.82
      DE\tEUR\t-1\t-4.28
      Total_Rows\t3
      """
    #expect(try read(Self.detail + block).0.count == 3)
    #expect(throws: ReportProblem("the sums by country below the rows are not those of the rows")) {
      try read(Self.detail + block.replacing("1.82", with: "1.83"))
    }
  }

  /// A request for a calendar month instead of a fiscal period returns the file of another period.
  @Test func aFileWithDatesOfAnotherPeriodIsRejected() throws {
    #expect(throws: ReportProblem.self) { try read(Self.detail, period: "2026-03") }
    #expect(throws: ReportProblem.self) { try read(Self.financial, period: "2025-11") }
    #expect(try read(Self.detail, period: nil).1.last == ReportDay("2025-11-29"))
  }

  @Test func aSettlementOutsideThePeriodIsRefused() {
    #expect(throws: ReportProblem.self) { try read(Self.detail.replacing("11/06/2025", with: "12/06/2025")) }
  }

  @Test func unknownFooterTextIsRejected() {
    #expect(throws: ReportProblem(line: 8, "“Note” is neither a date nor one of the totals")) {
      try read(Self.detail + "\nNote\tx")
    }
  }

  @Test func regionsAreReadFromTheName() {
    let regions = [
      "80012345_0226_ZZ.txt": "ZZ", "80012345_0226_us.txt.gz": "US", "80012345_202602_Z1.txt.gz": "Z1",
      "80012345_0226_EU (1).txt": "EU",
    ]
    for (name, region) in regions { #expect(ReportFileName.region(ofFinanceFile: name) == region) }
    for name in ["80012345_2026-02.txt", "80012345_02.txt", "80012345_january.txt", "US.txt"] {
      #expect(ReportFileName.region(ofFinanceFile: name) == nil, "\(name)")
    }
  }

  @Test func filesAreDistinguishedByTheirFirstLine() {
    #expect(FinanceReport.kind(ofFirstLine: "Vendor Name\tExample") == .detail)
    #expect(FinanceReport.kind(ofFirstLine: "Start Date\tEnd Date\tUPC\tVendor Identifier") == .financial)
    #expect(FinanceReport.kind(ofFirstLine: "fiscal_period,currency") == nil)
    #expect(SalesReport.isHeader(SampleSales.columns.joined(separator: "\t")))
    #expect(Payment.isHeader("fiscal_period,currency,owed"))
  }
}

struct PaymentsTests {
  static let header =
    "fiscal_period,currency,earned,taxes_adjustments,balance_forward,owed,exchange_rate,bank_currency,proceeds,paid_on\n"

  private func payment(_ row: String) throws -> Payment {
    let file = try Payment.read(Array((Self.header + row + "\n").utf8))
    #expect(file.payments.count + file.problems.count == 1)
    if let problem = file.problems.first { throw problem }
    return try #require(file.payments.first)
  }

  @Test func aConsistentPaymentHasNoProblems() throws {
    let payment = try payment("2026-02,USD,100.00,-5.00,10.00,105.00,0.912345,EUR,95.80,2026-01-01")
    #expect(payment.problems(earned: number("100.00")).isEmpty && payment.problems(earned: nil).isEmpty)
  }

  /// The rate is calculated in a spreadsheet. With Apple's five digits the payment would differ by 0.10 EUR.
  @Test func anExchangeRateHasMoreDigitsThanMoney() throws {
    let payment = try payment("2026-02,USD,1000000,0,0,1000000,0.919449901768173,EUR,919449.90,")
    #expect(payment.problems(earned: nil).isEmpty)
  }

  @Test func extremePaymentNumbersAreReported() throws {
    let most = String(repeating: "9", count: 18)
    #expect(try payment("2026-02,USD,\(most),0,0,\(most),\(most),EUR,-\(most),").problems(earned: nil).count == 1)
  }

  @Test func eachInconsistentSumIsReported() throws {
    let payment = try payment("2026-02,\"USD\",100.00,-5.00,10.00,106.00,0.9,EUR,95.80,")
    #expect(payment.problems(earned: number("99.00")).count == 3)
  }

  @Test func quotedValuesAreRead() throws {
    let payment = try payment(
      "2027-01,USD,\"6,889.89\",\"-1,000.00\",0,\"5,889.89\",0.92,EUR,\"5418.70\", \"2026-12-03\" ")
    #expect(payment.earned == number("6889.89") && payment.problems(earned: number("6889.89")).isEmpty)
    #expect(payment.paidOn?.description == "2026-12-03")
    for row in [
      "2027-01,EUR,\"6,88\",0,0,1,1,EUR,1,", "2027-01,EUR,\"0,688\",0,0,1,1,EUR,1,", "2027-01,EUR,\"1,0,0,1,1,EUR,1,",
    ] { #expect(throws: ReportProblem.self, "\(row)") { try self.payment(row) } }
  }

  /// Below Apple's threshold nothing is paid, and the balance goes forward.
  @Test func aPeriodWithoutAPaymentHasNoBankCheck() throws {
    #expect(try payment("2027-01,USD,5.00,0,0,5.00,,,,").problems(earned: number("5.00")).isEmpty)
    #expect(try payment("2027-01,USD,5.00,0,0,6.00,,EUR,,").problems(earned: number("5.00")).count == 1)
  }

  @Test func aDateThatIsNoneIsRefused() {
    #expect(throws: ReportProblem(line: 2, "paid_on is “2026-02-30”, expected a date such as 2026-12-03")) {
      try payment("2027-01,USD,1,0,0,1,1,USD,1,2026-02-30")
    }
  }

  @Test func oneUnreadableLineHidesNoOther() throws {
    let rows = ["2027-01,USD,many,0,0,1,1,USD,1,", "2027-01,EUR,1,0,0,2,1,EUR,2,"]
    let file = try Payment.read(Array((Self.header + rows.joined(separator: "\r\n")).utf8))
    #expect(file.problems == [ReportProblem(line: 2, "earned is “many”, expected a decimal number")])
    #expect(Payment.problems(of: file.payments) { _, _ in nil }.count == 1)
  }

  @Test func aPeriodAndCurrencyAreEnteredOnce() throws {
    let payments = try ["USD", "EUR", "USD"].map { try payment("2027-01,\($0),1,0,0,1,1,\($0),1,") }
    #expect(
      Payment.problems(of: payments) { _, _ in nil } == [
        "payment 2027-01 USD is entered more than once; keep one line, with the sums of all vendors"
      ])
  }

  @Test func aNULInAPaymentIsRefused() {
    #expect(throws: ReportLines.foreignByte(in: 2)) { try payment("2026-02,U\0SD,1,0,0,1,1,USD,1,") }
  }

  @Test func aMonthThatIsNoPeriodIsRefused() {
    #expect(throws: ReportProblem.self) { try payment("2026-13,USD,1,0,0,1,1,USD,1,") }
  }
}
