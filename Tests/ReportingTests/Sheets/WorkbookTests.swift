import Foundation
import Reconciliation
import TestSupport
import Testing

@testable import Reporting

extension ReportTable {
  static let usual = allCases.filter { table in
    switch table {
    case .tieOut, .settlement, .periodFindings, .journal, .stripeImport: false
    case .findings, .changes, .days, .products, .users, .amounts, .refunds, .refundRequests, .sandbox, .receipts,
      .orders:
      true
    }
  }
}

extension ColumnHead {
  /// The header of the column on its sheet.
  fileprivate var sheetTitle: String { type == .instant ? "\(title) (Europe/Berlin)" : title }
}

struct WorkbookTests {
  private static let sample = {
    var report = SampleReport()
    report.add(order("00012345678901234567", money(199, "USD")))
    report.add(order("o2", money(300, "JPY"), user: "=cmd()", isDelivered: false))
    report.add(order("o3", money(1_250, "KWD"), user: "משתמש 👩‍👩‍👧", isPaid: false))
    report.add(order("o4", money(801, "USD"), isDelivered: false))
    return report
  }()

  /// The workbook of the unchanged sample, written once.
  private static let sampleBook = Result { try sample.book() }

  @Test func sheetsAreInOrderWithTheFilesColumnsAsHeadersAFilterAFrozenRowAndAPrintSetup() throws {
    var report = Self.sample
    report.addSandboxPurchase()
    let book = try report.book()
    #expect(
      book.sheets.map(\.name) == [
        "Summary", "Findings", "Changes", "Days", "Products", "Users", "Amounts", "Refunds", "Refund requests",
        "Sandbox", "Receipts", "Orders", "About",
      ])
    #expect(book.hidden.isEmpty && book.created == "2026-11-20T00:00:00")
    #expect(book.title == "App Store night audit 2026-11-19")
    for table in ReportTable.usual {
      let sheet = try book.sheet(table.shape.title.description)
      var expected = table.columns.map { column in
        // A sheet without a file has the names of outcomes, the others the names of the file's columns.
        if table == .days { return column.title }
        let words = (column.name.prefix(1).uppercased() + column.name.dropFirst()).split(separator: "_")
          .map { $0.lowercased() == "id" ? "ID" : $0 }.joined(separator: " ")
        return column.type == .instant ? "\(words) (Europe/Berlin)" : words
      }
      if table == .findings {
        let first = [
          "Severity", "Kind", "Order ID", "User ID", "At stake", "Currency", "Days since", "Status", "Owner", "Due",
          "Remark", "Reason", "Suggested action",
        ]
        expected = first + expected.filter { !first.contains($0) }
      }
      #expect(sheet.texts(0) == expected)
      #expect(sheet.freeze?.hasSuffix("2") == true && sheet.landscape && sheet.titleRows == "1:1")
      #expect(sheet.isProtected)
      #expect(sheet.permissions == ["autoFilter", "formatColumns", "selectLockedCells", "sort"])
    }
    #expect(try book.sheet("Users").tables.mapValues(\.range) == ["UsersTable": "A1:M4"])
    #expect(try book.sheet("Orders").tables.mapValues(\.range) == ["OrdersTable": "A1:U5"])
    // Excel does not support empty tables.
    #expect(try book.sheet("Refunds").tables.isEmpty && book.sheet("Refunds").filter == "A1:L1")
    for (name, note) in [
      ("Changes", "Nothing has changed since"), ("Refunds", "No refund was first reported"),
      ("Refund requests", "No refund request is open."),
    ] { #expect(try book.sheet(name).row(2)["A"]?.text?.hasPrefix(note) == true, "\(name)") }
    #expect(try book.sheet("Sandbox").cell("Allowed", 2)?.text == "No")
  }

