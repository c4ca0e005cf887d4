import Reconciliation
import Testing

@testable import TieOut

struct SettlementTests {
  private static func period(_ name: String) -> FiscalPeriod {
    FiscalCalendar.period(named: name) ?? FiscalCalendar.periods[0]
  }

  private static let (first, second) = (period("2026-01"), period("2026-02"))

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

  @Test func amountsThatTheJournalCannotPostAreNoted() {
    func period(_ settled: String, _ currency: Identifier) -> TieOutTable.Period {
      var line = ProceedsSettlement.Line()
      line.settled = number(settled)
      return TieOutTable.Period(name: "2026-12", currency: currency, line: line, hasSales: false)
    }
    #expect(TieOutRun.unposted([period("84", "JPY"), period("84.5", "USD")]) == nil)
    let note = TieOutRun.unposted([period("84.5", "JPY"), period("84.5", "USD")])
    #expect(note?.hasSuffix("by hand: payout of 2026-12: 84.5 JPY") == true, "\(note ?? "")")
    var withCommission = period("1", "JPY")
    (withCommission.hasSales, withCommission.line.gross) = (true, number("0.5"))
    #expect(TieOutRun.unposted([withCommission])?.hasSuffix("by hand: commission of 2026-12: 0.5 JPY") == true)
  }

  private typealias Settled = (period: FiscalPeriod, day: String, units: Int)

  /// Units of one share each, sold and settled.
  private func sides(sold: [(String, Int)], settled: [Settled], share: String = "0.70") -> SettlementSides {
    var sides = SettlementSides(currency: "USD")
    sides.sold = sold.map { .init(day: day($0.0), units: Millionths($0.1), share: number(share)) }
    sides.settled = settled.map {
      .init(
        period: $0.period, transactionDay: day($0.day), units: Millionths($0.units), share: number(share),
        extended: Millionths($0.units).times(number(share)) ?? .zero)
    }
    return sides
  }

  private func settle(
    _ sides: SettlementSides..., today: ReportDay? = nil, missing: [String] = []
  ) -> ProceedsSettlement {
    let whole = Set(FiscalCalendar.periods).subtracting(missing.map(Self.period))
    var settlement = ProceedsSettlement(today: today ?? day("2026-05-01"), whole: whole)
    for side in sides { settlement.add(side) }
    return settlement
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
      let all = sold.map { gross in
        var sides = SettlementSides(currency: "USD")
        sides.sold = [.init(day: day("2025-10-15"), units: .one, share: number("3.00"), gross: gross)]
        return sides
      }
      let found = line(Self.first, settle(all[0], all[1], today: day("2026-03-01")))
      #expect(found.isGrossKnown == isGrossKnown && found.isTaxKnown == isTaxKnown)
      if isTaxKnown { #expect(found.gross == number("10.99") && found.commission == number("4.99")) }
    }
  }

  @Test func lateSettlementsMoveToTheNextPeriod() {
    let settlement = settle(
      sides(
        sold: [("2025-10-15", 10), ("2025-10-31", 3), ("2025-11-05", 2)],
        settled: [(Self.first, "2025-10-15", 10), (Self.second, "2025-10-31", 3), (Self.second, "2025-11-05", 2)]),
      today: day("2026-03-01"))
    let (first, second) = (line(Self.first, settlement), line(Self.second, settlement))
    #expect(first.salesProceeds == number("9.10") && first.openAtEnd == number("2.10"))
    #expect(first.settled == number("7.00") && first.difference == .zero)
    #expect(second.settledFromBefore == number("2.10") && second.settled == number("3.50"))
    #expect(second.difference == .zero && settlement.movedUnits == .zero)
  }

  @Test(arguments: [(68, false), (69, true)])
  func unpaidSalesAreOpenForSixtyEightDaysAndThenNeverCollected(age: Int, isLost: Bool) {
    let sides = sides(sold: [("2025-11-05", 4)], settled: [(Self.second, "2025-11-05", 3)])
    let line = line(Self.second, settle(sides, today: day("2025-11-05").advanced(by: age)))
    #expect(line.openAtEnd == (isLost ? .zero : number("0.70")) && line.difference == .zero)
    #expect(line.neverCollected == (isLost ? number("0.70") : .zero))
  }

  /// The sale is on the last day of fiscal 2026-02. 2026-03 ends 28 days later, and 2026-04 another 35 days later.
  @Test(arguments: [("2026-02", false), ("2026-03", false), ("2026-01", true), ("2026-04", true)])
  func salesStayOpenWhileALaterFinanceReportIsMissing(missing: String, isLost: Bool) {
    let line = line(Self.second, settle(sides(sold: [("2025-11-29", 1)], settled: []), missing: [missing]))
    #expect(line.neverCollected == (isLost ? number("0.70") : .zero))
    #expect(line.openAtEnd == (isLost ? .zero : number("0.70")) && line.difference == .zero)
  }

  @Test func adjacentDaysMatchTheSameSale() {
    let settlement = settle(
      sides(
        sold: [("2025-11-05", 1), ("2025-11-08", 1)],
        settled: [(Self.second, "2025-11-06", 1), (Self.second, "2025-11-08", 1)]), today: day("2026-03-01"))
    #expect(settlement.movedUnits == .one && line(Self.second, settlement).difference == .zero)
  }

