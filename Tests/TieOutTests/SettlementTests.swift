import Reconciliation
import Testing

@testable import TieOut

struct SettlementTests {
  private static func period(_ name: String) -> FiscalPeriod {
    FiscalCalendar.period(named: name) ?? FiscalCalendar.periods[0]
  }

  private static let first = period("2026-01")
  private static let second = period("2026-02")
  private static let all = Set(FiscalCalendar.periods)

  private func day(_ text: String) -> ReportDay { ReportDay(text) ?? ReportDay(number: 0) }

  /// Without sales reports all figures but the settled ones are unknown.
  @Test func blankFiguresAreCountedByColumn() {
    func period(hasSales: Bool, isGrossKnown: Bool = true, isTaxKnown: Bool = true) -> TieOutTable.Period {
      var line = ProceedsSettlement.Line()
      (line.isGrossKnown, line.isTaxKnown) = (isGrossKnown, isTaxKnown)
      return TieOutTable.Period(name: "2026-01", currency: "USD", line: line, hasSales: hasSales)
    }
    #expect(TieOutRun.blanks(in: [period(hasSales: true)]) == nil)
    let periods =
      [period(hasSales: true), period(hasSales: true, isTaxKnown: false)]
      + [period(hasSales: true, isGrossKnown: false, isTaxKnown: false)]
      + Array(repeating: period(hasSales: false), count: 1_000)
    #expect(
      TieOutRun.blanks(in: periods)
        == "Of the 1,003 lines of the settlement these figures are blank, because they are unknown: Proceeds earned, "
        + "Outstanding at period end, Written off by Apple and Difference in 1,000 (daily sales reports are missing); "
        + "Gross in 1,001 (or customers "
        + "paid in another currency than Apple pays); Commission and Tax in 1,002 (or Apple's reports do not state the tax "
        + "in the prices)")
  }

  private func sides(
    sold: [(String, Int)], settled: [(FiscalPeriod, String, Int)], share: String = "0.70"
  ) -> SettlementSides {
    var sides = SettlementSides(currency: "USD")
    sides.sold = sold.map { .init(day: day($0.0), units: Millionths($0.1), share: number(share)) }
    sides.settled = settled.map {
      .init(
        period: $0.0, transactionDay: day($0.1), units: Millionths($0.2), share: number(share),
        extended: Millionths($0.2).times(number(share)) ?? .zero)
    }
    return sides
  }

  private func line(_ period: FiscalPeriod, _ settlement: ProceedsSettlement) -> ProceedsSettlement.Line {
    settlement.lines[.init(period: period, currency: "USD")] ?? .init()
  }

  @Test func grossCommissionAndTaxAreTheReportsOrUnknown() {
    typealias Gross = SettlementSides.Gross
    let cases: [(sold: [Gross], isGrossKnown: Bool, isTaxKnown: Bool)] = [
      ([.init(number("9.99"), country: "US"), .init(number("1.00"), country: "US")], true, true),
      ([.init(number("9.99"), country: "US"), .init(number("1.00"), country: "DE")], true, false),
      ([.init(number("9.99"), country: "US"), .inOtherCurrency], false, false),
    ]
    for (sold, isGrossKnown, isTaxKnown) in cases {
      var settlement = ProceedsSettlement(today: day("2026-03-01"), whole: Self.all)
      for gross in sold {
        var sides = SettlementSides(currency: "USD")
        sides.sold = [.init(day: day("2025-10-15"), units: .one, share: number("3.00"), gross: gross)]
        settlement.add(sides)
      }
      let found = line(Self.first, settlement)
      #expect(found.isGrossKnown == isGrossKnown && found.isTaxKnown == isTaxKnown)
      if isTaxKnown { #expect(found.gross == number("10.99") && found.commission == number("4.99")) }
    }
  }

  @Test func lateSettlementsMoveToTheNextPeriod() {
    var settlement = ProceedsSettlement(today: day("2026-03-01"), whole: Self.all)
    settlement.add(
      sides(
        sold: [("2025-10-15", 10), ("2025-10-31", 3), ("2025-11-05", 2)],
        settled: [(Self.first, "2025-10-15", 10), (Self.second, "2025-10-31", 3), (Self.second, "2025-11-05", 2)]))
    let (first, second) = (line(Self.first, settlement), line(Self.second, settlement))
    #expect(first.salesProceeds == number("9.10") && first.openAtEnd == number("2.10"))
    #expect(first.settled == number("7.00") && first.difference == .zero)
    #expect(second.settledFromBefore == number("2.10") && second.settled == number("3.50"))
    #expect(second.difference == .zero && settlement.movedUnits == .zero)
  }

  @Test func unpaidSalesAreOpenForSixtyEightDaysAndThenNeverCollected() {
    let sold = sides(sold: [("2025-11-05", 4)], settled: [(Self.second, "2025-11-05", 3)])
    var settlement = ProceedsSettlement(today: day("2025-11-05").advanced(by: 68), whole: Self.all)
    settlement.add(sold)
    #expect(line(Self.second, settlement).openAtEnd == number("0.70"))
    #expect(line(Self.second, settlement).neverCollected == .zero)
    settlement = ProceedsSettlement(today: day("2025-11-05").advanced(by: 69), whole: Self.all)
    settlement.add(sold)
    #expect(line(Self.second, settlement).neverCollected == number("0.70"))
    #expect(line(Self.second, settlement).openAtEnd == .zero && line(Self.second, settlement).difference == .zero)
  }

  /// No sale counts as never collected while a later finance report is missing.
  @Test func salesStayOpenWhileAFinanceReportIsMissing() {
    // The sale is on the last day of fiscal 2026-02. 2026-03 ends 28 days later, and 2026-04 another 35 days later.
    let sold = sides(sold: [("2025-11-29", 1)], settled: [])
    for (missing, isLeftOut) in [("2026-02", false), ("2026-03", false), ("2026-01", true), ("2026-04", true)] {
      var settlement = ProceedsSettlement(today: day("2026-05-01"), whole: Self.all.subtracting([Self.period(missing)]))
      settlement.add(sold)
      let line = line(Self.second, settlement)
      #expect(line.neverCollected == (isLeftOut ? number("0.70") : .zero), "\(missing)")
      #expect(line.openAtEnd == (isLeftOut ? .zero : number("0.70")) && line.difference == .zero, "\(missing)")
    }
  }

  @Test func adjacentDaysMatchTheSameSale() {
    var settlement = ProceedsSettlement(today: day("2026-03-01"), whole: Self.all)
    settlement.add(
      sides(
        sold: [("2025-11-05", 1), ("2025-11-08", 1)],
        settled: [(Self.second, "2025-11-06", 1), (Self.second, "2025-11-08", 1)]))
    #expect(settlement.movedUnits == .one && line(Self.second, settlement).difference == .zero)
  }

  /// Subscriptions older than a year have a higher share. The sale with the higher share was settled at once.
  @Test func salesAtTheSameShareAreSettledFirst() {
    var settlement = ProceedsSettlement(today: day("2026-03-01"), whole: Self.all)
    var sides = sides(sold: [("2025-10-31", 1)], settled: [(Self.second, "2025-10-31", 1)])
    sides.sold.append(.init(day: day("2025-10-31"), units: .one, share: number("0.85")))
    sides.settled.append(
      .init(
        period: Self.first, transactionDay: day("2025-10-31"), units: .one, share: number("0.85"),
        extended: number("0.85")))
    settlement.add(sides)
    #expect(line(Self.first, settlement).openAtEnd == number("0.70"))
    #expect(line(Self.first, settlement).difference == .zero && line(Self.second, settlement).difference == .zero)
  }

  @Test func remainingUnitsSettleAtADifferentShare() {
    var settlement = ProceedsSettlement(today: day("2026-03-01"), whole: Self.all)
    var sides = sides(sold: [("2025-11-05", 1), ("2025-11-06", 1)], settled: [(Self.second, "2025-11-05", 1)])
    sides.settled.append(
      .init(
        period: Self.second, transactionDay: day("2025-11-05"), units: .one, share: number("0.71"),
        extended: number("0.71")))
    settlement.add(sides)
    let line = line(Self.second, settlement)
    #expect(line.openAtEnd == .zero && line.neverCollected == .zero && line.difference == number("-0.01"))
  }

  @Test func settledUnitsWithoutASaleAreTheDifference() {
    var settlement = ProceedsSettlement(today: day("2026-03-01"), whole: Self.all)
    settlement.add(sides(sold: [("2025-11-05", 1)], settled: [(Self.second, "2025-11-05", 2)]))
    #expect(line(Self.second, settlement).difference == number("-0.70"))
  }

  @Test func returnsAreSettledLikeSalesBelowZero() {
    var settlement = ProceedsSettlement(today: day("2026-03-01"), whole: Self.all)
    settlement.add(sides(sold: [("2025-10-31", -2)], settled: [(Self.second, "2025-10-31", -2)]))
    #expect(line(Self.first, settlement).openAtEnd == number("-1.40"))
    #expect(line(Self.second, settlement).settledFromBefore == number("-1.40"))
    #expect(line(Self.first, settlement).difference == .zero && line(Self.second, settlement).difference == .zero)
  }

  @Test func salesThatAreOlderThanOurReportsAreFromBefore() {
    var settlement = ProceedsSettlement(today: day("2026-03-01"), whole: Self.all)
    settlement.add(sides(sold: [], settled: [(Self.second, "2025-10-30", 1)]))
    #expect(line(Self.second, settlement).settledFromBefore == number("0.70"))
    #expect(line(Self.second, settlement).difference == .zero)
  }
}

