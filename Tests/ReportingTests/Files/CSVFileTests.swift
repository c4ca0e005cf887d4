import Foundation
import Reconciliation
import Testing

@testable import Reporting

struct CSVFileTests {
  private func lines(_ rows: String...) -> String { rows.map { $0 + "\r\n" }.joined() }

  @Test func ordersCsvListsSettledUndeliveredUnpaidSandboxAndBadRows() throws {
    var report = try SampleReport()
    report.add(try OrderFixture(amount: money(199, "USD")).judgement("o1"))
    report.add(try OrderFixture(amount: money(300, "JPY"), isDelivered: false).judgement("o2"))
    report.add(try OrderFixture(userId: "=cmd()", amount: money(1_250, "KWD"), isPaid: false).judgement("o3"))
    report.add(try OrderFixture(userId: "tester", amount: money(199, "USD"), environment: .sandbox).judgement("o4"))
    report.add(
      Judgement(
        reporting: BadOrder(
          orderId: "o5", userId: "u,5", bundleId: nil, productId: "gems", quantity: -2, amountText: "-1.999",
          currencyText: "usd", statusText: "@paid", transactionId: "T9", createdAt: try instant("2026-11-19T11:00:00Z"),
          defect: "amount below zero")))
    report.add(
      Judgement(
        reporting: BadOrder(
          orderId: "o6", userId: "u6", bundleId: nil, productId: "gems", quantity: nil, amountText: "1.99",
          currencyText: "USD", statusText: "pending", transactionId: nil,
          createdAt: try instant("2026-11-19T11:00:00Z"), defect: "quantity is missing")))
    #expect(
      try report.file("orders.csv")
        == lines(
          "order_id,user_id,product_id,quantity,currency,amount,status,disposition,payment,payment_reason,"
            + "transaction_id,environment,created_at,paid_at,delivered_at,refunded_at,checked_at,findings,app,country,business_day",
          "o1,u1,gems.100,1,USD,1.99,verified,settled,paid,,T-o1,Production,2026-11-19T10:00:00Z,"
            + "2026-11-19T10:00:01Z,2026-11-19T10:00:21Z,,2026-11-20T00:00:00Z,,game,DE,2026-11-19",
          "o2,u1,gems.100,1,JPY,300,verified,paid_not_delivered,paid,,T-o2,Production,2026-11-19T10:00:00Z,"
            + "2026-11-19T10:00:01Z,,,2026-11-20T00:00:00Z,paid_not_delivered,game,DE,2026-11-19",
          "o3,'=cmd(),gems.100,1,KWD,1.250,verified,delivered_not_paid,unpaid,no_evidence,,,2026-11-19T10:00:00Z,"
            + ",2026-11-19T10:00:21Z,,,delivered_not_paid,game,,2026-11-19",
          "o4,tester,gems.100,1,USD,1.99,verified,sandbox,unpaid,sandbox,T-o4,Sandbox,2026-11-19T10:00:00Z,"
            + "2026-11-19T10:00:01Z,2026-11-19T10:00:21Z,,2026-11-20T00:00:00Z,,game,DE,2026-11-19",
          "o5,\"u,5\",gems,-2,usd,-1.999,'@paid,bad_row,,,T9,,2026-11-19T11:00:00Z,,,,,bad_row,game,,2026-11-19",
          "o6,u6,gems,,USD,1.99,pending,bad_row,,,,,2026-11-19T11:00:00Z,,,,,bad_row,game,,2026-11-19"))
  }

  @Test func theCellFindingsOfAnOrderListsEachFindingKindOnce() throws {
    var report = try SampleReport()
    var judgement = try OrderFixture(amount: money(199, "USD"), isDelivered: false).judgement("o1")
    for receipt in ["r1", "r2"] {
      judgement.findings.append(Finding(kind: .badRow, subject: .receipt(Identifier(receipt)), reason: "broken"))
    }
    report.add(judgement)
    #expect(try report.file("orders.csv").hasSuffix(",paid_not_delivered bad_row,game,DE,2026-11-19\r\n"))
  }

  @Test func findingsCsvHasAllColumnsBlankCellsAgesAndEscapedFormulas() throws {
    var report = try SampleReport()
    var full = Finding(kind: .wrongUser, subject: .order("o1"), reason: "=HYPERLINK(\"evil\")")
    full.orderId = "o1"
    full.userId = "u1"
    full.productId = "gems.100"
    full.transactionId = "2000000000000001"
    full.receiptId = "r1"
    full.deliveryId = "d1"
    full.environment = .production
    full.amount = try money(300, "JPY")
    full.atStake = try money(300, "JPY")
    full.bundleId = "com.example.game"
    full.country = Country(storefront: "JPN")
    full.paidAt = try instant("2026-11-19T10:00:01Z")
    full.deliveredAt = try instant("2026-11-19T10:00:21Z")
    full.occurredAt = try instant("2026-11-10T10:00:01Z")
    report.report(
      ReportedFinding(
        full, firstSeen: SampleReport.asOf - .hours(71), status: "acknowledged", owner: "-Dana", remark: "+1, really",
        due: "2026-12-01"))
    var abroad = Finding(kind: .chargedTwice, subject: .order("o2"), reason: "Twice.")
    abroad.amount = try money(199, "USD")
    abroad.atStake = try money(210, "EUR")
    report.report(ReportedFinding(abroad, firstSeen: SampleReport.asOf + .hours(1)))
    let text = try report.file("findings.csv")
    let header =
      "finding_id,kind,severity,order_id,user_id,product_id,transaction_id,receipt_id,delivery_id,environment,"
      + "currency,amount,at_stake,paid_at,delivered_at,first_seen,age_days,status,owner,reason,suggested_action,"
      + "occurred_at,days_since,due,remark,app,country,business_day"
    let fullRow =
      "\(full.findingId),wrong_user,critical,o1,u1,gems.100,2000000000000001,r1,d1,Production,JPY,300,300,"
      + "2026-11-19T10:00:01Z,2026-11-19T10:00:21Z,2026-11-17T01:00:00Z,2,acknowledged,'-Dana,"
      + "\"'=HYPERLINK(\"\"evil\"\")\",\"Check which account paid and which account received the goods, and move the goods.\","
      + "2026-11-10T10:00:01Z,9,2026-12-01,\"'+1, really\",game,JP,2026-11-10"
    // The amount at risk may have another currency than the order.
    let abroadRow =
      "\(abroad.findingId),charged_twice,critical,,,,,,,,EUR,,2.10,,,2026-11-20T01:00:00Z,0,open,,Twice.,"
      + FindingKind.chargedTwice.suggestedAction + ",,,,,game,,"
    let rows = [(full.findingId, fullRow), (abroad.findingId, abroadRow)].sorted { $0.0 < $1.0 }.map(\.1)
    #expect(text == lines(header, rows[0], rows[1]))
  }

  @Test func theMeaningOfAtStakeListsTheFindingKindsWhoseAmountAtRiskMayBeUnknown() {
    let meaning = ReportTable.findings.columns.first { $0.name == "at_stake" }?.meaning ?? ""
    let told = FindingKind.allCases.filter { meaning.contains($0.rawValue) }
    #expect(Set(told) == [.orphanPayment, .chargedTwice, .orphanDelivery, .partialRefund, .unreportedByShop])
  }

  @Test func aFindingIDIsAHashOfTheKindAndTheSubjectOnly() {
    // printf 'paid_not_delivered\norder\no1' | sha256sum | cut -c 1-32
    var finding = Finding(kind: .paidNotDelivered, subject: .order("o1"), reason: "one")
    #expect(finding.findingId == "8f244593dbee85196e678719192ddb85")
    let id = finding.findingId
    finding.reason = "other"
    finding.amount = nil
    #expect(finding.findingId == id)
    #expect(Finding(kind: .badRow, subject: .order("o1"), reason: "one").findingId != id)
  }

  @Test func usersCsvAndAmountsCsvHaveOneRowPerKeySortedByBytesAndByValue() throws {
    var report = try SampleReport()
    let stories: [(Identifier, Identifier, Money, isDelivered: Bool)] = [
      ("u2", "b", try money(1_000, "USD"), true), ("u10", "b", try money(200, "USD"), false),
      ("u2", "a", try money(200, "USD"), true), ("u2", "b", try money(200, "USD"), true),
      ("u2", "a", try money(300, "JPY"), true), ("U3", "a", try money(1_250, "KWD"), true),
      ("u2", "B", try money(200, "USD"), true),
    ]
    for (number, story) in stories.enumerated() {
      report.add(
        try OrderFixture(userId: story.0, productId: story.1, amount: story.2, isDelivered: story.isDelivered)
          .judgement(Identifier("o\(number)")))
    }
    #expect(
      try report.file("users.csv")
        == lines(
          "user_id,currency,orders,ordered,settled,paid_not_delivered,delivered_not_paid,partly_delivered,refunded,"
            + "refunded_still_delivered,in_flight,unconfirmed,void",
          "U3,KWD,1,1.250,1.250,0.000,0.000,0.000,0.000,0.000,0.000,0.000,0.000",
          "u10,USD,1,2.00,0.00,2.00,0.00,0.00,0.00,0.00,0.00,0.00,0.00",
          "u2,JPY,1,300,300,0,0,0,0,0,0,0,0",
          "u2,USD,4,16.00,16.00,0.00,0.00,0.00,0.00,0.00,0.00,0.00,0.00"))
    #expect(
      try report.file("amounts.csv")
        == lines(
          "currency,amount,product_id,orders,ordered,settled,paid_not_delivered,delivered_not_paid,partly_delivered,"
            + "refunded,refunded_still_delivered,in_flight,unconfirmed,void,app",
          "JPY,300,a,1,300,300,0,0,0,0,0,0,0,0,game",
          "KWD,1.250,a,1,1.250,1.250,0.000,0.000,0.000,0.000,0.000,0.000,0.000,0.000,game",
          "USD,2.00,B,1,2.00,2.00,0.00,0.00,0.00,0.00,0.00,0.00,0.00,0.00,game",
          "USD,2.00,a,1,2.00,2.00,0.00,0.00,0.00,0.00,0.00,0.00,0.00,0.00,game",
          "USD,2.00,b,2,4.00,2.00,2.00,0.00,0.00,0.00,0.00,0.00,0.00,0.00,game",
          "USD,10.00,b,1,10.00,10.00,0.00,0.00,0.00,0.00,0.00,0.00,0.00,0.00,game"))
  }

  @Test func productsCsvHasOneRowPerAppProductCountryAndCurrencyWithTheSumsOfTheOrders() throws {
    var report = try SampleReport()
    report.options.appNames = ["com.example.game": "game", "com.example.quiz": "quiz"]
    let stories: [(product: Identifier, Money, bundleId: String, country: String?)] = [
      ("gems", try money(200, "USD"), "com.example.quiz", "USA"),
      ("gems", try money(300, "USD"), "com.example.game", "USA"),
      ("gems", try money(300, "USD"), "com.example.game", "CAN"),
      ("gems", try money(500, "USD"), "com.example.game", "USA"),
      ("gems", try money(400, "JPY"), "com.example.game", nil),
    ]
    for (number, story) in stories.enumerated() {
      var judgement = try OrderFixture(productId: story.product, amount: story.1).judgement(Identifier("o\(number)"))
      guard case .valid(var order) = judgement.row else { throw ReportError.cannotWrite(file: "", systemError: 0) }
      order.bundleId = story.bundleId
      judgement.row = .valid(order)
      judgement.country = Country(storefront: story.country)
      report.add(judgement)
    }
    #expect(
      try report.file("products.csv")
        == lines(
          "app,product_id,country,currency,orders,ordered,settled,paid_not_delivered,delivered_not_paid,"
            + "partly_delivered,refunded,refunded_still_delivered,in_flight,unconfirmed,void",
          "game,gems,,JPY,1,400,400,0,0,0,0,0,0,0,0",
          "game,gems,CA,USD,1,3.00,3.00,0.00,0.00,0.00,0.00,0.00,0.00,0.00,0.00",
          "game,gems,US,USD,2,8.00,8.00,0.00,0.00,0.00,0.00,0.00,0.00,0.00,0.00",
          "quiz,gems,US,USD,1,2.00,2.00,0.00,0.00,0.00,0.00,0.00,0.00,0.00,0.00"))
  }

  @Test func aBusinessDayIsTheDayOfTheReportsTimeZoneNotOfUTC() throws {
    var report = try SampleReport()
    var judgement = try OrderFixture(amount: money(199, "USD")).judgement("o1")
    guard case .valid(var order) = judgement.row else { throw ReportError.cannotWrite(file: "", systemError: 0) }
    order.createdAt = try instant("2026-11-18T23:30:00Z")
    judgement.row = .valid(order)
    report.add(judgement)
    #expect(try report.file("orders.csv").hasSuffix(",game,DE,2026-11-19\r\n"))
  }

  @Test func refundsCsvHasNegativeAmountsOfFullAndProratedRefundsWithAndWithoutAnOrder() throws {
    var report = try SampleReport()
    report.refunds = [
      RefundRow(
        transactionId: "T1", orderId: "o1", userId: "u1", productId: "gems.100", refunded: try money(199, "USD"),
        milliPercent: 100_000, purchasedAt: try instant("2026-11-01T00:00:00Z"),
        refundedAt: try instant("2026-11-19T12:00:00Z"), reason: "app_issue", disposition: .refundedStillDelivered),
      RefundRow(
        transactionId: "T2", productId: "gems.100", refunded: try money(-99, "JPY"), milliPercent: 33_300,
        purchasedAt: nil, refundedAt: try instant("2026-11-19T13:00:00Z")),
      RefundRow(
        transactionId: "T3", productId: "gems.100", refunded: nil, milliPercent: nil, purchasedAt: nil,
        refundedAt: try instant("2026-11-19T11:00:00Z")),
    ]
    #expect(
      try report.file("refunds.csv")
        == lines(
          "transaction_id,order_id,user_id,product_id,currency,amount,percentage,purchased_at,refunded_at,reason,"
            + "disposition,app",
          "T1,o1,u1,gems.100,USD,-1.99,100,2026-11-01T00:00:00Z,2026-11-19T12:00:00Z,app_issue,"
            + "refunded_still_delivered,game",
          "T2,,,gems.100,JPY,-99,33.300,,2026-11-19T13:00:00Z,,,game",
          "T3,,,gems.100,,,,,2026-11-19T11:00:00Z,,,game"))
  }

  @Test func refundRequestsCsvHasADeadlineOf12HoursAndTheDataForAppleWithAndWithoutAnOrder() throws {
    var report = try SampleReport()
    let request = RefundRequest(date: try instant("2026-11-19T12:00:00Z"), reason: "FULFILLMENT_ISSUE")
    report.refundRequests = [
      RefundRequestRow(
        transactionId: "T1", orderId: "o1", userId: "u1", productId: "gems.100", paid: try money(199, "USD"),
        request: request, goods: .init(status: .undelivered, delivered: 1, ordered: 2), refundsBefore: 3),
      RefundRequestRow(
        transactionId: "T2", productId: "gems.100", paid: nil, request: RefundRequest(date: request.date)),
    ]
    #expect(
      try report.file("refund-requests.csv")
        == lines(
          "transaction_id,order_id,user_id,product_id,currency,amount,requested_at,deadline,reason,delivery_status,"
            + "units_delivered,units_ordered,refunds_before,app",
          "T1,o1,u1,gems.100,USD,1.99,2026-11-19T12:00:00Z,2026-11-20T00:00:00Z,FULFILLMENT_ISSUE,"
            + "UNDELIVERED_OTHER,1,2,3,game",
          "T2,,,gems.100,,,2026-11-19T12:00:00Z,2026-11-20T00:00:00Z,,,,,,game"))
  }

  @Test func journalCsvAndStripeImportCsvHaveTheirDocumentedColumns() throws {
    var report = try SampleReport()
    report.options.formats = [.csv, .stripeImport]
    try report.post()
    let journal = try report.file("journal.csv").split(separator: "\r\n")
    #expect(journal.first == "line_id,posted_for,currency,account,debit,credit,text,source,app")
    let rows = journal.dropFirst().map { $0.split(separator: ",", maxSplits: 1) }
    #expect(rows.allSatisfy { $0[0].wholeMatch(of: /[0-9a-f]{32}/) != nil })
    #expect(
      rows.map { String($0[1]) }.sorted() == [
        "2026-11-19,USD,4000,,1.99,\"Sale of order o1, 2026-11-19\",o1,game",
        "2026-11-19,USD,receivable,,0.99,\"Refund of order o2, 2026-11-19\",o2,game",
        "2026-11-19,USD,receivable,1.99,,\"Sale of order o1, 2026-11-19\",o1,game",
        "2026-11-19,USD,refund,0.99,,\"Refund of order o2, 2026-11-19\",o2,game",
      ])
    #expect(
      try report.file("stripe-import.csv")
        == lines(
          "source,transaction_id,split_transaction_id,booked_date,recognition_start_date,recognition_end_date,amount,"
            + "currency,description",
          "App Store,T1,sale-1,2026-11-19,2026-11-19,2026-12-19,1.99,USD,Sale of order o1",
          "App Store,o2,refund-1,2026-11-19,2026-11-19,2026-11-19,-0.99,USD,Refund of order o2"))
  }

  @Test func aRefundIsAShareOfTheOrdersAmountOrOfApplesPrice() throws {
    var transaction = TransactionRecord(environment: .production, transactionId: "T1", productId: "gems.100")
    #expect(RefundRow(transaction, order: nil, disposition: nil) == nil)
    let date = try instant("2026-11-19T12:00:00Z")
    transaction.priceMilliunits = 2_990
    transaction.currency = "USD"
    transaction.revocation = Revocation(date: date, percentage: 50_000, type: "REFUND_PRORATED", reason: 1)
    let lone = try #require(RefundRow(transaction, order: nil, disposition: nil))
    #expect(lone.refunded == (try money(150, "USD")))
    #expect(lone.reason == "app_issue")
    let order = Order(
      orderId: "o1", userId: "u1", productId: "gems.100", amount: try money(999, "JPY"), status: .verified,
      createdAt: date)
    transaction.revocation = Revocation(date: date)
    let full = try #require(RefundRow(transaction, order: order, disposition: .refunded))
    #expect(full.refunded == (try money(999, "JPY")))
    #expect(full.milliPercent == 100_000)
    #expect(full.reason == nil)
    // A second charge has Apple's price if it is known.
    let further = try #require(RefundRow(transaction, order: order, isFurther: true, disposition: .settled))
    #expect(further.refunded == (try money(299, "USD")))
    transaction.priceMilliunits = nil
    let untold = try #require(RefundRow(transaction, order: order, isFurther: true, disposition: .settled))
    #expect(untold.refunded == (try money(999, "JPY")))
    transaction.revocation = Revocation(date: date, type: "REFUND_PRORATED", reason: 7)
    let unknown = try #require(RefundRow(transaction, order: order, disposition: .settled))
    #expect(unknown.refunded == nil)
    #expect(unknown.milliPercent == nil)
    #expect(unknown.reason == "7")
  }

  @Test func sandboxCsvMarksTheUsersThatAreAllowedToBuyInTheSandbox() throws {
    var report = try SampleReport()
    report.sandbox = [
      SandboxRow(
        userId: "tester", productId: "gems.100", currency: try currency("USD"), orders: 2, minorUnits: 398,
        isAllowed: true),
      SandboxRow(
        userId: "u9", productId: "gems.100", currency: try currency("JPY"), orders: 1, minorUnits: 300,
        isAllowed: false),
    ]
    #expect(
      try report.file("sandbox.csv")
        == lines(
          "user_id,product_id,currency,orders,amount,allowed", "tester,gems.100,USD,2,3.98,true",
          "u9,gems.100,JPY,1,300,false"))
  }

  @Test func receiptsCsvHasNoReasonForVerifiedReceiptsAndBlankCellsForUnknownValues() throws {
    var report = try SampleReport()
    var verified = ProofState()
    verified.outcome = .verified
    verified.reason = .neverChecked
    verified.kind = .app
    verified.channel = .verifyReceipt
    verified.environment = .production
    verified.appleStatus = 0
    verified.attempts = 1
    verified.lastAttempt = try instant("2026-11-19T23:00:00Z")
    var unanswered = ProofState()
    unanswered.outcome = .unanswered
    unanswered.reason = .unreachable
    unanswered.appleStatus = 21_009
    unanswered.attempts = 3
    unanswered.due = Dueness(from: try instant("2026-11-20T05:00:00Z"), rank: .urgent)
    report.receipts = [
      Receipt(
        receiptId: "r1", orderId: "o1", userId: "u1", receivedAt: try instant("2026-11-18T23:59:59Z"), state: verified),
      Receipt(
        receiptId: "r2", orderId: nil, userId: nil, receivedAt: try instant("2026-11-19T00:00:01Z"), state: unanswered),
      Receipt(
        receiptId: "r3", orderId: nil, userId: nil, receivedAt: try instant("2026-11-21T00:00:00Z"),
        state: .neverChecked),
    ]
    #expect(
      try report.file("receipts.csv")
        == lines(
          "receipt_id,order_id,user_id,kind,channel,environment,outcome,apple_status,attempts,last_attempt,"
            + "next_attempt,received_at,reason",
          "r1,o1,u1,app,verifyReceipt,Production,verified,0,1,2026-11-19T23:00:00Z,,2026-11-18T23:59:59Z,",
          "r2,,,,,,unanswered,21009,3,,2026-11-20T05:00:00Z,2026-11-19T00:00:01Z,unreachable",
          "r3,,,,,,pending,,0,,,2026-11-21T00:00:00Z,never_checked"))
  }

  @Test func filesForExcelHaveAByteOrderMarkTheLocalesSeparatorsAndIDsWithEveryDigit() throws {
    var report = try SampleReport()
    report.add(try OrderFixture(userId: "say \"hi\"", amount: money(199, "USD")).judgement("7528972536751605695"))
    report.options.formats = [.csvExcel]
    report.options.excelLocale = try #require(ExcelLocale("de-DE"))
    let text = try report.file("orders.excel.csv")
    #expect(Array(text.utf8.prefix(3)) == [0xEF, 0xBB, 0xBF])
    #expect(text.contains("order_id;user_id;product_id;quantity;currency;amount;"))
    #expect(text.contains("\"=\"\"7528972536751605695\"\"\";\"=\"\"say \"\"\"\"hi\"\"\"\"\"\"\";"))
    #expect(text.contains(";USD;1,99;verified;settled;paid;;"))
    #expect(text.contains(";2026-11-19 10:00:00;2026-11-19 10:00:01;"))
    // The plain files are unchanged.
    #expect(try report.file("orders.csv").contains("7528972536751605695,\"say \"\"hi\"\"\",gems.100,1,USD,1.99,"))
  }

  @Test(arguments: [
    ("en-US", false), ("en-GB", false), ("de-DE", true), ("de_DE", true), ("de-CH", false), ("fr", true),
    ("ja-JP", false), ("es-MX", false), ("es-ES", true), ("pt-BR", true), ("zh-Hans-CN", false),
  ])
  func localesWithADecimalCommaSeparateColumnsBySemicolons(_ name: String, _ isComma: Bool) throws {
    #expect(try #require(ExcelLocale(name)).separatesBySemicolon == isComma)
  }

  @Test(arguments: ["", "German", "de-de-de", "de DE", "DE", "xx-QQ", "xx", "de-QQ"])
  func invalidLocalesAreRejected(_ name: String) { #expect(ExcelLocale(name) == nil) }

  @Test func userIDsAndOnlyTheseAreReplacedByTheirPseudonymsInEveryFile() throws {
    var report = try SampleReport()
    report.add(try OrderFixture(userId: "dana", amount: money(199, "USD"), isDelivered: false).judgement("dana"))
    report.options.formats = [.csv]
    report.options.pseudonyms = Pseudonyms(key: Array("sixteen bytes ok".utf8))
    // printf dana | openssl dgst -sha256 -hmac 'sixteen bytes ok' | cut -c 1-32
    let name = "u-6394b29036844ff1500f2e9f5dcc8c9d"
    for file in ["orders.csv", "findings.csv", "users.csv"] {
      let text = try report.file(file)
      #expect(text.contains(name), "\(file)")
      #expect(!text.contains(",dana,gems") && !text.contains("\r\ndana,USD"), "\(file)")
    }
    #expect(try report.file("orders.csv").contains("\r\ndana,\(name),"))
    // User IDs in sentences become pseudonyms, too.
    var told = Finding(kind: .wrongUser, subject: .order("o7"), reason: "Goods went to user \(user: "zoe").")
    told.orderId = "o7"
    report.report(ReportedFinding(told, firstSeen: SampleReport.asOf, remark: "Called zoe, no answer."))
    var plain = Finding(kind: .signatureInvalid, subject: .order("o8"), reason: "The proof does not carry it.")
    plain.userId = "zoe"
    var asked = ReportedFinding(plain, firstSeen: SampleReport.asOf, remark: "Asked the client's people.")
    asked.explanation = ["Is it signed? No: nobody knows by whom."]
    report.report(asked)
    report.options.formats = [.csv, .xlsx]
    let zoe = try #require(report.options.pseudonyms).pseudonym(of: "zoe")
    for file in ["findings.csv", "actions.json", "report.html"] {
      let text = try report.file(file)
      #expect(!text.contains("zoe"), "\(file)")
      #expect(text.contains("Goods went to user \(zoe)."), "\(file)")
      #expect(text.contains("The proof does not carry it."), "\(file)")
      #expect(file == "actions.json" || text.contains(ReportedFinding.withheldRemark), "\(file)")
      #expect(file == "actions.json" || text.contains("Asked the client"), "\(file)")
    }
    #expect(try report.file("report.html").contains("Is it signed? No: nobody knows by whom."))
    #expect(Pseudonyms(key: Array("fifteen bytes.".utf8)) == nil)
  }

  @Test func aTableLongerThanOneWriteBufferHasEveryRow() throws {
    var report = try SampleReport()
    report.options.formats = [.csv]
    let story = try OrderFixture(amount: money(199, "USD"))
    for number in 0..<3_000 { report.add(try story.judgement(Identifier(String(100_000 + number)))) }
    let rows = try report.file("orders.csv").split(separator: "\r\n")
    #expect(rows.count == 3_001)
    #expect(rows.last?.hasPrefix("102999,u1,") == true)
  }
}