  /// Subscriptions older than a year have a higher share. The sale with the higher share was settled at once.
  @Test func salesAtTheSameShareAreSettledFirst() {
    var both = sides(sold: [("2025-10-31", 1)], settled: [(Self.second, "2025-10-31", 1)])
    let higher = sides(sold: [("2025-10-31", 1)], settled: [(Self.first, "2025-10-31", 1)], share: "0.85")
    both.sold += higher.sold
    both.settled += higher.settled
    let settlement = settle(both, today: day("2026-03-01"))
    #expect(line(Self.first, settlement).openAtEnd == number("0.70"))
    #expect(line(Self.first, settlement).difference == .zero && line(Self.second, settlement).difference == .zero)
  }

  @Test func remainingUnitsSettleAtADifferentShare() {
    var both = sides(sold: [("2025-11-05", 1), ("2025-11-06", 1)], settled: [(Self.second, "2025-11-05", 1)])
    both.settled += sides(sold: [], settled: [(Self.second, "2025-11-05", 1)], share: "0.71").settled
    let line = line(Self.second, settle(both, today: day("2026-03-01")))
    #expect(line.openAtEnd == .zero && line.neverCollected == .zero && line.difference == number("-0.01"))
  }

  @Test func settledUnitsWithoutASaleAreTheDifference() {
    let sides = sides(sold: [("2025-11-05", 1)], settled: [(Self.second, "2025-11-05", 2)])
    #expect(line(Self.second, settle(sides, today: day("2026-03-01"))).difference == number("-0.70"))
  }

  @Test func returnsAreSettledLikeSalesBelowZero() {
    let sides = sides(sold: [("2025-10-31", -2)], settled: [(Self.second, "2025-10-31", -2)])
    let settlement = settle(sides, today: day("2026-03-01"))
    let (first, second) = (line(Self.first, settlement), line(Self.second, settlement))
    #expect(first.openAtEnd == number("-1.40") && second.settledFromBefore == number("-1.40"))
    #expect(first.difference == .zero && second.difference == .zero)
  }

  @Test func salesThatAreOlderThanOurReportsAreFromBefore() {
    let sides = sides(sold: [], settled: [(Self.second, "2025-10-30", 1)])
    let line = line(Self.second, settle(sides, today: day("2026-03-01")))
    #expect(line.settledFromBefore == number("0.70") && line.difference == .zero)
  }
}

private let (ours, former) = ("80012345", "80099999")

struct SettlementReportsTests {
  private static let twelfth = FiscalCalendar.period(named: "2026-12") ?? FiscalCalendar.periods[0]
  private static let eleventh = FiscalCalendar.period(named: "2026-11") ?? FiscalCalendar.periods[0]
  private static let both = [ours: "09-10", former: "09-10"]

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
    #expect(reports([ours: .reported]).areComplete(period))
    #expect(reports([ours: .reported, former: .zero], sold: both).areComplete(period))
    #expect(reports([ours: .reported], sold: [ours: "09-10", former: "09-27"]).areComplete(period))
    #expect(!reports([ours: .reported], sold: both).areComplete(period))
    #expect(!reports([ours: .reported], vendors: [ours, former]).areComplete(period))
    #expect(!reports([ours: .reported, former: .unknown]).areComplete(period) && !reports([:]).areComplete(period))
  }

  /// Apple's answer is the same for "nothing was paid" and "not settled yet".
  @Test func vendorsWithoutSalesAreNotAwaited() {
    let states: [String: DownloadState] = [ours: .reported, former: .unknown]
    let (since, last) = (Self.eleventh.first.advanced(by: -7), Self.twelfth.last)
    func completeness(
      _ daily: ClosedRange<ReportDay>?, sold: String? = nil, age: Int = SettlementReports.due
    ) -> (isWhole: Bool, late: Bool) {
      let reports = reports(
        states, vendors: [ours, former], sold: sold.map { [former: $0] } ?? [:],
        daily: daily.map { [former: $0] } ?? [:], today: last.advanced(by: age))
      let isLate = reports.late(.detail).contains { $0.contains("2026-12, vendor \(former)") }
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
    #expect(reports([ours: .reported], sold: both).reasons([period]) == late)
    let early = period.last.advanced(by: SettlementReports.due - 1)
    #expect(reports([ours: .reported], sold: both, today: early).reasons([period]).isEmpty)
    // No finance report is expected before the first one; later periods after it are.
    #expect(reports([:], sold: both).reasons([Self.eleventh, period]).isEmpty)
    let begun = reports([:], sold: [former: "09-10"], before: [former: .reported])
    #expect(begun.reasons([Self.eleventh, period]) == late)
    #expect(reports([ours: .reported, former: .zero], sold: both).reasons([period]).isEmpty)
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
    configured: [String] = [ours], others: [String: [String: ConnectReportTable.Known]] = [:]
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
    let before = ["2026-09-30": [former: known]]
    let around = before.merging(["2026-11-01": [former: known]]) { $1 }
    #expect(sources(monthly: [ours: .reported], daily: [:], others: before) == Sources(monthly: [ours]))
    #expect(sources(monthly: [ours: .reported], daily: [:], others: around) == nil)
  }
}