struct SettlementReportsTests {
  private static let twelfth = FiscalCalendar.period(named: "2026-12") ?? FiscalCalendar.periods[0]
  private static let eleventh = FiscalCalendar.period(named: "2026-11") ?? FiscalCalendar.periods[0]
  private static let both = ["80012345": "09-10", "80099999": "09-10"]

  /// FINANCE_DETAIL of fiscal 2026-12, which ends on 2026-09-26. `sold` has one day with proceeds for each vendor.
  private func reports(
    _ states: [String: DownloadState], vendors: [String] = [], sold: [String: String] = [:],
    daily: [String: ClosedRange<ReportDay>] = [:], before: [String: DownloadState] = [:],
    today: ReportDay = day("11-20")
  ) -> SettlementReports {
    func known(_ states: [String: DownloadState]) -> [String: ConnectReportTable.Known] {
      states.mapValues { ConnectReportTable.Known($0, .folder) }
    }
    var dailyReports: [String: [String: ConnectReportTable.Known]] = [:]
    for (vendor, days) in daily {
      for day in days { dailyReports[day.description, default: [:]][vendor] = .init(.zero, .api) }
    }
    return SettlementReports(
      today: today, known: ["2026-12": known(states), "2026-11": known(before)], vendors: vendors,
      sales: .init(reports: dailyReports, days: sold.mapValues { [day($0)] }))
  }

