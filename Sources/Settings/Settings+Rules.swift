import Crypto
import Foundation
import Reconciliation
import Reporting
import Run

extension Settings {
  package func rules(asOf: Instant) -> Rules {
    var rules = Rules(asOf: asOf, bundleIds: apps.map(\.bundleId), lookbackStart: asOf - lookback)
    rules.appsWithLookup = Set(serverAPIApps)
    rules.testUsers = Set(testUsers.map { Identifier($0) })
    (rules.deliveryGrace, rules.evidenceGrace, rules.notFoundGrace) = (deliveryGrace, evidenceGrace, notFoundGrace)
    (rules.matchWindow, rules.stuckAfter, rules.subscriptionGrace) = (matchWindow, stuckAfter, subscriptionGrace)
    (rules.clockSkew, rules.amountToleranceMillionths) = (clockSkew, amountToleranceMillionths)
    rules.reviewWindows = reviewWindows.map { $0.start...($0.end - Span(microseconds: 1)) }
    return rules
  }

  /// The SHA-256 of the settings that affect a report's content, defaults included.
  package var digest: String {
    let durations: [(String, Span)] = [
      ("recheck.staleAfter", staleAfter), ("recheck.refundWindow", refundWindow), ("audit.lookback", lookback),
      ("audit.deliveryGrace", deliveryGrace), ("audit.evidenceGrace", evidenceGrace),
      ("audit.notFoundGrace", notFoundGrace), ("audit.matchWindow", matchWindow), ("audit.stuckAfter", stuckAfter),
      ("audit.subscriptionGrace", subscriptionGrace), ("audit.clockSkew", clockSkew),
    ]
    var lines = durations.map { "\($0)=\($1.wholeSeconds)" }
    lines += apps.sorted { $0.name < $1.name }.map {
      "app.\($0.name)=\($0.bundleId) \(effectiveChannel(of: $0).rawValue)"
    }
    lines.append("audit.amountTolerance=\(amountToleranceMillionths)")
    lines.append("audit.testUsers=\(testUsers.sorted().joined(separator: ","))")
    lines.append("report.timeZone=\(timeZoneName)")
    lines.append("report.formats=\(formats.map(\.rawValue).sorted().joined(separator: ","))")
    lines.append("report.workbookOrders=\(workbookOrders)")
    for key in SettingKey.all {
      if let text = key.reportedText?(self), text != key.standard { lines.append("\(key.name)=\(text)") }
    }
    for window in reviewWindows { lines.append("audit.reviewWindows=\(window.since)/\(window.until)") }
    for (role, account) in journalAccounts.sorted(by: { $0.key.rawValue < $1.key.rawValue }) {
      lines.append("journal.accounts.\(role.rawValue)=\(account)")
    }
    if formats.contains(.csvExcel) { lines.append("report.excelLocale=\(excelLocale.name)") }
    // A pseudonym of a fixed word identifies the key; a hash of the key would allow guesses to be tested.
    if let pseudonyms { lines.append("report.pseudonymise=\(pseudonyms.pseudonym(of: "night-audit"))") }
    if isTieOutConfigured {
      lines.append("tieOut=\(tieOut.timeZoneName) \(tieOut.alertUnits) \(tieOut.alertShare)")
      lines += apps.sorted { $0.name < $1.name }.map { "app.\($0.name).sku=\($0.sku ?? "")" }
    }
    return Digest.hexadecimal(SHA256.hash(data: Data(lines.joined(separator: "\n").utf8)))
  }
}