struct DownloadStateTests {
  /// Treating every 404 as zero would hide a retired version and wrong parameters.
  @Test(
    arguments: [
      (false, false, nil, .zero), (false, true, nil, .doubtfulZero), (false, true, 2, .doubtfulZero),
      (false, true, 3, .zero), (true, false, nil, .doubtfulZero), (true, true, 3, .doubtfulZero),
    ] as [(Bool, Bool, Int?, DownloadState)])
  func aDayWithoutSalesNeedsASecondReason(hasRows: Bool, hasOwnUnits: Bool, days: Int?, state: DownloadState) {
    #expect(DownloadState.noSales(hasRows: hasRows, hasOwnUnits: hasOwnUnits, daysSinceFirst: days) == state)
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
    func asked() -> [ReportDay] { AskingPlan.days(today: today, trailing: 5, states: states) }
    #expect(asked() == Array(first.prefix(5)))
    // Apple keeps reports for a year.
    let old: [DownloadState] = [.doubtfulZero, .unreadable, .pending, .drift]
    for (place, state) in old.enumerated() { states[oldest.advanced(by: place)] = state }
    #expect(asked() == Array(first.prefix(5)) + [3, 2, 0].map { oldest.advanced(by: $0) })
    for number in [0, 2, 3] { states[oldest.advanced(by: number)] = .gone }
    for (place, state) in [(20, .pending), (30, .gone), (40, .doubtfulZero), (1, .gone)] as [(Int, DownloadState)] {
      states[first[place]] = state
    }
    #expect(asked() == [0, 2, 3, 4, 20, 40].map { first[$0] })
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

  private func reasons(_ window: ReportWindow) -> [String] {
    window.reasons(since: Self.today.advanced(by: -150)) { _ in true }
  }

  @Test func removedVendorsAreNotAwaited() {
    let gone = window([ours], [ours: (1...53, .api), former: (10...53, .api)])
    #expect(reasons(gone).isEmpty && gone.printed.allSatisfy(gone.isFinal))
    // A vendor with files in the folder is still expected, with and without configured vendors.
    let others: [([String], ConnectReport.Source)] = [([ours], .folder), ([], .folder), ([], .api)]
    for (vendors, source) in others {
      let both = window(vendors, [ours: (1...53, source), former: (10...53, source)])
      #expect(
        reasons(both)
          == ["no daily report of 9 days (never asked, vendor 80099999): 2026-11-11, 2026-11-12, 2026-11-13, …"])
    }
  }

  /// A company's vendor number changed: the files of the new one begin where those of the old one end.
  @Test(arguments: [20, 60])
  func aVendorTakesOverFromAnother(since ago: Int) {
    let whole = window([], [ours: (ago...150, .folder), former: (1...(ago - 1), .folder)])
    #expect(reasons(whole).isEmpty && whole.printed.allSatisfy(whole.isFinal))
    #expect((1...150).allSatisfy { whole.isFinal(Self.today.advanced(by: -$0)) })
    let holed = window([], [ours: ((ago + 2)...150, .folder), former: (1...(ago - 1), .folder)])
    let missing = (1...150).filter { !holed.isFinal(Self.today.advanced(by: -$0)) }
    #expect(missing == [ago, ago + 1])
    let late = window([], [ours: (ago...150, .folder), former: (3...(ago - 1), .folder)])
    #expect(
      reasons(late) == ["no daily report of 2 days (never asked, vendor 80099999): 2026-11-18, 2026-11-19"])
    // A vendor whose days lie within those of the other is no successor, so its missing days are reported.
    let beside = window([], [ours: (1...150, .folder), former: (30...40, .folder)])
    #expect(reasons(beside).count == 1 && !beside.isFinal(Self.today.advanced(by: -44)))
  }

  @Test func comparedAndPrintedDaysStartAtTheirOwnDates() {
    for (first, compared) in [("08-03", "08-03"), ("10-12", "10-06")] {
      let window = ReportWindow(today: Self.today, first: day(first), margin: 8, known: [:], vendors: [])
      #expect(window.printed == day("10-06")...day("11-19") && window.compared == day(compared)...day("11-19"))
      #expect(window.days.lowerBound == day(compared).advanced(by: -8))
    }
  }

  @Test func aDayWithReportsOfSomeVendorsIsNeitherMissingNorFinal() {
    let window = window([ours, former], [ours: (1...20, .api), former: (10...30, .api)])
    let days: [(ago: Int, old: DayCoverage.Coverage, young: DayCoverage.Coverage)] = [
      (5, .partial, .young), (15, .final, .young), (25, .partial, .young), (35, .missing, .missing),
    ]
    for (ago, old, young) in days {
      let day = Self.today.advanced(by: -ago)
      #expect(window.coverage(day, isYoung: false) == old && window.coverage(day, isYoung: true) == young)
    }
  }
}
