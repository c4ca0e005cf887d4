import Foundation
import Reconciliation
import Testing

@testable import Reporting

struct WorkbookTests {
  private func book(_ report: SampleReport, rowsPerSheet: Int? = nil) throws -> ReadBook {
    var report = report
    report.options.formats = [.xlsx]
    return try withTemporaryDirectory { directory in
      try report.write(to: directory, rowsPerSheet: rowsPerSheet)
      return try ReadBook(directory: directory)
    }
  }

  private func sample() throws -> SampleReport {
    var report = try SampleReport()
    report.add(try OrderFixture(amount: money(199, "USD")).judgement("00012345678901234567"))
    report.add(try OrderFixture(userId: "=cmd()", amount: money(300, "JPY"), isDelivered: false).judgement("o2"))
    report.add(try OrderFixture(userId: "משתמש 👩‍👩‍👧", amount: money(1_250, "KWD"), isPaid: false).judgement("o3"))
    report.add(try OrderFixture(amount: money(801, "USD"), isDelivered: false).judgement("o4"))
    return report
  }

  @Test func sheetsAreInOrderWithTheFilesColumnsAsHeadersAFilterAFrozenRowAndAPrintSetup() throws {
    var report = try sample()
    try report.addSandboxPurchase()
    let book = try book(report)
    #expect(
      book.sheets.map(\.name) == [
        "Summary", "Findings", "Changes", "Days", "Products", "Users", "Amounts", "Refunds",
        "Refund requests", "Sandbox", "Receipts", "Orders", "About",
      ])
    #expect(book.hidden.isEmpty)
    #expect(book.created == "2026-11-20T00:00:00")
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
      #expect(sheet.freeze?.hasSuffix("2") == true)
      #expect(sheet.landscape)
      #expect(sheet.titleRows == "1:1" || sheet.titleRows == "$1:$1")
      #expect(sheet.isProtected)
      #expect(sheet.permissions == ["autoFilter", "formatColumns", "sort"])
    }
    #expect(try book.sheet("Users").tables == ["UsersTable A1:M4"])
    #expect(try book.sheet("Orders").tables == ["OrdersTable A1:U5"])
    // Excel does not support empty tables.
    #expect(try book.sheet("Refunds").tables == [])
    #expect(try book.sheet("Refunds").filter == "A1:L1")
    for (name, note) in [("Changes", "Nothing has changed since"), ("Refunds", "No refund was first reported")] {
      #expect(try book.sheet(name).row(2)["A"]?.text?.hasPrefix(note) == true, "\(name)")
    }
  }

  @Test func theFirstSheetHasItsSectionsInTheirOrder() throws {
    var report = try sample()
    report.options.hasTieOut = true
    report.summary.changes = ChangesSummary(since: SampleReport.asOf - .days(1), isSinceCompleteNight: true)
    report.summary.decisions = DecisionCounts(["closed": 3])
    report.summary.first = report.findings.filter { $0.finding.severity == .critical }
    let figures: [Int128?] = [123_456, 200, 100, 0, 123_356, 0, 200_000, 60_000, 16_544]
    var facts = TieOutFacts(
      incompleteReasons: [], firstDay: "2026-11-01", lastDay: "2026-11-18",
      appleUnits: ExactDecimal(scaled: 3, digits: 0), ourUnits: ExactDecimal(scaled: 3, digits: 0), explained: [],
      unexplained: ExactDecimal(scaled: 0, digits: 0))
    facts.proceeds = [
      SettlementLine(
        period: "2027-02", currency: "USD", figures: figures.map { $0.map { ExactDecimal(scaled: $0, digits: 2) } })
    ]
    report.summary.tieOut = facts
    let sheet = try book(report).sheet("Summary")
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
    #expect(dollars["D"]?.number == 1_234.56 && dollars["E"]?.number == 1_233.56)
    #expect(dollars["F"]?.number == 8.01 && dollars["G"]?.number == 8.01)
    let stake = try #require(sheet.row(named: "At stake in open findings, USD"))
    #expect(stake["B"]?.number == 8.01 && stake["B"]?.formula?.hasPrefix("=SUMIFS('Findings'!") == true)
  }

  @Test func debitsAndCreditsOfEachDayAndCurrencyAreAControlAndASingleLineFailsTheReport() throws {
    func write(_ lines: (JournalEntry) -> [JournalLine]) throws -> [[String: String]] {
      try withTemporaryDirectory { directory in
        var options = try SampleReport().options
        (options.directory, options.hasJournal) = (directory, true)
        var writer = try ReportWriter(options)
        let entry = JournalEntry(
          event: JournalEvent(.sale, "o1"), posting: JournalPosting(amount: try money(199, "USD"), day: "2026-11-19"),
          version: 1, isReversal: false, postedFor: "2026-11-19")
        for line in lines(entry) { try writer.write(journal: line) }
        _ = try writer.finish(totals: Totals(), summary: SampleReport().summary)
        return try object(contents("summary.json", in: directory))["control"] as? [[String: String]] ?? []
      }
    }
    let accounts: [JournalRole: String] = Dictionary(
      uniqueKeysWithValues: JournalRole.allCases.map { ($0, $0.rawValue) })
    let control = try write { JournalLine.lines(of: $0, accounts: accounts) }
    #expect(
      control.contains(["name": "journal 2026-11-19 USD: debits = credits", "left": "1.99", "right": "1.99"]))
    #expect(throws: ReportError.self) { try write { Array(JournalLine.lines(of: $0, accounts: accounts).prefix(1)) } }
  }

  @Test func theJournalHasASheetAfterTheRefundRequestsAndATableAndAControlOnTheFirstSheet() throws {
    var report = try sample()
    try report.post()
    let book = try book(report)
    let names = book.sheets.map(\.name)
    let place = try #require(names.firstIndex(of: "Journal"))
    #expect(names[place - 1] == "Refund requests" && names[place + 1] == "Sandbox")
    let sheet = try book.sheet("Journal")
    #expect(
      sheet.texts(0) == [
        "Line ID", "Posted for", "Currency", "Account", "Debit", "Credit", "Text", "Source", "App",
      ])
    #expect(try Set(sheet.column("D", 2...5).compactMap(\.self)) == ["4000", "receivable", "refund"])
    let summary = try book.sheet("Summary")
    let heading = try #require(summary.rows.firstIndex { $0["B"]?.text == "Debits" })
    #expect(summary.rows[heading - 1]["A"]?.text == "Journal" && summary.rows[heading]["C"]?.text == "Credits")
    let line = summary.rows[heading + 1]
    #expect(line["A"]?.text == "USD" && line["B"]?.number == 2.98 && line["C"]?.number == 2.98)
    #expect(summary.row(named: "Journal USD: debits = credits")?["E"]?.text == "balanced")
    let withoutJournal = try self.book(sample()).sheets.map(\.name)
    #expect(!withoutJournal.contains("Journal"))
  }

  @Test func refundRequestsAreSortedByDeadlineLateOnesAreMarkedAndTheFirstSheetHasTheNextDeadline() throws {
    var report = try sample()
    #expect(
      try book(report).sheet("Refund requests").row(2)["A"]?.text?.hasPrefix("No refund request is open.") == true)
    report.refundRequests = try [("T1", "2026-11-19T20:00:00Z"), ("T2", "2026-11-19T11:00:00Z")].map { id, date in
      RefundRequestRow(
        transactionId: Identifier(id), productId: "gems.100", paid: nil, request: RefundRequest(date: try instant(date))
      )
    }
    try report.addSandboxPurchase()
    let words =
      "2 refund requests are open. The next answer to Apple is due by 2026-11-20 09:00:00 (Europe/Berlin). "
      + "The deadline of 1 has passed."
    let book = try book(report)
    let sheet = try book.sheet("Refund requests")
    #expect(try sheet.column("A", 2...3) == ["T2", "T1"])
    #expect(sheet.conditional.contains { $0.hasPrefix("H2:H3 lessThan 46346.0416") }, "\(sheet.conditional)")
    let lines = try self.book(report).sheet("Summary").rows.compactMap { $0["A"]?.text }
    let place = try #require(lines.firstIndex(of: "Refund requests to answer"))
    #expect(lines[place + 1] == words)
    #expect(try report.file("report.html").contains("<p class=\"lead\">\(words)</p>"))
    #expect(try book.sheet("Sandbox").cell("Allowed", 2)?.text == "No")
  }

  @Test func idsAreTextAmountsAreNumbersInTheirCurrencysFormatAndTimesAreLocalTimesOfTheTimeZone() throws {
    let orders = try book(sample()).sheet("Orders")
    let first = try orders.row(2)
    #expect(first["A"]?.kind == "s")
    #expect(first["A"]?.text == "00012345678901234567")
    #expect(first["D"]?.number == 1)
    #expect(first["F"]?.kind == "n")
    #expect(first["F"]?.number == 1.99)
    #expect(first["F"]?.format == "#,##0.00;\"−\"#,##0.00;\"–\"")
    #expect(first["M"]?.kind == "d")
    #expect(first["M"]?.text == "2026-11-19 11:00:00")
    #expect(first["M"]?.format == "yyyy-mm-dd hh:mm:ss")
    #expect(try orders.row(3)["B"]?.kind == "s")
    #expect(try orders.row(3)["B"]?.text == "=cmd()")
    #expect(try orders.row(3)["F"]?.format == "#,##0;\"−\"#,##0;\"–\"")
    #expect(try orders.row(4)["B"]?.text == "משתמש 👩‍👩‍👧")
    #expect(try orders.row(4)["F"]?.number == 1.25)
    #expect(try orders.row(4)["F"]?.format == "#,##0.000;\"−\"#,##0.000;\"–\"")
  }

  @Test func theSumsBelowUsersAndAmountsAreFormulasByCurrencyCachedWithTheControlTotals() throws {
    let report = try sample()
    let book = try book(report)
    let users = try book.sheet("Users")
    // Three users and currencies, an empty row, three sums.
    #expect(try users.row(5).isEmpty)
    #expect(try users.column("B", 6...8) == ["JPY", "KWD", "USD"])
    #expect(try users.row(8)["D"]?.formula == "=SUMIF($B$2:$B$4,B8,$D$2:$D$4)")
    #expect(try users.row(8)["C"]?.number == 2)
    for (name, codeColumn, sumColumn) in [("Users", "B", "D"), ("Amounts", "A", "E")] {
      let sheet = try book.sheet(name)
      for (currency, ordered) in report.totals.ordered.sorted {
        let line = try #require(sheet.rows.last { $0[codeColumn]?.text == currency.code })
        #expect(line[sumColumn]?.formula?.hasPrefix("=SUMIF(") == true)
        #expect(line[sumColumn]?.number == Money.number(ordered, digits: currency.digits))
      }
    }
  }

  @Test func findingsAreSortedWorstFirstLinkToTheirOrdersAndHaveCellsForPeoplesEntries() throws {
    var report = try sample()
    let place = try #require(report.findings.firstIndex { $0.finding.orderId == "o2" })
    report.findings[place].owner = "Dana"
    report.findings[place].status = "acknowledged"
    report.findings[place].remark = "asked"
    report.findings[place].due = "2026-12-01"
    var second = Finding(kind: .wrongUser, subject: .order("o1"), reason: "r")
    second.atStake = try money(199, "USD")
    report.report(ReportedFinding(second, firstSeen: SampleReport.asOf))
    let elsewhere = Finding(
      kind: .orphanPayment, subject: .transaction("T1"), reason: Reason(String(repeating: "long ", count: 8_000)))
    report.report(ReportedFinding(elsewhere, firstSeen: SampleReport.asOf - .days(9)))
    let sheet = try book(report).sheet("Findings")
    for (heading, text) in [
      ("Kind", "Paid, not delivered"), ("Severity", "critical"), ("Order ID", "o2"), ("Status", "acknowledged"),
      ("Owner", "Dana"), ("Remark", "asked"), ("Due", "2026-12-01 00:00:00"),
    ] {
      #expect(try sheet.cell(heading, 2)?.text == text)
    }
    #expect(try sheet.cell("Order ID", 2)?.link == "'Orders'!A3")
    #expect(try sheet.cell("Age days", 2)?.number == 2 && sheet.cell("Days since", 2)?.number == 0)
    #expect(try sheet.cell("Due", 2)?.kind == "d")
    #expect(try sheet.cell("Order ID", 3)?.link == "'Orders'!A4")
    // The order is by severity and currency, with known amounts before unknown ones.
    #expect(
      try sheet.column(sheet.letter("Currency"), 2...6) == ["JPY", "KWD", "USD", "USD", nil])
    #expect(try (2...6).map { try sheet.cell("At stake", $0)?.number } == [300, 1.25, 8.01, 1.99, nil])
    let reason = try #require(try sheet.cell("Reason", 6)?.text)
    #expect(reason.utf16.count <= 32_767)
    #expect(reason.hasSuffix("… [cut]"))
    let status = try sheet.letter("Status")
    #expect(sheet.choices["\(status)2:\(status)6"] == "\"open,acknowledged,accepted,closed\"")
    // Excel sorts only unlocked cells of a protected sheet; validation refuses entries in other columns.
    #expect(sheet.isProtected)
    #expect(Set(sheet.permissions).isSuperset(of: ["sort", "autoFilter"]))
    #expect(try sheet.choices["\(sheet.letter("At stake"))1:\(sheet.letter("At stake"))6"] == "FALSE")
    #expect(sheet.choices["\(status)1"] == "FALSE")
    #expect(sheet.locked == [])
    #expect(sheet.printed == "$A$1:$M$6")
    #expect(sheet.titleRows == "$1:$1")
    #expect(sheet.pagesWide == 1)
    let (severity, age) = (try sheet.letter("Severity"), try sheet.letter("Age days"))
    #expect(sheet.conditional.contains("\(severity)2:\(severity)6 equal \"critical\""))
    #expect(sheet.conditional.contains("\(age)2:\(age)6 greaterThan 7"))
    // Entry cells have their own format and are near the columns that people read.
    let people = try ["Status", "Owner", "Due", "Remark"].map { try sheet.letter($0) }
    #expect(sheet.entries == people.map { "\($0)2" }.sorted())
    let ids = try ["Order ID", "User ID", "Transaction ID", "Finding ID"].map { try sheet.letter($0) }
    for id in ids { #expect(sheet.ignored?.contains("\(id)2:\(id)6") == true) }
  }

  @Test func everyHeaderHasANoteWithTheColumnsMeaningAndAmountsAWarningThatTheyAreNotProceeds() throws {
    let book = try book(sample())
    for table in ReportTable.usual {
      let sheet = try book.sheet(table.shape.title.description)
      #expect(sheet.notes.count == table.columns.count)
      for column in table.columns {
        let title = column.type == .instant ? "\(column.title) (Europe/Berlin)" : column.title
        let note = try #require(sheet.notes["\(sheet.letter(title))1"])
        #expect(note.contains(column.meaning))
        #expect(note.contains("Not Apple's proceeds, and not for revenue recognition.") == column.type.isMoney)
      }
    }
  }

  @Test(arguments: [1, 100])
  func everyNumberFitsIntoItsColumnAlsoASumInBold(_ count: Int) throws {
    var report = try SampleReport()
    for number in 0..<count {
      report.add(
        try OrderFixture(
          userId: Identifier("u\(number)"), amount: money(14_900_000_000, "IDR"), isDelivered: number > 0
        )
        .judgement(Identifier("o\(number)")))
    }
    report.refunds = [refund("T1", try money(14_900_000_000, "IDR"))]
    try report.addDays()
    for sheet in try book(report).sheets {
      for (number, row) in sheet.rows.enumerated() {
        for (letter, cell) in row where cell.format.hasPrefix("#,##0") {
          guard let value = cell.number else { continue }
          let digits = cell.format.prefix { $0 != ";" }.split(separator: ".").dropFirst().first?.count ?? 0
          let text = value.formatted(
            .number.precision(.fractionLength(digits)).locale(Locale(identifier: "en_US")))
          let length = Double(text.count) * (cell.formula?.hasPrefix("=SUM") == true ? 1.1 : 1)
          #expect(length <= sheet.widths[letter] ?? 0, "\(sheet.name) \(letter)\(number + 1): \(text)")
        }
      }
    }
  }

  @Test func applesReasonsAndDeliveryStatusesHaveTitlesOnTheSheets() throws {
    var report = try SampleReport()
    let date = try instant("2026-11-19T12:00:00Z")
    report.refunds = [refund("T1", try money(199, "USD"), at: date, reason: "other")]
    let facts: [(String, DeliveryStatus)] = [("UNINTENDED_PURCHASE", .delivered), ("NEW_AT_APPLE", .undelivered)]
    report.refundRequests = facts.map { reason, status in
      RefundRequestRow(
        transactionId: Identifier(reason), productId: "gems", paid: nil,
        request: RefundRequest(date: date, reason: reason),
        goods: .init(status: status, delivered: 1, ordered: 1))
    }
    let book = try book(report)
    #expect(try book.sheet("Refunds").cell("Reason", 2)?.text == "Other")
    let requests = try book.sheet("Refund requests")
    #expect(try requests.cell("Reason", 2)?.text == "NEW AT APPLE")
    #expect(try requests.cell("Reason", 3)?.text == "Unintended purchase")
    #expect(try requests.cell("Delivery status", 2)?.text == "Not delivered in full")
    #expect(try requests.cell("Delivery status", 3)?.text == "Delivered")
    #expect("id_mismatch".title == "ID mismatch")
  }

  @Test(arguments: ReportTable.allCases)
  func headersHaveAtMostTwoLinesAndAMargin(_ table: ReportTable) throws {
    for column in table.columns {
      let title = column.type == .instant ? "\(column.title) (Europe/Berlin)" : column.title
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
    var report = try SampleReport()
    report.refunds = try [("T1", 12), ("T2", 11), ("T3", 11)].map { id, hour in
      refund(Identifier(id), try money(199, "USD"), at: try instant("2026-11-19T\(hour):00:00Z"))
    }
    let sheet = try book(report).sheet("Refunds")
    #expect(try sheet.column("A", 2...4) == ["T1", "T2", "T3"])
    #expect(try sheet.row(2)["F"]?.number == -1.99)
    #expect(try sheet.row(6)["F"]?.number == -5.97)
    #expect(try sheet.row(6)["F"]?.formula == "=SUMIF($E$2:$E$4,E6,$F$2:$F$4)")
  }

  @Test func theSummaryHasTheReasonsForIncompletenessControlsAsFormulasAndCharts() throws {
    var report = try sample()
    report.summary.isComplete = false
    report.summary.incompleteReasons = ["7 receipts were not answered."]
    for night in ["2026-11-18", "2026-11-19"] {
      report.summary.history.append(
        Night(
          date: night, paid: report.totals.ordered, delivered: report.totals.ordered, atStake: MoneyByCurrency()))
    }
    let sheet = try book(report).sheet("Summary")
    #expect(sheet.row(named: "App Store night audit 2026-11-19") != nil)
    #expect(try sheet.row(2)["A"]?.text == "Game (com.example.game)")
    #expect(try sheet.row(3)["A"]?.text?.hasPrefix("INCOMPLETE") == true)
    #expect(try sheet.row(4)["A"]?.text?.hasPrefix("BALANCED: all ") == true)
    #expect(try sheet.row(4)["A"]?.text?.hasSuffix(" controls of this workbook agree.") == true)
    #expect(try sheet.row(5)["A"]?.text?.contains("7 receipts were not answered.") == true)
    #expect(sheet.row(named: "Day")?["B"]?.text == "2026-11-19")
    #expect(sheet.row(named: "As of")?["B"]?.text == "2026-11-20 01:00:00")
    #expect(sheet.row(named: "Amounts")?["B"]?.text?.contains("not for revenue recognition") == true)
    let controls = sheet.rows.filter { $0["E"]?.formula?.hasPrefix("=IF(ISNUMBER(D") == true }
    #expect(controls.count >= 12)
    for control in controls {
      #expect(control["E"]?.text == "balanced", "\(control["A"]?.text ?? "")")
      #expect(control["B"]?.formula != nil || control["C"]?.formula != nil)
    }
    let dollars = try #require(sheet.row(named: "USD"))
    #expect(dollars["B"]?.number == 10)
    #expect(dollars["C"]?.number == 1.99)
    let row = try rowNumber(of: "USD", in: sheet)
    #expect(dollars["C"]?.formula == "=SUMIFS('Users'!$E$2:$E$4,'Users'!$B$2:$B$4,$A$\(row))")
    #expect(dollars["D"]?.number == 8.01)
    let kind = try #require(sheet.row(named: "Paid, not delivered"))
    #expect(kind["C"]?.number == 2)
    #expect(kind["C"]?.formula?.hasPrefix("=COUNTIFS('Findings'!") == true)
    #expect(kind["A"]?.link == "'Findings'!A2")
    #expect(sheet.row(named: "Orders")?["A"]?.link == "'Orders'!A1")
    // One chart of dispositions; no night had an amount at risk.
    #expect(sheet.charts == 1)
    for label in SignOff.labels { #expect(sheet.row(named: label) != nil) }
  }

  @Test func rowCountsIncludeBadRowsWithoutAnID() throws {
    var report = try sample()
    report.addRowsWithoutIds()
    let book = try book(report)
    var counted: [String: Int] = [:]
    for cell in try book.sheet("Summary").rows.flatMap({ $0.values }) {
      let count = /=COUNTA\('([A-Za-z ]+)'!\$([A-Z]+)\$([0-9]+)(?::\$[A-Z]+\$([0-9]+))?\)/
      guard let match = cell.formula?.wholeMatch(of: count), let first = Int(match.3) else { continue }
      let last = match.4.flatMap { Int($0) } ?? first
      let filled = try book.sheet(String(match.1)).column(String(match.2), first...last).count(where: { $0 != nil })
      #expect(cell.number == Double(filled), "\(cell.formula ?? "")")
      counted[String(match.1)] = filled
    }
    #expect(counted["Orders"] == 5)
    #expect(counted["Receipts"] == 1)
  }

  @Test func eachCurrencyWithAnAmountAtRiskHasAChartButNotForASingleNight() throws {
    var report = try sample()
    for night in 18...19 {
      var stake = MoneyByCurrency()
      for code in ["USD", "JPY", "EUR", "KWD", "CNY"] { stake.add(try money(Int64(night), code)) }
      report.summary.history.append(
        Night(date: "2026-11-\(night)", paid: stake, delivered: stake, atStake: stake))
    }
    #expect(try book(report).sheet("Summary").charts == 6)
    report.summary.history.removeFirst()
    #expect(try book(report).sheet("Summary").charts == 1)
  }

  @Test func theSheetAboutExplainsEverySettingDispositionFindingKindAndReason() throws {
    var report = try sample()
    report.summary.settings = [SettingText("Lookback", "120 days")]
    report.summary.notChecked = ["Game": [.partialRefund]]
    report.summary.notAsked = ["Game": 2]
    let sheet = try book(report).sheet("About")
    #expect(sheet.row(named: "Lookback")?["B"]?.text == "120 days")
    #expect(sheet.row(named: "Protection")?["B"]?.text?.hasSuffix("a control on the sheet Summary turns red.") == true)
    #expect(sheet.row(named: "Game")?["B"]?.text == "Partial refund")
    let unasked = sheet.row(named: "Orders without a receipt")?["B"]?.text
    #expect(unasked == report.summary.uncheckedOrderTexts.first && unasked?.contains("2 orders of Game ") == true)
    for kind in FindingKind.allCases {
      let row = try #require(sheet.row(named: kind.title), "\(kind)")
      #expect(row["C"]?.text?.hasSuffix(".") == true)
      #expect(row["D"]?.text == kind.suggestedAction)
    }
    for disposition in Disposition.allCases { #expect(sheet.row(named: disposition.title) != nil) }
    for reason in PaymentReason.allCases { #expect(sheet.row(named: reason.rawValue.title) != nil) }
    for outcome in CheckOutcome.allCases { #expect(sheet.row(named: outcome.rawValue) != nil) }
    for status in DeliveryStatus.allCases {
      #expect(sheet.row(named: status.rawValue.title)?["B"]?.text?.contains(status.rawValue) == true)
    }
    for reason in ["UNINTENDED_PURCHASE", "FULFILLMENT_ISSUE", "UNSATISFIED_WITH_PURCHASE", "LEGAL", "app_issue"] {
      #expect(sheet.row(named: reason.title) != nil, "\(reason)")
    }
    #expect(sheet.row(named: "Refund unknown") == nil)
    report.options.hasTieOut = true
    #expect(try self.book(report).sheet("About").row(named: "Refund unknown") != nil)
  }

  @Test func changesAndDaysHaveSheetsControlsAndLinesOnTheSummary() throws {
    var report = try sample()
    report.summary.changes.since = SampleReport.asOf - .days(1)
    for reported in report.findings {
      report.changes.append(
        ChangeRow(.new, finding: reported.finding, findingId: reported.findingId, before: nil, after: "open"))
    }
    var gone = Finding(kind: .wrongUser, subject: .order("o9"), reason: "r")
    gone.orderId = "o9"
    gone.atStake = try money(500, "USD")
    report.summary.findings.count(closed: gone.atStake)
    let because = "it was delivered; notification reported transaction 2000000512129662 (Production, gems.100)"
    report.changes.append(
      ChangeRow(
        .closed, finding: gone, findingId: gone.findingId, before: "open", after: "closed", because: because))
    report.changes.append(
      ChangeRow(
        adjusted: "o8", userId: "u8", amount: try money(300, "USD"), createdAt: try instant("2026-11-10T23:30:00Z"),
        before: .settled,
        after: .refunded, because: "Apple refunded it 2026-11-19T23:30:00Z"))
    try report.addDays()
    let book = try book(report)
    let sheet = try book.sheet("Changes")
    let severities = sheet.rows.dropFirst().compactMap { $0["D"]?.text }
    #expect(severities == severities.sorted(), "critical first: the severities are in alphabetical order")
    let closed = try #require(sheet.rows.firstIndex { $0["A"]?.text == "closed" }) + 1
    #expect(try sheet.cell("Because", closed)?.text == because)
    let adjusted = try #require(sheet.rows.firstIndex { $0["A"]?.text == "adjusted" }) + 1
    #expect(try sheet.cell("Amount", adjusted)?.number == 3)
    #expect(try sheet.cell("Kind", adjusted)?.text == "Order")
    #expect(try sheet.cell("Because", adjusted)?.text == "Apple refunded it 2026-11-20 00:30:00")
    #expect(try sheet.widths[sheet.letter("Finding ID")] ?? 0 >= 32)
    #expect(try book.sheet("Days").cell("Ordered", 4)?.number == 10)
    #expect(try book.sheet("Days").cell("Reported ordered", 4) == nil)
    #expect(try book.sheet("Days").letter("Paid, not delivered") == "G")
    #expect(try book.sheet("Days").letter("Reported: Not paid, nothing delivered") == "Y")
    let summary = try book.sheet("Summary")
    let controls = summary.rows.filter { $0["E"]?.formula?.hasPrefix("=IF(ISNUMBER(D") == true }
    #expect(controls.allSatisfy { $0["E"]?.text == "balanced" })
    #expect(controls.contains { $0["A"]?.text == "Ordered USD: users = days" })
    #expect(controls.contains { $0["A"]?.text == "Findings: closed = changes closed" })
    let lines = summary.rows.compactMap { $0["A"]?.text }
    #expect(lines.contains("•  closed: Wrong user, order o9, 5.00 USD, open → closed (it was delivered)"))
    #expect(lines.contains { $0.hasSuffix("(Apple refunded it 2026-11-20 00:30:00)") })
    #expect(!lines.contains { $0.hasSuffix("no night reported; see Changes.") })
    // The day of the adjusted order has no report.
    report.summary.dayLines.append(DayLine(day: "2026-11-11", currency: try currency("USD"), now: [:], reported: nil))
    let words = "1 more order is of a day that no night reported; see Changes."
    #expect(try self.book(report).sheet("Summary").row(named: words) != nil)
    #expect(try report.file("report.html").contains("<p class=\"meta\">\(words)</p>"))
    #expect(lines.contains { $0.contains("adjusted: order of an earlier day, order o8, 3.00 USD, Settled → Refunded") })
  }

  private func rowNumber(of name: String, in sheet: ReadBook.Sheet) throws -> Int {
    try #require(sheet.rows.firstIndex { $0["A"]?.text == name }) + 1
  }

  @Test func beyondReportWorkbookOrdersTheSheetsListOnlyOrdersWithFindingsAndNameTheFileWithAllOrders() throws {
    var report = try sample()
    var verified = ProofState()
    verified.outcome = .verified
    report.receipts = [
      Receipt(receiptId: "r1", orderId: nil, userId: nil, receivedAt: SampleReport.asOf, state: verified),
      Receipt(receiptId: "r2", orderId: nil, userId: nil, receivedAt: SampleReport.asOf, state: .neverChecked),
    ]
    report.options.workbookOrders = 4
    #expect(try book(report).sheet("Orders").rows.count == 5)
    #expect(try book(report).sheet("Receipts").rows.count == 3)
    report.options.workbookOrders = 1
    try withTemporaryDirectory { directory in
      try report.write(to: directory)
      #expect(try contents("orders.csv", in: directory).split(separator: "\r\n").count == 5)
      let book = try ReadBook(directory: directory)
      #expect(try book.sheet("Orders").column("A", 2...4) == ["o2", "o3", "o4"])
      #expect(try book.sheet("Findings").cell("Order ID", 2)?.link == "'Orders'!A2")
      #expect(try book.sheet("Receipts").column("A", 2...2) == ["r2"])
      let note = try book.sheet("Summary").row(named: "Orders")?["C"]?.text
      #expect(note == "Only those of the 4 orders with findings; all are in orders.csv beside this workbook.")
    }
    // No text refers to a file that does not exist.
    for formats in [[.csv, .xlsx], [.xlsx]] as [Set<ReportFormat>] {
      report.options.formats = formats
      let texts = try withTemporaryDirectory { directory in
        try report.write(to: directory)
        return try ReadBook(directory: directory).sheet("Summary").rows.flatMap { $0.values.compactMap(\.text) }
      }
      #expect(texts.filter { $0.contains(".csv") }.isEmpty != formats.contains(.csv), "\(texts)")
    }
  }

  @Test func aLongTableContinuesOnFurtherSheetsEachWithItsHeaderTableAndSums() throws {
    var report = try SampleReport()
    for number in 0..<13 {
      report.add(
        try OrderFixture(userId: Identifier("u\(number)"), amount: money(100, "USD"), isDelivered: number != 2)
          .judgement(Identifier("o\(number)")))
    }
    let book = try book(report, rowsPerSheet: 2)
    let names = book.sheets.map(\.name).filter { $0.hasPrefix("Orders") }
    #expect(names == ["Orders", "Orders 2", "Orders 3", "Orders 4", "Orders 5", "Orders 6", "Orders 7"])
    let second = try book.sheet("Orders 2")
    #expect(second.texts(0).first == "Order ID")
    #expect(try second.column("A", 2...3) == ["o2", "o3"])
    #expect(second.tables == ["OrdersTable2 A1:U3"])
    #expect(try book.sheet("Findings").cell("Order ID", 2)?.link == "'Orders 2'!A2")
    #expect(try book.sheet("Users 2").rows.last?["D"]?.number == 2)
    #expect(try book.sheet("Users 2").rows.last?["D"]?.formula == "=SUMIF($B$2:$B$3,B5,$D$2:$D$3)")
    #expect(try book.sheet("Users 2").rows.last?["A"]?.text == "Total of this sheet")
    #expect(try book.sheet("Orders 7").rows.count == 2)
    let last = try #require(try book.sheet("Users 7").rows.last)
    #expect(last["A"]?.text == "Total of all sheets")
    #expect(last["D"]?.number == 13)
    #expect(last["D"]?.formula?.hasPrefix("=SUMIF('Users'!$B$2:$B$3,B4,'Users'!$D$2:$D$3)+SUMIF('Users 2'!") == true)
    let summary = try book.sheet("Summary")
    #expect(summary.row(named: "Orders")?["B"]?.number == 2)
    #expect(summary.row(named: "Orders 7")?["B"]?.number == 1)
    #expect(summary.row(named: "Orders 7")?["A"]?.link == "'Orders 7'!A1")
    #expect(summary.row(named: "Orders 7")?["C"]?.text == "Continues Orders 6.")
    #expect(summary.row(named: "USD")?["C"]?.formula?.contains("+SUMIFS('Users 7'!") == true)
    #expect(summary.row(named: "USD")?["C"]?.number == 12)
  }

  @Test func datesBeforeExcelsFirstOneAreTextAndTimesHaveTheOffsetOfSummerOrWinter() throws {
    var report = try SampleReport()
    for (id, text) in [("o1", "2026-10-25T00:59:59Z"), ("o2", "2026-10-25T01:00:00Z"), ("o3", "1600-01-01T00:00:00Z")] {
      var judgement = try OrderFixture(amount: money(1, "USD")).judgement(Identifier(id))
      judgement.refundedAt = try instant(text)
      report.add(judgement)
    }
    let sheet = try book(report).sheet("Orders")
    #expect(
      try sheet.column("P", 2...4) == [
        "2026-10-25 02:59:59", "2026-10-25 02:00:00", "1600-01-01T00:00:00Z",
      ])
  }

  @Test func theWorkbookOfALongerPeriodHasItsOwnNameTitleFindingsAndRollForward() throws {
    var report = try sample()
    report.options.formats = [.csv, .xlsx]
    report.options.period = Period(
      since: "2026-11-01", until: "2026-11-30", start: try instant("2026-11-01T00:00:00Z"),
      end: try instant("2026-12-01T00:00:00Z"))
    report.summary.period = report.options.period
    report.summary.changes.since = try instant("2026-11-01T03:00:00Z")
    var older = Finding(kind: .wrongUser, subject: .order("old"), reason: "r")
    older.occurredAt = try instant("2026-10-31T23:59:59Z")
    report.report(ReportedFinding(older, firstSeen: SampleReport.asOf))
    var gone = Finding(kind: .wrongUser, subject: .order("gone"), reason: "r")
    gone.atStake = try money(250, "USD")
    report.summary.findings.count(passing: gone)
    try withTemporaryDirectory { directory in
      let files = try report.write(to: directory)
      #expect(files.contains { $0.name == "night-audit-2026-11-01_2026-11-30.xlsx" })
      let book = try ReadBook(directory: directory, name: "night-audit-2026-11-01_2026-11-30.xlsx")
      #expect(book.title == "App Store night audit 2026-11-01 to 2026-11-30")
      let all = try book.sheet("Findings").column(book.sheet("Findings").letter("Order ID"), 2...5)
      let own = try book.sheet("Period findings")
      #expect(try own.column(own.letter("Order ID"), 2...4) == all.filter { $0 != nil })
      #expect(own.rows.count == 4)
      #expect(own.entries == [])
      let summary = try book.sheet("Summary")
      let lines = summary.rows.compactMap { $0["A"]?.text }
      #expect(lines.contains("Month-end: exposure roll-forward"))
      #expect(
        lines.contains(
          "Compared with the night made for 2026-11-01 04:00:00 (Europe/Berlin). 1 finding was opened and closed in between and "
            + "is in no column: 2.50 USD."))
      let head = try #require(summary.rows.first { $0["F"]?.text == "= Closing" })
      #expect(["B", "C", "D", "E"].map { head[$0]?.text } == ["Opening", "+ New", "− Closed", "± Changed"])
      let page = try contents("report.html", in: directory)
      #expect(page.contains("Month-end: exposure roll-forward"))
      #expect(page.contains("<h1>App Store night audit 2026-11-01 to 2026-11-30</h1>"))
    }
  }
}
