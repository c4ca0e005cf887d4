import Foundation
import Reconciliation
import Testing

@testable import Reporting

struct CSVFileTests {
  private func lines(_ rows: String...) -> String { rows.map { $0 + "\r\n" }.joined() }

  @Test func ordersCsvListsSettledUndeliveredUnpaidSandboxAndBadRows() throws {
    var report = SampleReport()
    report.add(order("o1", money(199, "USD")))
    report.add(order("o2", money(300, "JPY"), isDelivered: false))
    report.add(order("o3", money(1_250, "KWD"), user: "=cmd()", isPaid: false))
    report.add(order("o4", money(199, "USD"), user: "tester", environment: .sandbox))
    report.add(badOrder("o5"))
    report.add(
      Judgement(
        reporting: BadOrder(
          orderId: "o6", userId: "u6", bundleId: nil, productId: "gems", quantity: nil, amountText: "1.99",
          currencyText: "USD", statusText: "pending", transactionId: nil, createdAt: instant("2026-11-19T11:00:00Z"),
          defect: "quantity is missing")))
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
          "o5,\"u,5\",\"ge\"\"ms\",-2,usd,-1.999,'@paid,bad_row,,,T9,,2026-11-19T11:00:00Z,,,,,bad_row,game,,2026-11-19",
          "o6,u6,gems,,USD,1.99,pending,bad_row,,,,,2026-11-19T11:00:00Z,,,,,bad_row,game,,2026-11-19"))
  }

  @Test func theCellFindingsOfAnOrderListsEachFindingKindOnce() throws {
    var report = SampleReport()
    var judgement = order("o1", money(199, "USD"), isDelivered: false)
    judgement.findings += ["r1", "r2"].map { Finding(.badRow, .receipt($0)) }
    report.add(judgement)
    #expect(try report.file("orders.csv").hasSuffix(",paid_not_delivered bad_row,game,DE,2026-11-19\r\n"))
  }

  @Test func findingsCsvHasAllColumnsBlankCellsAgesAndEscapedFormulas() throws {
    var report = SampleReport()
    var full = Finding(.wrongUser, .order("o1"), money(300, "JPY"), reason: "=HYPERLINK(\"evil\")")
    (full.userId, full.productId, full.transactionId) = ("u1", "gems.100", "2000000000000001")
    (full.receiptId, full.deliveryId, full.environment) = ("r1", "d1", .production)
    (full.amount, full.bundleId, full.country) = (money(300, "JPY"), "com.example.game", Country(storefront: "JPN"))
    (full.paidAt, full.deliveredAt) = (instant("2026-11-19T10:00:01Z"), instant("2026-11-19T10:00:21Z"))
    full.occurredAt = instant("2026-11-10T10:00:01Z")
    report.report(
      ReportedFinding(
        full, firstSeen: SampleReport.asOf - .hours(71), status: "acknowledged", owner: "-Dana", remark: "+1, really",
        due: "2026-12-01"))
    // The amount at risk may have another currency than the order.
    var abroad = Finding(.chargedTwice, .transaction("o2"), money(210, "EUR"), reason: "Twice.")
    abroad.amount = money(199, "USD")
    report.report(ReportedFinding(abroad, firstSeen: SampleReport.asOf + .hours(1)))
    let header =
      "finding_id,kind,severity,order_id,user_id,product_id,transaction_id,receipt_id,delivery_id,environment,"
      + "currency,amount,at_stake,paid_at,delivered_at,first_seen,age_days,status,owner,reason,suggested_action,"
      + "occurred_at,days_since,due,remark,app,country,business_day"
    let fullRow =
      "\(full.findingId),wrong_user,critical,o1,u1,gems.100,2000000000000001,r1,d1,Production,JPY,300,300,"
      + "2026-11-19T10:00:01Z,2026-11-19T10:00:21Z,2026-11-17T01:00:00Z,2,acknowledged,'-Dana,"
      + "\"'=HYPERLINK(\"\"evil\"\")\",\"Check which account paid and which account received the goods, and move the goods.\","
      + "2026-11-10T10:00:01Z,9,2026-12-01,\"'+1, really\",game,JP,2026-11-10"
    let abroadRow =
      "\(abroad.findingId),charged_twice,critical,,,,,,,,EUR,,2.10,,,2026-11-20T01:00:00Z,0,open,,Twice.,"
      + FindingKind.chargedTwice.suggestedAction + ",,,,,game,,"
    let rows = [(full.findingId, fullRow), (abroad.findingId, abroadRow)].sorted { $0.0 < $1.0 }.map(\.1)
    #expect(try report.file("findings.csv") == lines(header, rows[0], rows[1]))
  }

  @Test func theMeaningOfAtStakeListsTheFindingKindsWhoseAmountAtRiskMayBeUnknown() {
    let meaning = ReportTable.findings.columns.first { $0.name == "at_stake" }?.meaning ?? ""
    let told = FindingKind.allCases.filter { meaning.contains($0.rawValue) }
    #expect(Set(told) == [.orphanPayment, .chargedTwice, .orphanDelivery, .partialRefund, .unreportedByShop])
  }

  @Test func aFindingIDIsAHashOfTheKindAndTheSubjectOnly() {
    // printf 'paid_not_delivered\norder\no1' | sha256sum | cut -c 1-32
    let id = "8f244593dbee85196e678719192ddb85"
    #expect(Finding(.paidNotDelivered, .order("o1"), reason: "one").findingId == id)
    #expect(Finding(.paidNotDelivered, .order("o1"), money(1, "USD"), reason: "other").findingId == id)
    #expect(Finding(.badRow, .order("o1"), reason: "one").findingId != id)
  }

  @Test func usersCsvAndAmountsCsvHaveOneRowPerKeySortedByBytesAndByValue() throws {
    var report = SampleReport()
    report.add(order("o0", money(1_000, "USD"), user: "u2", product: "b"))
    report.add(order("o1", money(200, "USD"), user: "u10", product: "b", isDelivered: false))
    report.add(order("o2", money(200, "USD"), user: "u2", product: "a"))
    report.add(order("o3", money(200, "USD"), user: "u2", product: "b"))
    report.add(order("o4", money(300, "JPY"), user: "u2", product: "a"))
    report.add(order("o5", money(1_250, "KWD"), user: "U3", product: "a"))
    report.add(order("o6", money(200, "USD"), user: "u2", product: "B"))
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
    var report = SampleReport()
    report.options.appNames = ["com.example.game": "game", "com.example.quiz": "quiz"]
    for (number, (amount, app, country)) in [
      (money(200, "USD"), "quiz", "USA"), (money(300, "USD"), "game", "USA"), (money(300, "USD"), "game", "CAN"),
      (money(500, "USD"), "game", "USA"), (money(400, "JPY"), "game", nil),
    ].enumerated() {
      var judgement = try changed(order(Identifier("o\(number)"), amount, product: "gems")) {
        $0.bundleId = "com.example.\(app)"
      }
      judgement.country = Country(storefront: country)
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

  private func changed(_ judgement: Judgement, _ change: (inout Order) -> Void) throws -> Judgement {
    guard case .valid(var order) = judgement.row else { throw ReportError.cannotWrite(file: "", systemError: 0) }
    change(&order)
    var judgement = judgement
    judgement.row = .valid(order)
    return judgement
  }

  @Test func aBusinessDayIsTheDayOfTheReportsTimeZoneNotOfUTC() throws {
    var report = SampleReport()
    report.add(try changed(order("o1", money(199, "USD"))) { $0.createdAt = instant("2026-11-18T23:30:00Z") })
    #expect(try report.file("orders.csv").hasSuffix(",game,DE,2026-11-19\r\n"))
  }

  @Test func refundsCsvHasNegativeAmountsOfFullAndProratedRefundsWithAndWithoutAnOrder() throws {
    var report = SampleReport()
    report.refunds = [
      RefundRow(
        transactionId: "T1", orderId: "o1", userId: "u1", productId: "gems.100", refunded: money(199, "USD"),
        milliPercent: 100_000, purchasedAt: instant("2026-11-01T00:00:00Z"),
        refundedAt: instant("2026-11-19T12:00:00Z"), reason: "app_issue", disposition: .refundedStillDelivered),
      refund("T2", money(-99, "JPY"), at: instant("2026-11-19T13:00:00Z"), milliPercent: 33_300),
      refund("T3", nil, at: instant("2026-11-19T11:00:00Z"), milliPercent: nil),
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
    var report = SampleReport()
    let request = RefundRequest(date: instant("2026-11-19T12:00:00Z"), reason: "FULFILLMENT_ISSUE")
    report.refundRequests = [
      RefundRequestRow(
        transactionId: "T1", orderId: "o1", userId: "u1", productId: "gems.100", paid: money(199, "USD"),
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
    var report = SampleReport()
    report.options.formats = [.csv, .stripeImport]
    report.post()
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
    let date = instant("2026-11-19T12:00:00Z")
    (transaction.priceMilliunits, transaction.currency) = (2_990, "USD")
    transaction.revocation = Revocation(date: date, percentage: 50_000, type: "REFUND_PRORATED", reason: 1)
    let lone = try #require(RefundRow(transaction, order: nil, disposition: nil))
    #expect(lone.refunded == money(150, "USD") && lone.reason == "app_issue")
    let order = Order(
      orderId: "o1", userId: "u1", productId: "gems.100", amount: money(999, "JPY"), status: .verified, createdAt: date)
    transaction.revocation = Revocation(date: date)
    let full = try #require(RefundRow(transaction, order: order, disposition: .refunded))
    #expect(full.refunded == money(999, "JPY") && full.milliPercent == 100_000 && full.reason == nil)
    // A second charge has Apple's price if it is known.
    let further = RefundRow(transaction, order: order, isFurther: true, disposition: .settled)
    #expect(further?.refunded == money(299, "USD"))
    transaction.priceMilliunits = nil
    let unpriced = RefundRow(transaction, order: order, isFurther: true, disposition: .settled)
    #expect(unpriced?.refunded == money(999, "JPY"))
    // One of several purchases has the share of the order's amount for its units.
    var (part, units) = (transaction, order)
    (part.quantity, part.priceMilliunits, units.quantity) = (1, 2_990, 3)
    #expect(RefundRow(part, order: units, disposition: .settled)?.refunded == money(333, "JPY"))
    transaction.revocation = Revocation(date: date, type: "REFUND_PRORATED", reason: 7)
    let unknown = try #require(RefundRow(transaction, order: order, disposition: .settled))
    #expect(unknown.refunded == nil && unknown.milliPercent == nil && unknown.reason == "7")
  }

  @Test func sandboxCsvMarksTheUsersThatAreAllowedToBuyInTheSandbox() throws {
    var report = SampleReport()
    report.sandbox = [("tester", "USD", 2, 398, true), ("u9", "JPY", 1, 300, false)].map {
      SandboxRow(
        userId: Identifier($0), productId: "gems.100", currency: currency($1), orders: $2, minorUnits: $3, isAllowed: $4
      )
    }
    #expect(
      try report.file("sandbox.csv")
        == lines(
          "user_id,product_id,currency,orders,amount,allowed", "tester,gems.100,USD,2,3.98,true",
          "u9,gems.100,JPY,1,300,false"))
  }

  @Test func receiptsCsvHasNoReasonForVerifiedReceiptsAndBlankCellsForUnknownValues() throws {
    var report = SampleReport()
    var verified = ProofState()
    (verified.outcome, verified.reason, verified.kind, verified.channel) = (
      .verified, .neverChecked, .app, .verifyReceipt
    )
    (verified.environment, verified.appleStatus, verified.attempts) = (.production, 0, 1)
    verified.lastAttempt = instant("2026-11-19T23:00:00Z")
    var unanswered = ProofState()
    (unanswered.outcome, unanswered.reason) = (.unanswered, .unreachable)
    (unanswered.appleStatus, unanswered.attempts) = (21_009, 3)
    unanswered.due = Dueness(from: instant("2026-11-20T05:00:00Z"), rank: .urgent)
    report.receipts = [
      Receipt(
        receiptId: "r1", orderId: "o1", userId: "u1", receivedAt: instant("2026-11-18T23:59:59Z"), state: verified),
      receipt("r2", unanswered, at: instant("2026-11-19T00:00:01Z")),
      receipt("r3", at: instant("2026-11-21T00:00:00Z")),
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
    var report = SampleReport()
    report.add(order("7528972536751605695", money(199, "USD"), user: "say \"hi\""))
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
    var report = SampleReport()
    report.add(order("dana", money(199, "USD"), user: "dana", isDelivered: false))
    report.options.formats = [.csv]
    report.options.pseudonyms = Pseudonyms(key: Array("sixteen bytes ok".utf8))
    // printf dana | openssl dgst -sha256 -hmac 'sixteen bytes ok' | cut -c 1-32
    let name = "u-6394b29036844ff1500f2e9f5dcc8c9d"
    try report.written { directory in
      for file in ["orders.csv", "findings.csv", "users.csv"] {
        let text = try contents(file, in: directory)
        #expect(text.contains(name), "\(file)")
        #expect(!text.contains(",dana,gems") && !text.contains("\r\ndana,USD"), "\(file)")
      }
      #expect(try contents("orders.csv", in: directory).contains("\r\ndana,\(name),"))
    }
    // User IDs in sentences become pseudonyms, too.
    let named = Finding(.wrongUser, .order("o7"), reason: "Goods went to user \(user: "zoe").")
    report.report(ReportedFinding(named, firstSeen: SampleReport.asOf, remark: "Called zoe, no answer."))
    var plain = Finding(.signatureInvalid, .receipt("o8"), reason: "The proof does not carry it.")
    plain.userId = "zoe"
    var asked = ReportedFinding(plain, firstSeen: SampleReport.asOf, remark: "Asked the client's people.")
    asked.explanation = ["Is it signed? No: nobody knows by whom."]
    report.report(asked)
    report.options.formats = [.csv, .xlsx]
    let zoe = try #require(report.options.pseudonyms).pseudonym(of: "zoe")
    try report.written { directory in
      for file in ["findings.csv", "actions.json", "report.html"] {
        let text = try contents(file, in: directory)
        #expect(!text.contains("zoe"), "\(file)")
        #expect(text.contains("Goods went to user \(zoe)."), "\(file)")
        #expect(text.contains("The proof does not carry it."), "\(file)")
        #expect(file == "actions.json" || text.contains(ReportedFinding.withheldRemark), "\(file)")
        #expect(file == "actions.json" || text.contains("Asked the client"), "\(file)")
      }
      #expect(try contents("report.html", in: directory).contains("Is it signed? No: nobody knows by whom."))
    }
    #expect(Pseudonyms(key: Array("fifteen bytes.".utf8)) == nil)
  }

  @Test func aTableLongerThanOneWriteBufferHasEveryRow() throws {
    var report = SampleReport()
    report.options.formats = [.csv]
    for number in 100_000..<103_000 { report.add(order(Identifier("\(number)"), money(199, "USD"))) }
    let rows = try report.file("orders.csv").split(separator: "\r\n")
    #expect(rows.count == 3_001 && rows.last?.hasPrefix("102999,u1,") == true)
  }
}