  @Test func aPeriodIsCompleteWithAllItsReports() {
    let (period, both) = (Self.twelfth, Self.both)
    #expect(reports(["80012345": .reported]).areComplete(period))
    #expect(reports(["80012345": .reported, "80099999": .zero], sold: both).areComplete(period))
    #expect(reports(["80012345": .reported], sold: ["80012345": "09-10", "80099999": "09-27"]).areComplete(period))
    #expect(!reports(["80012345": .reported], sold: both).areComplete(period))
    #expect(!reports(["80012345": .reported], vendors: ["80012345", "80099999"]).areComplete(period))
    #expect(!reports(["80012345": .reported, "80099999": .unknown]).areComplete(period))
    #expect(!reports([:]).areComplete(period))
  }

  /// Apple's answer is the same for "nothing was paid" and "not settled yet".
  @Test func vendorsWithoutSalesAreNotAwaited() {
    let states: [String: DownloadState] = ["80012345": .reported, "80099999": .unknown]
    let (since, last) = (Self.eleventh.first.advanced(by: -7), Self.twelfth.last)
    func completeness(
      _ daily: ClosedRange<ReportDay>?, sold: String? = nil, age: Int = SettlementReports.due
    ) -> (isWhole: Bool, late: Bool) {
      let reports = reports(
        states, vendors: ["80012345", "80099999"], sold: sold.map { ["80099999": $0] } ?? [:],
        daily: daily.map { ["80099999": $0] } ?? [:], today: last.advanced(by: age))
      let isLate = reports.late(.detail).contains { $0.contains("2026-12, vendor 80099999") }
      return (reports.areComplete(Self.twelfth), isLate)
    }
    #expect(completeness(since...last) == (true, false))
    // The vendor may have sold on a missing day, or earlier sales may be settled in this period.
    #expect(completeness(since...last.advanced(by: -1)) == (false, true))
    #expect(completeness(since...last, sold: "08-20") == (false, true))
    #expect(completeness(Self.twelfth.first...last) == (false, true))
    #expect(completeness(since...last, sold: "09-20") == (false, true) && completeness(nil) == (false, true))
    #expect(completeness(since...last, age: SettlementReports.due - 1) == (false, false))
    #expect(completeness(since...last, sold: "08-20", age: 71) == (true, false))
    #expect(completeness(since...last, sold: "09-20", age: 71) == (false, false))
  }

