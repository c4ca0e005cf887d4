import Crypto
import Foundation
import Reconciliation
import Reporting

/// Everything that a run is configured with, checked once. The keys and defaults are those of the README.
package struct Settings: Sendable {
  /// One app whose purchases are audited.
  package struct App: Sendable {
    /// The section's name in the configuration.
    package var name: String
    package var bundleId: String
    package var appAppleId: Int64?
    /// Needed where two apps share a product id.
    package var sku: String?
    package var issuerId: String?
    package var keyId: String?
    package var privateKeyFile: String?
    package var sharedSecretFile: String?

    package init(
      name: String, bundleId: String, appAppleId: Int64? = nil, issuerId: String? = nil, keyId: String? = nil,
      privateKeyFile: String? = nil, sharedSecretFile: String? = nil
    ) {
      self.name = name
      self.bundleId = bundleId
      self.appAppleId = appAppleId
      self.issuerId = issuerId
      self.keyId = keyId
      self.privateKeyFile = privateKeyFile
      self.sharedSecretFile = sharedSecretFile
    }
  }

  /// A file that settings were read from.
  package struct Source: Hashable, Sendable {
    package var path: String
    /// Whether a password or a token is in it.
    package var holdsSecret: Bool

    package init(path: String, holdsSecret: Bool) {
      self.path = path
      self.holdsSecret = holdsSecret
    }
  }

  /// Which of Apple's interfaces receipts are checked with.
  package enum Channel: String, Sendable { case auto, serverApi, verifyReceipt }

  /// Which nights are told to people.
  package enum NotifyOn: String, Sendable { case change, always }

  /// How our sales are compared with Apple's reports.
  package struct TieOut: Sendable {
    /// Where files lie that people have put there.
    package var folder: String?
    package var timeZoneName = "America/Los_Angeles"
    package var trailingDays = 5
    /// How long Apple's files are kept; nil: for ever.
    package var keepRaw: Span? = .days(400)
    /// From so many units on, what the shop does not report is major.
    package var alertUnits = 10
    package var alertShare = Share(millionths: 1_000)
  }

  /// The key that Apple's reports are fetched with.
  package struct AppStoreConnect: Sendable {
    package var issuerId: String?
    package var keyId: String?
    package var privateKeyFile: String?
    package var vendorNumbers: [String] = []
    package var url = "https://api.appstoreconnect.apple.com"
    package var salesVersion = "1_0"
  }

  /// libpq's connection string or URI; empty leaves everything to libpq's own variables and files.
  package var databaseURL = ""
  /// Where the shop's relations are, when that is another database than ours.
  package var salesURL: String?
  package var salesSchema = "sales"
  package var apps: [App] = []
  package var channel = Channel.auto
  package var productionURL = "https://api.storekit.apple.com"
  package var sandboxURL = "https://api.storekit-sandbox.apple.com"
  package var verifyReceiptURL = "https://buy.itunes.apple.com/verifyReceipt"
  package var verifyReceiptSandboxURL = "https://sandbox.itunes.apple.com/verifyReceipt"
  package var rootCertificates = "/etc/night-audit/apple-roots"
  package var pinRoots = true
  /// Requests a second for each app and environment; 0 is unlimited, for rehearsals against a simulator.
  package var requestsPerSecond = 25.0
  package var concurrency = 256
  package var timeout = Span.seconds(30)
  package var staleAfter = Span.days(7)
  package var refundWindow = Span.days(120)
  package var maxDuration = Span.hours(2)
  package var batchSize = 1_000
  package var lookback = Span.days(120)
  package var deliveryGrace = Span.hours(1)
  package var evidenceGrace = Span.hours(1)
  package var notFoundGrace = Span.hours(24)
  package var matchWindow = Span.hours(72)
  package var stuckAfter = Span.hours(48)
  package var subscriptionGrace = Span.days(16)
  package var clockSkew = Span.minutes(5)
  /// Millionths of a major unit.
  package var amountToleranceMillionths: Int64 = 0
  package var testUsers: [String] = []
  /// From this share of the first answers on, refusals of one kind are an outage; 1 switches it off.
  package var systemicShare = Share(millionths: 250_000)
  /// From this share of the orders on, a night that accuses is held; 1 holds nothing.
  package var holdShare = Share(millionths: 200_000)
  /// The days on which App Review bought in the sandbox.
  package var reviewWindows: [Period] = []
  /// How long evidence is kept that newer evidence has replaced; nil: for ever.
  package var evidenceRetention: Span?
  /// Who is told that a night begins and how it ended. A secret: whoever has it can tell the same.
  package var pingURL: String?
  package var notifyOn = NotifyOn.change
  /// The file that node_exporter reads.
  package var metricsTextfile: String?
  package var tieOut = TieOut()
  package var appStoreConnect = AppStoreConnect()
  package var reportDirectory = "reports"
  package var timeZoneName = "UTC"
  package var formats: Set<ReportFormat> = [.csv, .xlsx]
  /// nil: report folders are kept for ever.
  package var retention: Span?
  package var workbookOrders = 100_000
  /// How twins for Excel separate values.
  package var excelLocale = ExcelLocale.unitedStates
  /// Who takes care of new findings.
  package var owners = FindingOwners()
  /// What stands for the ids of users in reports; nil: they stand for themselves.
  package var pseudonyms: Pseudonyms?
  /// Orders whose contested claims are settled at a time. It has no key: only the memory depends on it.
  package var contestBatchSize = 1_000
  /// Where reports of nights are sent.
  package var deliver: [DispatchTarget] = []
  /// The files that the settings were read from.
  package var sources: [Source] = []
  /// What was odd but usable, for the log.
  package var warnings: [String] = []

  package init() {}

  /// Whether there are reports of Apple's to compare with.
  package var isTieOutConfigured: Bool { appStoreConnect.privateKeyFile != nil || tieOut.folder != nil }

  /// The zone that days are counted in.
  package var timeZone: TimeZone { TimeZone(identifier: timeZoneName) ?? .gmt }

  /// The channel that an app's receipts are checked through.
  package func effectiveChannel(of app: App) -> Channel {
    switch channel {
    case .auto: app.privateKeyFile == nil ? .verifyReceipt : .serverApi
    case .serverApi, .verifyReceipt: channel
    }
  }

  /// The configured names of the apps by bundle ID.
  package var appNames: [String: String] {
    Dictionary(apps.map { ($0.bundleId, $0.name) }) { first, _ in first }
  }

  /// The bundle ids of the apps that are asked through the App Store Server API.
  package var serverAPIApps: [String] { apps.filter { effectiveChannel(of: $0) == .serverApi }.map(\.bundleId) }

  /// The rules of the decision for an as-of.
  package func rules(asOf: Instant) -> Rules {
    var rules = Rules(asOf: asOf, bundleIds: apps.map(\.bundleId), lookbackStart: asOf - lookback)
    rules.lookedUpApps = Set(serverAPIApps)
    rules.testUsers = Set(testUsers.map { Identifier($0) })
    rules.deliveryGrace = deliveryGrace
    rules.evidenceGrace = evidenceGrace
    rules.notFoundGrace = notFoundGrace
    rules.matchWindow = matchWindow
    rules.stuckAfter = stuckAfter
    rules.subscriptionGrace = subscriptionGrace
    rules.clockSkew = clockSkew
    rules.amountToleranceMillionths = amountToleranceMillionths
    rules.reviewWindows = reviewWindows.map { $0.start...($0.end - Span(microseconds: 1)) }
    return rules
  }

  /// SHA-256, as hexadecimal, of the settings that decide what a report says, defaults included.
  ///
  /// Where things lie, who is asked and how fast does not change what a report says.
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
    let standard = Settings()
    if systemicShare != standard.systemicShare { lines.append("audit.systemicShare=\(systemicShare)") }
    for window in reviewWindows { lines.append("audit.reviewWindows=\(window.since)/\(window.until)") }
    if formats.contains(.csvExcel) { lines.append("report.excelLocale=\(excelLocale.name)") }
    // The key's own hash would be one that ids could be tried against; that of one word tells keys apart as well.
    if let pseudonyms { lines.append("report.pseudonymise=\(pseudonyms.pseudonym(of: "night-audit"))") }
    if isTieOutConfigured {
      lines.append("tieOut=\(tieOut.timeZoneName) \(tieOut.alertUnits) \(tieOut.alertShare)")
      lines += apps.sorted { $0.name < $1.name }.map { "app.\($0.name).sku=\($0.sku ?? "")" }
    }
    return Digest.hexadecimal(SHA256.hash(data: Data(lines.joined(separator: "\n").utf8)))
  }
}