  @Test func theFirstSheetHasItsSectionsInTheirOrder() throws {
    var report = Self.sample
    report.tieOut([123_456, 200, 100, 0, 123_356, 0, 200_000, 60_000, 16_544])
    report.summary.changes = ChangesSummary(since: SampleReport.asOf - .days(1), isSinceCompleteNight: true)
    report.summary.decisions = DecisionCounts(["closed": 3])
    report.summary.first = report.findings.filter { $0.finding.severity == .critical }
    let sheet = try report.book().sheet("Summary")
    let texts = sheet.rows.compactMap { $0["A"]?.text }
    let order = [
      "COMPLETE: Every check", "What changed", "What to do first", "Open findings by owner",
      "Decided since the previous report", "What was audited", "Orders and money by outcome",
      "Sales, proceeds, and what is owed", "Exposure roll-forward", "Open findings by kind", "Controls",
      "Tie-out with Apple's sales reports", "Sheets of this workbook", "Sign-off",
    ]
    let places = order.map { title in texts.firstIndex { $0.hasPrefix(title) } ?? -1 }
    #expect(places == places.sorted() && !places.contains(-1), "\(zip(order, places).map { "\($0) \($1)" })")
    #expect(texts.contains("3 closed"))
    let place = try #require(sheet.rows.firstIndex { $0["A"]?.text?.hasPrefix("Proceeds are of") == true })
    #expect(sheet.rows[place]["A"]?.text?.contains("fiscal period 2027-02") == true)
    #expect(
      sheet.texts(place + 1).filter { !$0.isEmpty } == [
        "Ordered", "Refunds reported", "Proceeds expected, fiscal 2027-02", "Proceeds paid, fiscal 2027-02",
        "Owed to customers", "Paid, not delivered", "Partly delivered", "Payment without order", "Charged twice",
      ])
    let dollars = try #require(sheet.rows[place...].first { $0["A"]?.text == "USD" })
    #expect(["D", "E", "F", "G"].map { dollars[$0]?.number } == [1_234.56, 1_233.56, 8.01, 8.01])
    let stake = try #require(sheet.row(named: "Amount at risk in open findings, USD"))
    #expect(stake["B"]?.number == 8.01 && stake["B"]?.formula?.hasPrefix("=SUMIFS('Findings'!") == true)
  }

  @Test func theAmountAtStakeIsAFormulaAlsoInACurrencyWithoutOrders() throws {
    var report = Self.sample
    report.report(ReportedFinding(Finding(.wrongUser, .order("o9"), money(500, "CHF"))))
    let sheet = try report.book().sheet("Summary")
    let stake = try #require(sheet.row(named: "Amount at risk in open findings, CHF"))
    #expect(stake["B"]?.number == 5 && stake["B"]?.formula?.hasPrefix("=SUMIFS('Findings'!") == true)
  }

  @Test func debitsAndCreditsOfEachDayAndCurrencyAreAControlAndASingleLineFailsTheReport() throws {
    func write(_ lines: (JournalEntry) -> [JournalLine]) throws -> [[String: String]] {
      try withTemporaryDirectory { directory in
        var options = SampleReport().options
        (options.directory, options.hasJournal) = (directory, true)
        var writer = try ReportWriter(options)
        let entry = JournalEntry(
          event: JournalEvent(.sale, "o1"), posting: JournalPosting(amount: money(199, "USD"), day: "2026-11-19"),
          version: 1, isReversal: false, postedFor: "2026-11-19")
        for line in lines(entry) { try writer.write(journal: line) }
        _ = try writer.finish(totals: Totals(), summary: SampleReport().summary)
        return try object(contents("summary.json", in: directory))["control"] as? [[String: String]] ?? []
      }
    }
    let accounts = Dictionary(uniqueKeysWithValues: JournalRole.allCases.map { ($0, $0.rawValue) })
    let control = try write { JournalLine.lines(of: $0, accounts: accounts) }
    #expect(control.contains(["name": "journal 2026-11-19 USD: debits = credits", "left": "1.99", "right": "1.99"]))
    #expect(throws: ReportError.self) { try write { Array(JournalLine.lines(of: $0, accounts: accounts).prefix(1)) } }
  }

  @Test func theJournalHasASheetAfterTheRefundRequestsAndATableAndAControlOnTheFirstSheet() throws {
    var report = Self.sample
    report.post()
    let book = try report.book()
    let names = book.sheets.map(\.name)
    let place = try #require(names.firstIndex(of: "Journal"))
    #expect(names[(place - 1)...(place + 1)] == ["Refund requests", "Journal", "Sandbox"])
    let sheet = try book.sheet("Journal")
    #expect(
      sheet.texts(0) == ["Line ID", "Posted for", "Currency", "Account", "Debit", "Credit", "Text", "Source", "App"])
    #expect(try Set(sheet.column("D", 2...5).compactMap(\.self)) == ["4000", "receivable", "refund"])
    let summary = try book.sheet("Summary")
    let heading = try #require(summary.rows.firstIndex { $0["B"]?.text == "Debits" })
    #expect(summary.rows[heading - 1]["A"]?.text == "Journal" && summary.rows[heading]["C"]?.text == "Credits")
    let line = summary.rows[heading + 1]
    #expect(line["A"]?.text == "USD" && line["B"]?.number == 2.98 && line["C"]?.number == 2.98)
    #expect(summary.row(named: "Journal USD: debits = credits")?["E"]?.text == "balanced")
    #expect(try !Self.sampleBook.get().sheets.map(\.name).contains("Journal"))
  }

  @Test func refundRequestsAreSortedByDeadlineLateOnesAreMarkedAndTheFirstSheetHasTheNextDeadline() throws {
    var report = Self.sample
    report.refundRequests = [("T1", "2026-11-19T20:00:00Z"), ("T2", "2026-11-19T11:00:00Z")].map { id, date in
      RefundRequestRow(transactionId: id, productId: "gems.100", paid: nil, request: RefundRequest(date: instant(date)))
    }
    let words =
      "2 refund requests are open. The next answer to Apple is due by 2026-11-20 09:00:00 (Europe/Berlin). "
      + "The deadline of 1 has passed."
    let book = try report.book()
    let sheet = try book.sheet("Refund requests")
    #expect(try sheet.column("A", 2...3) == ["T2", "T1"])
    #expect(sheet.conditional.contains { $0.hasPrefix("H2:H3 lessThan 46346.0416") }, "\(sheet.conditional)")
    let lines = try book.sheet("Summary").rows.compactMap { $0["A"]?.text }
    let place = try #require(lines.firstIndex(of: "Refund requests to answer"))
    #expect(lines[place + 1] == words)
    #expect(try report.file("report.html").contains("<p class=\"lead\">\(words)</p>"))
  }

  @Test func idsAreTextAmountsAreNumbersInTheirCurrencysFormatAndTimesAreLocalTimesOfTheTimeZone() throws {
    let orders = try Self.sampleBook.get().sheet("Orders")
    let first = try orders.row(2)
    #expect(first["A"]?.kind == "s" && first["A"]?.text == "00012345678901234567" && first["D"]?.number == 1)
    #expect(first["F"]?.kind == "n" && first["F"]?.number == 1.99)
    #expect(first["M"]?.kind == "d" && first["M"]?.text == "2026-11-19 11:00:00")
    #expect(first["M"]?.format == "yyyy-mm-dd hh:mm:ss")
    #expect(try orders.row(3)["B"]?.kind == "s" && orders.column("B", 3...4) == ["=cmd()", "משתמש 👩‍👩‍👧"])
    #expect(try orders.row(4)["F"]?.number == 1.25)
    for (row, digits) in [(2, "0.00"), (3, "0"), (4, "0.000")] {
      #expect(try orders.row(row)["F"]?.format == "#,##\(digits);\"−\"#,##\(digits);\"–\"")
    }
  }

  @Test func theSumsBelowUsersAndAmountsAreFormulasByCurrencyCachedWithTheControlTotals() throws {
    let book = try Self.sampleBook.get()
    let users = try book.sheet("Users")
    // Three users and currencies, an empty row, three sums.
    #expect(try users.row(5).isEmpty && users.column("B", 6...8) == ["JPY", "KWD", "USD"])
    #expect(try users.row(8)["D"]?.formula == "=SUMIF($B$2:$B$4,B8,$D$2:$D$4)" && users.row(8)["C"]?.number == 2)
    for (name, codeColumn, sumColumn) in [("Users", "B", "D"), ("Amounts", "A", "E")] {
      for (currency, ordered) in Self.sample.totals.ordered.sorted {
        let line = try #require(try book.sheet(name).rows.last { $0[codeColumn]?.text == currency.code })
        #expect(line[sumColumn]?.formula?.hasPrefix("=SUMIF(") == true)
        #expect(line[sumColumn]?.number == Money.number(ordered, digits: currency.digits))
      }
    }
  }

  @Test func findingsAreSortedWorstFirstLinkToTheirOrdersAndHaveCellsForPeoplesEntries() throws {
    var report = Self.sample
    let place = try #require(report.findings.firstIndex { $0.finding.orderId == "o2" })
    (report.findings[place].owner, report.findings[place].status) = ("Dana", "acknowledged")
    (report.findings[place].remark, report.findings[place].due) = ("asked", "2026-12-01")
    report.report(ReportedFinding(Finding(.wrongUser, .order("o1"), money(199, "USD"))))
    let long = Reason(String(repeating: "long ", count: 8_000))
    report.report(
      ReportedFinding(
        Finding(.orphanPayment, .transaction("T1"), reason: long), firstSeen: SampleReport.asOf - .days(9)))
    let sheet = try report.book().sheet("Findings")
    for (heading, text) in [
      ("Kind", "Paid, not delivered"), ("Severity", "critical"), ("Order ID", "o2"), ("Status", "acknowledged"),
      ("Owner", "Dana"), ("Remark", "asked"), ("Due", "2026-12-01 00:00:00"),
    ] { #expect(try sheet.cell(heading, 2)?.text == text) }
    #expect(try (2...3).map { try sheet.cell("Order ID", $0)?.link } == ["'Orders'!A3", "'Orders'!A4"])
    #expect(try sheet.cell("Age days", 2)?.number == 2 && sheet.cell("Days since", 2)?.number == 0)
    #expect(try sheet.cell("Due", 2)?.kind == "d")
    // The order is by severity and currency, with known amounts before unknown ones.
    #expect(try sheet.column(sheet.letter("Currency"), 2...6) == ["JPY", "KWD", "USD", "USD", nil])
    #expect(try (2...6).map { try sheet.cell("At stake", $0)?.number } == [300, 1.25, 8.01, 1.99, nil])
    let reason = try #require(try sheet.cell("Reason", 6)?.text)
    #expect(reason.utf16.count <= 32_767 && reason.hasSuffix("… [cut]"))
    // Excel sorts only unlocked cells of a protected sheet; validation refuses entries in other columns.
    let (status, stake) = (try sheet.letter("Status"), try sheet.letter("At stake"))
    #expect(sheet.choices["\(status)2:\(status)6"] == "\"open,acknowledged,accepted,closed\"")
    #expect(sheet.choices["\(stake)1:\(stake)6"] == "FALSE" && sheet.choices["\(status)1"] == "FALSE")
    #expect(sheet.cells.allSatisfy { $0.key.trimmingPrefix(/[A-Z]+/).count > 1 || !$0.value.isLocked })
    #expect(sheet.printArea == "$A$1:$M$6" && sheet.pagesWide == 1)
    let (severity, age) = (try sheet.letter("Severity"), try sheet.letter("Age days"))
    #expect(sheet.conditional.contains("\(severity)2:\(severity)6 equal \"critical\""))
    #expect(sheet.conditional.contains("\(age)2:\(age)6 greaterThan 7"))
    // Entry cells have their own format and are near the columns that people read.
    #expect(try sheet.entries == Set(["Status", "Owner", "Due", "Remark"].map { "\(try sheet.letter($0))2" }))
    for id in try ["Order ID", "User ID", "Transaction ID", "Finding ID"].map({ try sheet.letter($0) }) {
      #expect(sheet.ignored?.contains("\(id)2:\(id)6") == true)
    }
  }

  @Test func everyHeaderHasANoteWithTheColumnsMeaningAndAmountsAWarningThatTheyAreNotProceeds() throws {
    for table in ReportTable.usual {
      let sheet = try Self.sampleBook.get().sheet(table.shape.title.description)
      #expect(sheet.notes.count == table.columns.count)
      for column in table.columns {
        let letter = try sheet.letter(column.sheetTitle)
        let note = try #require(sheet.notes[letter + "1"])
        #expect(note.contains(column.meaning))
        #expect(note.contains("Not Apple's proceeds, and not for revenue recognition.") == column.type.isMoney)
      }
    }
  }

  @Test(arguments: [1, 100])
  func everyNumberFitsIntoItsColumnAlsoASumInBold(_ count: Int) throws {
    var report = SampleReport()
    for number in 0..<count {
      report.add(
        order(
          Identifier("o\(number)"), money(14_900_000_000, "IDR"), user: Identifier("u\(number)"),
          isDelivered: number > 0))
    }
    report.refunds = [refund("T1", money(14_900_000_000, "IDR"))]
    report.addDays()
    for sheet in try report.book().sheets {
      for (number, row) in sheet.rows.enumerated() {
        for (letter, cell) in row where cell.format.hasPrefix("#,##0") {
          guard let value = cell.number else { continue }
          let digits = cell.format.prefix { $0 != ";" }.split(separator: ".").dropFirst().first?.count ?? 0
          let text = value.formatted(.number.precision(.fractionLength(digits)).locale(Locale(identifier: "en_US")))
          let length = Double(text.count) * (cell.formula?.hasPrefix("=SUM") == true ? 1.1 : 1)
          #expect(length <= sheet.widths[letter] ?? 0, "\(sheet.name) \(letter)\(number + 1): \(text)")
        }
      }
    }
  }

  @Test func applesReasonsAndDeliveryStatusesHaveTitlesOnTheSheets() throws {
    var report = SampleReport()
    let date = instant("2026-11-19T12:00:00Z")
    report.refunds = [refund("T1", money(199, "USD"), at: date, reason: "other")]
    let facts: [(String, DeliveryStatus)] = [("UNINTENDED_PURCHASE", .delivered), ("NEW_AT_APPLE", .undelivered)]
    report.refundRequests = facts.map { reason, status in
      RefundRequestRow(
        transactionId: Identifier(reason), productId: "gems", paid: nil,
        request: RefundRequest(date: date, reason: reason), goods: .init(status: status, delivered: 1, ordered: 1))
    }
    let book = try report.book()
    #expect(try book.sheet("Refunds").cell("Reason", 2)?.text == "Other")
    let requests = try book.sheet("Refund requests")
    for (row, reason, status) in [
      (2, "NEW AT APPLE", "Not delivered in full"), (3, "Unintended purchase", "Delivered"),
    ] {
      #expect(try requests.cell("Reason", row)?.text == reason)
      #expect(try requests.cell("Delivery status", row)?.text == status)
    }
    #expect("id_mismatch".title == "ID mismatch")
  }

  @Test(arguments: ReportTable.allCases)
  func headersHaveAtMostTwoLinesAndAMargin(_ table: ReportTable) throws {
    for column in table.columns {
      let title = column.sheetTitle
      var lines = [""]
      for word in title.split(separator: " ").map(String.init) {
        let longer = lines[lines.count - 1].isEmpty ? word : lines[lines.count - 1] + " " + word
        // Bold letters are wider, so that a line never fills the whole width.
        if lines[lines.count - 1].isEmpty || Double(longer.count) <= column.width - 1 {
          lines[lines.count - 1] = longer
        } else {
          lines.append(word)
        }
      }
      #expect(lines.count <= 2 && lines.allSatisfy { Double($0.count) <= column.width - 2 }, "\(column.name) \(lines)")
      // Letters are narrower than digits, so that a title nearly as wide as its column takes one line and touches the next.
      #expect(Double(title.count) <= column.width - 2 || Double(title.count) * 0.9 > column.width, "\(title)")
      // An ID of 19 digits.
      if column.type == .user { #expect(column.width >= 21, "\(table) \(column.name)") }
    }
  }

  @Test func refundsAreNegativeAndInTheOrderOfTheFile() throws {
    var report = SampleReport()
    report.refunds = [("T1", 12), ("T2", 11), ("T3", 11)].map { id, hour in
      refund(id, money(199, "USD"), at: instant("2026-11-19T\(hour):00:00Z"))
    }
    let sheet = try report.book().sheet("Refunds")
    #expect(try sheet.column("A", 2...4) == ["T1", "T2", "T3"])
    #expect(try sheet.row(2)["F"]?.number == -1.99 && sheet.row(6)["F"]?.number == -5.97)
    #expect(try sheet.row(6)["F"]?.formula == "=SUMIF($E$2:$E$4,E6,$F$2:$F$4)")
  }

  @Test func theSummaryHasTheReasonsForIncompletenessControlsAsFormulasAndCharts() throws {
    var report = Self.sample
    report.summary.isComplete = false
    report.summary.incompleteReasons = ["7 receipts were not answered."]
    report.addNights(18...19)
    let sheet = try report.book().sheet("Summary")
    #expect(sheet.row(named: "App Store night audit 2026-11-19") != nil)
    #expect(try sheet.row(2)["A"]?.text == "Game (com.example.game)")
    #expect(try sheet.row(3)["A"]?.text?.hasPrefix("INCOMPLETE") == true)
    let banner = try #require(try sheet.row(4)["A"]?.text)
    #expect(banner.hasPrefix("BALANCED: all ") && banner.hasSuffix(" controls of this workbook agree."))
    #expect(try sheet.row(5)["A"]?.text?.contains("7 receipts were not answered.") == true)
    #expect(sheet.row(named: "Day")?["B"]?.text == "2026-11-19")
    #expect(sheet.row(named: "As of")?["B"]?.text == "2026-11-20 01:00:00")
    #expect(sheet.row(named: "Amounts")?["B"]?.text?.contains("not for revenue recognition") == true)
    #expect(sheet.controls.count >= 12)
    for control in sheet.controls {
      #expect(control["E"]?.text == "balanced", "\(control["A"]?.text ?? "")")
      #expect(control["B"]?.formula != nil || control["C"]?.formula != nil)
    }
    let place = try #require(sheet.rows.firstIndex { $0["A"]?.text == "USD" })
    let dollars = sheet.rows[place]
    #expect(["B", "C", "D"].map { dollars[$0]?.number } == [10, 1.99, 8.01])
    #expect(dollars["C"]?.formula == "=SUMIFS('Users'!$E$2:$E$4,'Users'!$B$2:$B$4,$A$\(place + 1))")
    let kind = try #require(sheet.row(named: "Paid, not delivered"))
    #expect(kind["C"]?.number == 2 && kind["C"]?.formula?.hasPrefix("=COUNTIFS('Findings'!") == true)
    #expect(kind["A"]?.link == "'Findings'!A2" && sheet.row(named: "Orders")?["A"]?.link == "'Orders'!A1")
    // One chart of dispositions; no night had an amount at risk.
    #expect(sheet.charts.count == 1)
    for label in SignOff.labels { #expect(sheet.row(named: label) != nil) }
  }

  @Test func rowCountsIncludeBadRowsWithoutAnID() throws {
    var report = Self.sample
    report.addRowsWithoutIds()
    let book = try report.book()
    var counted: [String: Int] = [:]
    for cell in try book.sheet("Summary").rows.flatMap({ $0.values }) {
      let count = /=COUNTA\('([A-Za-z ]+)'!\$([A-Z]+)\$([0-9]+)(?::\$[A-Z]+\$([0-9]+))?\)/
      guard let match = cell.formula?.wholeMatch(of: count), let first = Int(match.3) else { continue }
      let last = match.4.flatMap { Int($0) } ?? first
      let filled = try book.sheet(String(match.1)).column(String(match.2), first...last).count(where: { $0 != nil })
      #expect(cell.number == Double(filled), "\(cell.formula ?? "")")
      counted[String(match.1)] = filled
    }
    #expect(counted["Orders"] == 5 && counted["Receipts"] == 1)
  }

  @Test func eachCurrencyWithAnAmountAtRiskHasAChartButNotForASingleNight() throws {
    for (days, charts) in [(18...19, 6), (19...19, 1)] {
      var report = Self.sample
      report.addNights(days, atRisk: "USD", "JPY", "EUR", "KWD", "CNY")
      #expect(try report.book().sheet("Summary").charts.count == charts)
    }
  }

  @Test func theSheetAboutExplainsEverySettingDispositionFindingKindAndReason() throws {
    var report = Self.sample
    report.summary.settings = [SettingText("Lookback", "120 days")]
    report.summary.notChecked = ["Game": [.partialRefund]]
    report.summary.notAsked = ["Game": 2]
    let sheet = try report.book().sheet("About")
    func text(_ name: String) -> String? { sheet.row(named: name)?["B"]?.text }
    #expect(text("Lookback") == "120 days" && text("Game") == "Partial refund")
    #expect(text("Protection")?.hasSuffix("a control on the sheet Summary turns red.") == true)
    let unasked = text("Orders without a receipt")
    #expect(unasked == report.summary.uncheckedOrderTexts.first && unasked?.contains("2 orders of Game ") == true)
    for kind in FindingKind.allCases {
      let row = try #require(sheet.row(named: kind.title), "\(kind)")
      #expect(row["C"]?.text?.hasSuffix(".") == true && row["D"]?.text == kind.suggestedAction)
    }
    let reasons = ["UNINTENDED_PURCHASE", "FULFILLMENT_ISSUE", "UNSATISFIED_WITH_PURCHASE", "LEGAL", "app_issue"]
    let titles =
      Disposition.allCases.map(\.title) + PaymentReason.allCases.map(\.rawValue.title)
      + CheckOutcome.allCases.map(\.rawValue) + reasons.map(\.title)
    for title in titles { #expect(sheet.row(named: title) != nil, "\(title)") }
    for status in DeliveryStatus.allCases { #expect(text(status.rawValue.title)?.contains(status.rawValue) == true) }
    #expect(sheet.row(named: "Refund unknown") == nil)
    report.options.hasTieOut = true
    #expect(try report.book().sheet("About").row(named: "Refund unknown") != nil)
  }

  @Test func changesAndDaysHaveSheetsControlsAndLinesOnTheSummary() throws {
    var report = Self.sample
    report.summary.changes.since = SampleReport.asOf - .days(1)
    let gone = Finding(.wrongUser, .order("o9"), money(500, "USD"))
    report.summary.findings.count(closed: gone.atStake)
    let because = "it was delivered; notification reported transaction 2000000512129662 (Production, gems.100)"
    let closing = ChangeRow(
      .closed, finding: gone, findingId: gone.findingId, before: "open", after: "closed", because: because)
    report.changes = report.findings.map { ChangeRow(new: $0) } + [closing, .refunded]
    report.addDays()
    let book = try report.book()
    let sheet = try book.sheet("Changes")
    let severities = sheet.rows.dropFirst().compactMap { $0["D"]?.text }
    #expect(severities == severities.sorted(), "critical first: the severities are in alphabetical order")
    let closed = try #require(sheet.rows.firstIndex { $0["A"]?.text == "closed" }) + 1
    #expect(try sheet.cell("Because", closed)?.text == because)
    let adjusted = try #require(sheet.rows.firstIndex { $0["A"]?.text == "adjusted" }) + 1
    #expect(try sheet.cell("Amount", adjusted)?.number == 3 && sheet.cell("Kind", adjusted)?.text == "Order")
    #expect(try sheet.cell("Because", adjusted)?.text == "Apple refunded it 2026-11-20 00:30:00")
    #expect(try sheet.widths[sheet.letter("Finding ID")] ?? 0 >= 32)
    let days = try book.sheet("Days")
    #expect(try days.cell("Ordered", 4)?.number == 10 && days.cell("Reported ordered", 4) == nil)
    #expect(try days.letter("Paid, not delivered") == "G")
    #expect(try days.letter("Reported: Not paid, nothing delivered") == "Y")
    let summary = try book.sheet("Summary")
    #expect(summary.controls.allSatisfy { $0["E"]?.text == "balanced" })
    for name in ["Ordered USD: users = days", "Findings: closed = changes closed"] {
      #expect(summary.controls.contains { $0["A"]?.text == name })
    }
    let lines = summary.rows.compactMap { $0["A"]?.text }
    #expect(lines.contains("•  closed: Wrong user, order o9, 5.00 USD, open → closed (it was delivered)"))
    #expect(lines.contains { $0.contains("adjusted: order of an earlier day, order o8, 3.00 USD, Settled → Refunded") })
    #expect(lines.contains { $0.hasSuffix("(Apple refunded it 2026-11-20 00:30:00)") })
    #expect(!lines.contains { $0.hasSuffix("no night reported; see Changes.") })
    // The day of the adjusted order has no report.
    report.summary.dayLines.append(DayLine(day: "2026-11-11", currency: currency("USD"), now: [:], reported: nil))
    let words = "1 more order is of a day that no night reported; see Changes."
    #expect(try report.book().sheet("Summary").row(named: words) != nil)
    #expect(try report.file("report.html").contains("<p class=\"meta\">\(words)</p>"))
  }

  @Test func beyondReportWorkbookOrdersTheSheetsListOnlyOrdersWithFindingsAndNameTheFileWithAllOrders() throws {
    var report = Self.sample
    var verified = ProofState()
    verified.outcome = .verified
    report.receipts = [receipt("r1", verified), receipt("r2")]
    report.options.workbookOrders = 4
    let whole = try report.book()
    #expect(try whole.sheet("Orders").rows.count == 5 && whole.sheet("Receipts").rows.count == 3)
    report.options.workbookOrders = 1
    func texts(_ book: ReadWorkbook) throws -> [String] {
      try book.sheet("Summary").rows.flatMap { $0.values.compactMap(\.text) }.filter { $0.contains(".csv") }
    }
    try report.written { directory in
      #expect(try contents("orders.csv", in: directory).split(separator: "\r\n").count == 5)
      let book = try ReadWorkbook(report: directory)
      #expect(try book.sheet("Orders").column("A", 2...4) == ["o2", "o3", "o4"])
      #expect(try book.sheet("Findings").cell("Order ID", 2)?.link == "'Orders'!A2")
      #expect(try book.sheet("Receipts").column("A", 2...2) == ["r2"])
      let note = "Only those of the 4 orders with findings; all are in orders.csv beside this workbook."
      #expect(try book.sheet("Summary").row(named: "Orders")?["C"]?.text == note)
      #expect(try !texts(book).isEmpty)
    }
    // No text refers to a file that does not exist.
    #expect(try texts(report.book()) == [])
  }

  @Test func aLongTableContinuesOnFurtherSheetsEachWithItsHeaderTableAndSums() throws {
    var report = SampleReport()
    for number in 0..<13 {
      report.add(
        order(
          Identifier("o\(number)"), money(100, "USD"), user: Identifier("u\(number)"), isDelivered: number != 2))
    }
    let book = try report.book(rowsPerSheet: 2)
    let names = book.sheets.map(\.name).filter { $0.hasPrefix("Orders") }
    #expect(names == ["Orders"] + (2...7).map { "Orders \($0)" })
    let second = try book.sheet("Orders 2")
    #expect(try second.texts(0).first == "Order ID" && second.column("A", 2...3) == ["o2", "o3"])
    #expect(second.tables.mapValues(\.range) == ["OrdersTable2": "A1:U3"])
    #expect(try book.sheet("Findings").cell("Order ID", 2)?.link == "'Orders 2'!A2")
    #expect(try book.sheet("Orders 7").rows.count == 2)
    let sum = try #require(try book.sheet("Users 2").rows.last)
    #expect(sum["A"]?.text == "Total of this sheet" && sum["D"]?.number == 2)
    #expect(sum["D"]?.formula == "=SUMIF($B$2:$B$3,B5,$D$2:$D$3)")
    let last = try #require(try book.sheet("Users 7").rows.last)
    #expect(last["A"]?.text == "Total of all sheets" && last["D"]?.number == 13)
    #expect(last["D"]?.formula?.hasPrefix("=SUMIF('Users'!$B$2:$B$3,B4,'Users'!$D$2:$D$3)+SUMIF('Users 2'!") == true)
    let summary = try book.sheet("Summary")
    #expect(summary.row(named: "Orders")?["B"]?.number == 2)
    let seventh = try #require(summary.row(named: "Orders 7"))
    #expect(seventh["B"]?.number == 1 && seventh["A"]?.link == "'Orders 7'!A1")
    #expect(seventh["C"]?.text == "Continues Orders 6.")
    let settled = summary.row(named: "USD")?["C"]
    #expect(settled?.formula?.contains("+SUMIFS('Users 7'!") == true && settled?.number == 12)
  }

  @Test func datesBeforeExcelsFirstOneAreTextAndTimesHaveTheOffsetOfSummerOrWinter() throws {
    var report = SampleReport()
    for (id, date) in [("o1", "2026-10-25T00:59:59Z"), ("o2", "2026-10-25T01:00:00Z"), ("o3", "1600-01-01T00:00:00Z")] {
      var judgement = order(Identifier(id), money(1, "USD"))
      judgement.refundedAt = instant(date)
      report.add(judgement)
    }
    let expected = ["2026-10-25 02:59:59", "2026-10-25 02:00:00", "1600-01-01T00:00:00Z"]
    #expect(try report.book().sheet("Orders").column("P", 2...4) == expected)
  }

  @Test func theWorkbookOfALongerPeriodHasItsOwnNameTitleFindingsAndRollForward() throws {
    var report = Self.sample
    report.options.period = Period(
      since: "2026-11-01", until: "2026-11-30", start: instant("2026-11-01T00:00:00Z"),
      end: instant("2026-12-01T00:00:00Z"))
    report.summary.period = report.options.period
    report.summary.changes.since = instant("2026-11-01T03:00:00Z")
    var older = Finding(.wrongUser, .order("old"))
    older.occurredAt = instant("2026-10-31T23:59:59Z")
    report.report(ReportedFinding(older))
    report.summary.findings.count(passing: Finding(.wrongUser, .order("gone"), money(250, "USD")))
    try report.written { directory in
      let book = try ReadWorkbook(report: directory, name: "night-audit-2026-11-01_2026-11-30.xlsx")
      #expect(book.title == "App Store night audit 2026-11-01 to 2026-11-30")
      let all = try book.sheet("Findings").column(book.sheet("Findings").letter("Order ID"), 2...5)
      let own = try book.sheet("Period findings")
      #expect(try own.column(own.letter("Order ID"), 2...4) == all.filter { $0 != "old" })
      #expect(own.rows.count == 4 && own.entries == [])
      let summary = try book.sheet("Summary")
      let lines = summary.rows.compactMap { $0["A"]?.text }
      #expect(lines.contains("Month-end: exposure roll-forward"))
      let passing =
        "Compared with the night made for 2026-11-01 04:00:00 (Europe/Berlin). 1 finding was opened and closed in between "
        + "and is in no column: 2.50 USD."
      #expect(lines.contains(passing))
      let head = try #require(summary.rows.first { $0["F"]?.text == "= Closing" })
      #expect(["B", "C", "D", "E"].map { head[$0]?.text } == ["Opening", "+ New", "− Closed", "± Changed"])
      let page = try contents("report.html", in: directory)
      #expect(page.contains("Month-end: exposure roll-forward"))
      #expect(page.contains("<h1>App Store night audit 2026-11-01 to 2026-11-30</h1>"))
    }
  }
}