  @Test func aLateReportIsAReasonForIncompleteness() {
    let (period, both) = (Self.twelfth, Self.both)
    let late = ["no FINANCE_DETAIL of fiscal period 2026-12, vendor 80099999 (never asked)"]
    #expect(reports(["80012345": .reported], sold: both).reasons([period]) == late)
    let early = period.last.advanced(by: SettlementReports.due - 1)
    #expect(reports(["80012345": .reported], sold: both, today: early).reasons([period]).isEmpty)
    // No finance report is expected before the first one; later periods after it are.
    #expect(reports([:], sold: both).reasons([Self.eleventh, period]).isEmpty)
    let begun = reports([:], sold: ["80099999": "09-10"], before: ["80099999": .reported])
    #expect(begun.reasons([Self.eleventh, period]) == late)
    #expect(reports(["80012345": .reported, "80099999": .zero], sold: both).reasons([period]).isEmpty)
  }
}

struct EarnedTests {
  @Test func aCurrencyMissingFromAReportEarnsZero() throws {
    let period = try #require(FiscalCalendar.period(named: "2026-12"))
    var result = SettlementComparison.Result()
    #expect(result.earned(period, "USD") == nil)
    result.whole = [period]
    result.settled[.init(period: period, currency: "USD")] = number("2.10")
    #expect(result.earned(period, "USD") == number("2.10") && result.earned(period, "GBP") == .zero)
  }
}

struct FolderFileStateTests {
  private typealias FolderFileState = ConnectReportTable.FolderFileState

  @Test func aFileIsReadAgainUnlessASupersedingFileExists() {
    let names: Set = ["a.txt", "b.txt"]
    let cases: [(newestFile: String?, isNewest: Bool, isKnown: Bool, isNews: Bool)] = [
      ("a.txt", true, true, false), ("b.txt", true, true, false), ("gone.txt", true, true, false),
      ("a.txt", false, false, true), ("b.txt", false, false, true),
      // The file was restored under its name, or the superseding file was removed.
      ("a.txt", false, true, true), ("gone.txt", false, true, true), ("b.txt", false, true, false),
    ]
    for (newestFile, isNewest, isKnown, isNews) in cases {
      let state = FolderFileState(newestFile: newestFile, isNewest: isNewest, isKnown: isKnown)
      #expect(state.isNews("a.txt", among: names) == isNews, "\(state)")
    }
  }
}

struct MonthReportsTests {
  private typealias Sources = MonthReports.Sources

  private static let october = day("10-01")...day("10-31")

  private func sources(
    monthly: [String: DownloadState], daily: [String: (days: ClosedRange<Int>, state: DownloadState)],
    configured: [String] = ["80012345"], others: [String: [String: ConnectReportTable.Known]] = [:]
  ) -> Sources? {
    var known = others
    for (vendor, came) in daily {
      for number in came.days {
        let name = Self.october.lowerBound.advanced(by: number - 1).description
        known[name, default: [:]][vendor] = ConnectReportTable.Known(came.state, .api)
      }
    }
    return MonthReports(
      monthly: ["2026-10": monthly.mapValues { ConnectReportTable.Known($0, .api) }], daily: known,
      configured: configured
    ).whole(Self.october)
  }

