import Reconciliation
import Reporting
import Run
import Settings

extension Settings {
  /// By selected app, the kinds of findings that its channel and its notifications cannot show.
  func notChecked(_ coverage: [String: FeedCoverage], in selection: Selection) -> [String: [FindingKind]] {
    var kinds: [String: [FindingKind]] = [:]
    for app in apps where selection.bundleId.map({ $0 == app.bundleId }) ?? true {
      let ofChannel =
        effectiveChannel(of: app) == .verifyReceipt ? FindingKind.allCases.filter { $0.has(.needsServerAPI) } : []
      let unseen = ofChannel + (coverage[app.name]?.unseenKinds ?? [])
      if !unseen.isEmpty { kinds[app.name] = unseen }
    }
    return kinds
  }

  var settingWords: [SettingText] {
    var words = apps.map { app in
      SettingText(
        "Channel of \(app.name)",
        effectiveChannel(of: app) == .verifyReceipt
          ? "verifyReceipt: shows no prices, no partial refunds and no refunds of consumables"
          : "App Store Server API")
    }
    words += [
      SettingText("Lookback", "\(lookback.words): older orders have no findings"),
      SettingText("Grace of deliveries", "\(deliveryGrace.words) from payment to delivery"),
      SettingText("Grace of evidence", "\(evidenceGrace.words) until a receipt or transaction must be there"),
      SettingText("Grace of look-ups", "\(notFoundGrace.words) until an order whose ID Apple does not know is unpaid"),
      SettingText("Match window", "\(matchWindow.words) between order and purchase that belong together"),
      SettingText("Stuck after", "\(stuckAfter.words) without an answer from Apple"),
      SettingText("Grace of subscriptions", "\(subscriptionGrace.words) after the newest expiry"),
      SettingText("Clock skew", "\(clockSkew.words) that clocks may differ"),
      SettingText(
        "Tolerance of amounts",
        amountToleranceMillionths == 0
          ? "none: the amount of an order must equal Apple's price"
          : "\(Millionths(count: Int128(amountToleranceMillionths))) more or less, in the order's own currency"
      ),
      SettingText(
        "Test users", testUsers.isEmpty ? "none" : "\(testUsers.count): their sandbox orders are listed apart"),
      SettingText("Stale after", "\(staleAfter.words): then Apple is asked again"),
      SettingText("Refund window", "\(refundWindow.words) in which a refund is still likely"),
      SettingText("Version", "night-audit \(Version.current)"),
    ]
    return words
  }
}
