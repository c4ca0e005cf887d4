import Foundation
import Reconciliation
import Reporting
import Run

/// The validated configuration of a run. Each setting has a property, with its default, and a row in `SettingKey.all`.
package struct Settings: Sendable {
  package struct Source: Hashable, Sendable {
    package var path: String
    /// True if it contains a password or token.
    package var holdsSecret: Bool
  }

  package enum Channel: String, CaseIterable, Sendable { case auto, serverApi, verifyReceipt }

  package enum NotifyOn: String, CaseIterable, Sendable { case change, always }

  package struct TieOut: Sendable {
    package var folder: String?
    package var timeZoneName = "America/Los_Angeles"
    package var trailingDays = 5
    /// nil: for ever.
    package var keepRaw: Span? = .days(400)
    package var alertUnits = 10
    package var alertShare = Share(millionths: 1_000)

    package var timeZone: TimeZone { TimeZone(identifier: timeZoneName) ?? .gmt }
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
  /// For each app and environment. 0 is unlimited.
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
  package var systemicShare = Share(millionths: 250_000)
  package var holdShare = Share(millionths: 200_000)
  package var reviewWindows: [Period] = []
  /// nil: for ever.
  package var evidenceRetention: Span?
  package var pingURL: String?
  package var notifyOn = NotifyOn.change
  package var metricsTextfile: String?
  package var tieOut = TieOut()
  package var appStoreConnect = AppStoreConnect()
  package var reportDirectory = "reports"
  package var reportLink: String?
  package var timeZoneName = "UTC"
  package var formats: Set<ReportFormat> = [.csv, .xlsx]
  package var retention: Span?
  package var workbookOrders = 100_000
  package var excelLocale = ExcelLocale.unitedStates
  package var owners = FindingOwners()
  /// The ledger's account names; empty: there is no journal.
  package var journalAccounts: [JournalRole: String] = [:]
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
  package var appNames: [String: String] { Dictionary(apps.map { ($0.bundleId, $0.name) }) { first, _ in first } }
  package var sweptApps: [App] { apps.filter { effectiveChannel(of: $0) == .serverApi } }
  package var serverAPIApps: [String] { sweptApps.map(\.bundleId) }
}

extension SettingKey {
  /// Every setting outside the sections `app`, `deliver`, `findings` and `journal`, in the order of the manual.
  package static let all = database + appstore + recheck + audit + report + notify + tieOut

  private static let database = [
    SettingKey(
      "database.url", \.databaseURL, .connection,
      "the database of the schema `night_audit`, in UTF8 or SQL_ASCII; no pooler in transaction mode; default: libpq's",
      example: "postgresql://night_audit@db.internal/shop?sslmode=verify-full", secrecy: .connection),
    SettingKey(
      "database.salesUrl", \.salesURL, .optional(.connection),
      "the database of the shop's relations, such as a replica, in any encoding; only read; default: `database.url`",
      example: "postgresql://night_audit@replica.internal/shop?sslmode=verify-full", secrecy: .connection),
    SettingKey(
      "database.salesSchema", \.salesSchema, .nonBlank, "the schema with `orders`, `receipts` and `deliveries`"),
  ]

  private static let appstore = [
    SettingKey(
      "appstore.apps", "the names of the apps, whose keys are under `app.<name>`; not needed for one app",
      example: "game", isList: true),
    SettingKey(
      "appstore.channel", \.channel, .word, "`serverApi` if the app has a key, else `verifyReceipt`; or one of the two"),
    SettingKey("appstore.productionUrl", \.productionURL, .endpoint, "the App Store Server API", secrecy: .url),
    SettingKey(
      "appstore.sandboxUrl", \.sandboxURL, .endpoint, "the App Store Server API of the sandbox", secrecy: .url),
    SettingKey(
      "appstore.verifyReceiptUrl", \.verifyReceiptURL, .endpoint, "the whole URL of verifyReceipt", secrecy: .url),
    SettingKey(
      "appstore.verifyReceiptSandboxUrl", \.verifyReceiptSandboxURL, .endpoint,
      "the whole URL of verifyReceipt in the sandbox", secrecy: .url),
    SettingKey(
      "appstore.rootCertificates", \.rootCertificates, .nonBlank,
      "the folder of Apple's root certificates, which `night-audit trust` installs"),
    SettingKey("appstore.pinRoots", \.pinRoots, .flag, "accept only the root certificates that night-audit knows"),
    SettingKey(
      "appstore.requestsPerSecond", \.requestsPerSecond, .rate,
      "for each app, half of Apple's limit; at least `0.001`; `0`: no limit, for simulators only"),
    SettingKey("appstore.concurrency", \.concurrency, .count(), "concurrent requests"),
    SettingKey(
      "appstore.timeout", \.timeout,
      .span(atLeast: .seconds(1), "leaves Apple no time to answer; write 1s or more, such as 30s"), "for one answer"),
  ]

  private static let recheck = [
    SettingKey("recheck.staleAfter", \.staleAfter, .span, "the age at which a verified receipt is asked about again"),
    SettingKey(
      "recheck.refundWindow", \.refundWindow, .span,
      "the time in which a refund is likely, and the range of the first sweep"),
    SettingKey(
      "recheck.maxDuration", \.maxDuration, .span,
      "the time for asking Apple; then the night goes on without further answers"),
    SettingKey("recheck.batchSize", \.batchSize, .count(), "proofs leased at a time"),
  ]

  private static let audit = [
    SettingKey(
      "audit.lookback", \.lookback,
      .span(atLeast: .days(1), "audits no order, and all open findings would close; write 1d or more, such as 120d"),
      "the greatest age of audited orders"),
    SettingKey("audit.deliveryGrace", \.deliveryGrace, .span, "time from payment to delivery"),
    SettingKey(
      "audit.evidenceGrace", \.evidenceGrace, .span, "time until a receipt, or the order of a payment, is written"),
    SettingKey("audit.notFoundGrace", \.notFoundGrace, .span, "time until Apple knows a transaction"),
    SettingKey("audit.matchWindow", \.matchWindow, .span, "the greatest distance between an order and its purchase"),
    SettingKey("audit.stuckAfter", \.stuckAfter, .span, "an order unconfirmed for longer is a finding"),
    SettingKey("audit.subscriptionGrace", \.subscriptionGrace, .span, "access after the end of a subscription"),
    SettingKey("audit.clockSkew", \.clockSkew, .span, "the greatest difference between clocks"),
    SettingKey(
      "audit.amountTolerance", \.amountToleranceMillionths, .amount, "major units by which Apple's price may differ"),
    SettingKey("audit.testUsers", \.testUsers, .texts, "users who may buy in the sandbox"),
    SettingKey(
      "audit.reviewWindows",
      "days on which App Review bought in the sandbox: `[{since: 2026-11-01, until: 2026-11-03}]`", isList: true),
    SettingKey(
      "audit.systemicShare", \.systemicShare, .share,
      "the share of persons refused for one reason from which nobody is accused; `1` disables it", steersReports: true),
    SettingKey(
      "audit.holdShare", \.holdShare, .share,
      "a night with new critical or major findings on a greater share of orders is held; `1`: never"),
    SettingKey(
      "evidence.retention", \.evidenceRetention, .retention,
      "older evidence with a newer fact of the same channel is deleted; a change needs `night-audit init` by the schema's owner"
    ),
  ]

  private static let report = [
    SettingKey(
      "report.directory", \.reportDirectory, .nonBlank, "the folder of all reports",
      example: "/var/lib/night-audit/reports"),
    SettingKey("report.timeZone", \.timeZoneName, .timeZone, "the zone of business days, such as `Europe/Berlin`"),
    SettingKey(
      "report.formats", \.formats, .formats,
      "`csv-excel` adds CSV files that Excel opens by a double click, `stripe-import` one for Stripe Revenue Recognition"
    ),
    SettingKey("report.excelLocale", \.excelLocale, .locale, "the separators of `csv-excel`, such as `de-DE`"),
    SettingKey(
      "report.pseudonymise", \.pseudonyms, .pseudonyms,
      "a file with 16 bytes or more (`openssl rand -hex 32`); user IDs become keyed hashes",
      example: "/etc/night-audit/pseudonym-key", secrecy: .file),
    SettingKey("report.retention", \.retention, .retention, "older report folders are removed"),
    SettingKey(
      "report.workbookOrders", \.workbookOrders, .count(atLeast: 0),
      "up to this number, the sheets `Orders` and `Receipts` list all rows"),
    SettingKey(
      "report.link", \.reportLink, .optional(.link), "a URL of `report.directory`; mails link to the report below it",
      example: "https://reports.example.com/night-audit/", secrecy: .url),
    SettingKey(
      "report.deliver", "the names of the targets of nightly reports, whose keys are under `deliver.<name>`",
      isList: true),
  ]

  private static let notify = [
    SettingKey(
      "notify.pingUrl", \.pingURL, .optional(.monitor),
      "a monitor's URL: each night posts to it, and to `/start` and `/fail` below it",
      example: "https://hc-ping.com/00000000-0000-0000-0000-000000000000", secrecy: .pathOfURL),
    SettingKey("notify.on", \.notifyOn, .word, "the reports that are mailed: `change`, those with news, or `always`"),
    SettingKey(
      "metrics.textfile", \.metricsTextfile, .optional(.nonBlank),
      "a file for node_exporter's textfile collector; its name ends with `.prom`",
      example: "/var/lib/prometheus/node-exporter/night_audit.prom"),
  ]

  private static let tieOut = [
    SettingKey(
      "appStoreConnect.issuerId", \.appStoreConnect.issuerId, .optional(.text),
      "the issuer of a team key that downloads Apple's sales and finance reports",
      example: "00000000-0000-0000-0000-000000000000"),
    SettingKey(
      "appStoreConnect.keyId", \.appStoreConnect.keyId, .optional(.text), "the ID of the key", example: "ABC1234567"),
    SettingKey(
      "appStoreConnect.privateKeyFile", \.appStoreConnect.privateKeyFile, .optional(.text), "the .p8 file of the key",
      example: "/etc/night-audit/AuthKey_ABC1234567.p8", secrecy: .file),
    SettingKey(
      "appStoreConnect.vendorNumbers", \.appStoreConnect.vendorNumbers, .vendorNumbers,
      "the vendor numbers of the reports", example: "80012345"),
    SettingKey("appStoreConnect.url", \.appStoreConnect.url, .endpoint, "the App Store Connect API", secrecy: .url),
    SettingKey(
      "appStoreConnect.salesVersion", \.appStoreConnect.salesVersion, .reportVersion, "the version of the sales reports"
    ),
    SettingKey(
      "tieOut.folder", \.tieOut.folder, .optional(.nonBlank),
      "reports that were downloaded by hand; `FINANCIAL` files for all regions, `ZZ`", example: "/srv/apple-reports"),
    SettingKey("tieOut.timeZone", \.tieOut.timeZoneName, .timeZone, "the zone of Apple's report days"),
    SettingKey("tieOut.trailingDays", \.tieOut.trailingDays, .count(), "days that are compared again"),
    SettingKey("tieOut.keepRaw", \.tieOut.keepRaw, .retention, "retention of Apple's files"),
    SettingKey(
      "tieOut.alertUnits", \.tieOut.alertUnits, .count(atLeast: 0),
      "units a week from which `unreported_by_shop` is major"),
    SettingKey("tieOut.alertShare", \.tieOut.alertShare, .share, "the share that marks the trend"),
  ]
}