  @Test func eachVendorsMonthIsItsReportOrAllOfItsDays() {
    let (ours, former) = ("80012345", "80099999")
    #expect(sources(monthly: [ours: .reported], daily: [:]) == Sources(monthly: [ours]))
    #expect(sources(monthly: [ours: .pending], daily: [ours: (1...31, .reported)]) == Sources(daily: [ours]))
    #expect(
      sources(monthly: [ours: .zero], daily: [former: (1...31, .reported)]) == Sources(monthly: [ours], daily: [former])
    )
    #expect(sources(monthly: [ours: .reported], daily: [former: (1...30, .reported)]) == nil)
    #expect(sources(monthly: [former: .reported], daily: [ours: (1...30, .reported)]) == nil)
    #expect(sources(monthly: [:], daily: [:], configured: []) == nil)
    // A state without a file is no report.
    #expect(sources(monthly: [ours: .reported, former: .doubtfulZero], daily: [:]) == Sources(monthly: [ours]))
  }

  /// The vendor had reports before and after, so its month is missing.
  @Test func aMonthBetweenAVendorsReportsIsAwaited() {
    let known = ConnectReportTable.Known(.reported, .folder)
    let before = ["2026-09-30": ["80099999": known]]
    let around = before.merging(["2026-11-01": ["80099999": known]]) { $1 }
    #expect(sources(monthly: ["80012345": .reported], daily: [:], others: before) == Sources(monthly: ["80012345"]))
    #expect(sources(monthly: ["80012345": .reported], daily: [:], others: around) == nil)
  }
}

struct DownloadStateTests {
  /// Treating every 404 as zero would hide a retired version and wrong parameters.
  @Test func aDayWithoutSalesNeedsASecondReason() {
    #expect(DownloadState.noSales(hasRows: false, hasOwnUnits: false, daysSinceFirst: nil) == .zero)
    #expect(DownloadState.noSales(hasRows: false, hasOwnUnits: true, daysSinceFirst: nil) == .doubtfulZero)
    #expect(DownloadState.noSales(hasRows: false, hasOwnUnits: true, daysSinceFirst: 2) == .doubtfulZero)
    #expect(DownloadState.noSales(hasRows: false, hasOwnUnits: true, daysSinceFirst: 3) == .zero)
    #expect(DownloadState.noSales(hasRows: true, hasOwnUnits: false, daysSinceFirst: nil) == .doubtfulZero)
    #expect(DownloadState.noSales(hasRows: true, hasOwnUnits: true, daysSinceFirst: 3) == .doubtfulZero)
  }

  @Test func aNightRequestsAtMost45DaysAndLaterNightsTheOpenDays() throws {
    let today = day("11-20")
    let first = AskingPlan.days(today: today, trailing: 5, states: [:])
    #expect(first.count == 45 && first.first == day("11-19") && first.last == today.advanced(by: -45))
    var states = Dictionary(uniqueKeysWithValues: first.map { ($0, DownloadState.reported) })
    let second = AskingPlan.days(today: today, trailing: 5, states: states)
    #expect(second == Array(first.prefix(5)) + (46...85).map { today.advanced(by: -$0) })
    let oldest = try #require(AskingPlan.periods(today: today, states: [:]).map(\.first).min())
    for number in oldest.number...today.number - 46 { states[ReportDay(number: number)] = .zero }
    #expect(AskingPlan.days(today: today, trailing: 5, states: states) == Array(first.prefix(5)))
    states[oldest] = .doubtfulZero
    states[oldest.advanced(by: 1)] = .unreadable
    // Apple keeps reports for a year.
    states[oldest.advanced(by: 2)] = .pending
    states[oldest.advanced(by: 3)] = .drift
    #expect(
      AskingPlan.days(today: today, trailing: 5, states: states)
        == Array(first.prefix(5)) + [3, 2, 0].map { oldest.advanced(by: $0) })
    for number in [0, 2, 3] { states[oldest.advanced(by: number)] = .gone }
    states[first[20]] = .pending
    states[first[30]] = .gone
    states[first[40]] = .doubtfulZero
    states[first[1]] = .gone
    #expect(
      AskingPlan.days(today: today, trailing: 5, states: states)
        == [first[0], first[2], first[3], first[4], first[20], first[40]])
  }

  @Test func financeReportsAreRequestedUntilReceived() throws {
    let today = try #require(ReportDay("2026-11-20"))
    let asked = AskingPlan.periods(today: today, states: [:])
    #expect(asked.map(\.description) == ["2026-10", "2026-11", "2026-12", "2027-01"])
    let second = try #require(FiscalCalendar.period(named: "2026-12"))
    #expect(!AskingPlan.periods(today: today, states: [second: .reported]).contains(second))
    #expect(AskingPlan.periods(today: today, states: [second: .unknown]).contains(second))
    #expect(!AskingPlan.periods(today: second.last.advanced(by: 71), states: [second: .unknown]).contains(second))
  }
}

