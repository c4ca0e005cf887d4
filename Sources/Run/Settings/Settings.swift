import Crypto
import Foundation
import Reconciliation
import Reporting

/// The validated configuration of a run. Keys and defaults are those of the README.
package struct Settings: Sendable {
  package struct App: Sendable {
    /// The section's name in the configuration.
    package var name: String
    package var bundleId: String
    package var appAppleId: Int64?
    /// Needed if two apps share a product ID.
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

  package struct Source: Hashable, Sendable {
    package var path: String
    /// True if it contains a password or token.
    package var holdsSecret: Bool

    package init(path: String, holdsSecret: Bool) {
      self.path = path
      self.holdsSecret = holdsSecret
    }
  }

  package enum Channel: String, Sendable { case auto, serverApi, verifyReceipt }

  /// The nights about which people are notified.
  package enum NotifyOn: String, Sendable { case change, always }

  package struct TieOut: Sendable {
    /// A folder with manually downloaded reports.
    package var folder: String?
    package var timeZoneName = "America/Los_Angeles"
    package var trailingDays = 5
    /// How long Apple's files are kept; nil: for ever.
    package var keepRaw: Span? = .days(400)
    /// The number of units missing in the shop from which a difference is major.
    package var alertUnits = 10
    package var alertShare = Share(millionths: 1_000)
  }

  package struct AppStoreConnect: Sendable {
    package var issuerId: String?
    package var keyId: String?
    package var privateKeyFile: String?
    package var vendorNumbers: [String] = []
    package var url = "https://api.appstoreconnect.apple.com"
    package var salesVersion = "1_0"
  }

  /// libpq's connection string or URI; empty: libpq's variables and files apply.
  package var databaseURL = ""
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
  /// Requests per second for each app and environment. 0 is unlimited, for rehearsals against a simulator.
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
  package var notFoundGrace = Span.hours(72)
  package var matchWindow = Span.hours(72)
  package var stuckAfter = Span.hours(48)
  package var subscriptionGrace = Span.days(16)
  package var clockSkew = Span.minutes(5)
  /// Millionths of a major unit.
  package var amountToleranceMillionths: Int64 = 0
  package var testUsers: [String] = []
  /// Above this share of persons with first answers, refusals for one reason are systemic; 1 switches the guard off.
  package var systemicShare = Share(millionths: 250_000)
  /// The share of new findings of a kind, bad rows or closed findings that makes a night held. 1 disables it.
  package var holdShare = Share(millionths: 200_000)
  /// The days on which App Review bought in the sandbox.
  package var reviewWindows: [Period] = []
  /// How long superseded evidence is kept; nil: for ever.
  package var evidenceRetention: Span?
  /// The monitor notified of a night's start and end. A secret, because anyone who knows it can do the same.
  package var pingURL: String?
  package var notifyOn = NotifyOn.change
  /// The file for node_exporter's textfile collector.
  package var metricsTextfile: String?
  package var tieOut = TieOut()
  package var appStoreConnect = AppStoreConnect()
  package var reportDirectory = "reports"
  /// The URL under which that directory can be opened, for mails.
  package var reportLink: String?
  package var timeZoneName = "UTC"
  package var formats: Set<ReportFormat> = [.csv, .xlsx]
  package var retention: Span?
  package var workbookOrders = 100_000
  package var excelLocale = ExcelLocale.unitedStates
  /// The people to whom new findings are assigned.
  package var owners = FindingOwners()
  /// The ledger's account names; empty: there is no journal.
  package var journalAccounts: [JournalRole: String] = [:]
  /// The pseudonyms of user IDs in reports; nil: IDs are shown.
  package var pseudonyms: Pseudonyms?
  /// The number of orders with contested claims per batch. It has no key, because it affects only memory.
  package var contestBatchSize = 1_000
  package var deliver: [DispatchTarget] = []
  package var sources: [Source] = []
  /// Settings that are unusual but usable, for the log.
  package var warnings: [String] = []

  package init() {}

  package var isTieOutConfigured: Bool { appStoreConnect.privateKeyFile != nil || tieOut.folder != nil }

  package var timeZone: TimeZone { TimeZone(identifier: timeZoneName) ?? .gmt }

  package func effectiveChannel(of app: App) -> Channel {
    switch channel {
    case .auto: app.privateKeyFile == nil ? .verifyReceipt : .serverApi
    case .serverApi, .verifyReceipt: channel
    }
  }

  /// True if nights post entries.
  package var hasJournal: Bool { !journalAccounts.isEmpty || formats.contains(.stripeImport) }

  package var appNames: [String: String] {
    Dictionary(apps.map { ($0.bundleId, $0.name) }) { first, _ in first }
  }

  package var serverAPIApps: [String] { apps.filter { effectiveChannel(of: $0) == .serverApi }.map(\.bundleId) }

  package func rules(asOf: Instant) -> Rules {
    var rules = Rules(asOf: asOf, bundleIds: apps.map(\.bundleId), lookbackStart: asOf - lookback)
    rules.appsWithLookup = Set(serverAPIApps)
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
    let standard = Settings()
    if systemicShare != standard.systemicShare { lines.append("audit.systemicShare=\(systemicShare)") }
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
