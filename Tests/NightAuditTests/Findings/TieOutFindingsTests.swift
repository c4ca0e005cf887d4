import Reconciliation
import Run
import Settings
import Testing

@testable import NightAudit
@testable import TieOut

struct TieOutFindingsTests {
  private typealias Week = TieOutTotals.Week

  private static let settings = {
    var settings = Settings()
    settings.apps = ["game", "quiz", "other"].map { Settings.App(name: $0, bundleId: "com.example.\($0)") }
    return settings
  }()

  private func week(_ app: String, _ amount: String?, _ currency: Identifier? = "USD") -> Week {
    Week(
      app: app, productId: "coins", monday: ReportDay("2026-11-16") ?? ReportDay(number: 0), units: Millionths(5),
      isUnknownProduct: false, amount: amount.flatMap { Millionths($0) }, currency: currency)
  }

  private func finding(_ weeks: [Week], listed: String? = nil) throws -> Finding {
    let findings = TieOutReport.findings(weeks, names: [:], listed: listed, Self.settings)
    #expect(findings.count == 1)
    return try #require(findings.first)
  }

  @Test func amountsAtRiskOfTwoAppsAreAdded() throws {
    let sum = try finding([week("game", "9.95"), week("quiz", "13.93")])
    #expect(sum.atStake?.minorUnits == 2_388 && sum.amount == sum.atStake && !sum.isAmountAtRiskUnknown)
    #expect(sum.occurredAt == Instant(seconds: 1_794_830_400), "2026-11-16, noon in UTC")
    #expect(sum.reason.text.hasPrefix("Apple counted 10 units of coins"))
    for other in [week("quiz", nil, nil), week("quiz", "13.93", "EUR")] {
      let unknown = try finding([week("game", "9.95"), other])
      #expect(unknown.atStake == nil && unknown.isAmountAtRiskUnknown)
    }
  }

  @Test(arguments: [["game", "quiz"], ["game+quiz"]])
  func aFindingIsListedForEachOfItsApps(apps: [String]) throws {
    let weeks = apps.map { week($0, "9.95") }
    #expect(try finding(weeks).bundleId == nil)
    for app in ["game", "quiz"] {
      var listed = try finding(weeks, listed: "com.example.\(app)")
      #expect(listed.bundleId == "com.example.\(app)")
      listed.bundleId = nil
      #expect(try finding(weeks) == listed)
    }
    #expect(try finding(weeks, listed: "com.example.other").bundleId == nil)
    #expect(try finding([week("quiz", "9.95")], listed: "com.example.game").bundleId == "com.example.quiz")
  }
}