struct ReportWindowTests {
  private static let today = day("11-20")

  private func window(
    _ vendors: [String], _ reports: [String: (days: ClosedRange<Int>, source: ConnectReport.Source)]
  ) -> ReportWindow {
    var known: [String: [String: ConnectReportTable.Known]] = [:]
    for (vendor, came) in reports {
      for ago in came.days {
        let name = Self.today.advanced(by: -ago).description
        known[name, default: [:]][vendor] = ConnectReportTable.Known(.reported, came.source)
      }
    }
    return ReportWindow(today: Self.today, first: Self.today, margin: 8, known: known, vendors: vendors)
  }

  @Test func removedVendorsAreNotAwaited() {
    let gone = window(["80012345"], ["80012345": (1...53, .api), "80099999": (10...53, .api)])
    #expect(
      gone.reasons(since: Self.today.advanced(by: -150)) { _ in true }.isEmpty
        && gone.printed.allSatisfy(gone.isSettled))
    // A vendor with files in the folder is still expected, with and without configured vendors.
    let others: [([String], ConnectReport.Source)] = [(["80012345"], .folder), ([], .folder), ([], .api)]
    for (vendors, source) in others {
      let both = window(vendors, ["80012345": (1...53, source), "80099999": (10...53, source)])
      #expect(
        both.reasons(since: Self.today.advanced(by: -150)) { _ in true }
          == ["no daily report of 9 days (never asked, vendor 80099999): 2026-11-11, 2026-11-12, 2026-11-13, …"])
    }
  }

  /// A company's vendor number changed: the files of the new one begin where those of the old one end.
  @Test(arguments: [20, 60])
  func aVendorTakesOverFromAnother(since ago: Int) {
    let whole = window([], ["80012345": (ago...150, .folder), "80099999": (1...(ago - 1), .folder)])
    #expect(
      whole.reasons(since: Self.today.advanced(by: -150)) { _ in true }.isEmpty
        && whole.printed.allSatisfy(whole.isSettled))
    #expect((1...150).allSatisfy { whole.isSettled(Self.today.advanced(by: -$0)) })
    let holed = window([], ["80012345": ((ago + 2)...150, .folder), "80099999": (1...(ago - 1), .folder)])
    let missing = (1...150).filter { !holed.isSettled(Self.today.advanced(by: -$0)) }
    #expect(missing == [ago, ago + 1])
    let late = window([], ["80012345": (ago...150, .folder), "80099999": (3...(ago - 1), .folder)])
    #expect(
      late.reasons(since: Self.today.advanced(by: -150)) { _ in true }
        == ["no daily report of 2 days (never asked, vendor 80099999): 2026-11-18, 2026-11-19"])
    // A vendor whose days lie within those of the other is no successor, so its missing days are reported.
    let beside = window([], ["80012345": (1...150, .folder), "80099999": (30...40, .folder)])
    #expect(
      beside.reasons(since: Self.today.advanced(by: -150)) { _ in true }.count == 1
        && !beside.isSettled(Self.today.advanced(by: -44)))
  }

  @Test func comparedAndPrintedDaysStartAtTheirOwnDates() {
    for (first, compared) in [("08-03", "08-03"), ("10-12", "10-06")] {
      let window = ReportWindow(today: Self.today, first: day(first), margin: 8, known: [:], vendors: [])
      #expect(window.printed == day("10-06")...day("11-19") && window.compared == day(compared)...day("11-19"))
      #expect(window.days.lowerBound == day(compared).advanced(by: -8))
    }
  }

  @Test func aDayWithReportsOfSomeVendorsIsNeitherMissingNorFinal() {
    let window = window(["80012345", "80099999"], ["80012345": (1...20, .api), "80099999": (10...30, .api)])
    let days: [(ago: Int, old: DayCoverage.Coverage, young: DayCoverage.Coverage)] = [
      (5, .partial, .young), (15, .final, .young), (25, .partial, .young), (35, .missing, .missing),
    ]
    for (ago, old, young) in days {
      let day = Self.today.advanced(by: -ago)
      #expect(window.coverage(day, isYoung: false) == old && window.coverage(day, isYoung: true) == young)
    }
  }
}
