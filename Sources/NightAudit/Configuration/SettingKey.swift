import Postgres
import Reconciliation

/// A setting: its name, its default, and how much of its value may be shown.
package struct SettingKey: Sendable {
  /// The dotted name in the file, such as `audit.lookback`.
  package var name: String
  /// The default as it would be written; empty for none.
  package var standard: String
  package var secrecy = Secrecy.none
  /// True if the setting takes several values: a list in the file, elsewhere separated by commas.
  var isList = false

  package enum Secrecy: Sendable {
    case none
    /// A connection string; its password is hidden.
    case connection
    /// A URL; user, password, query and fragment are hidden.
    case url
    /// A URL whose path is a password.
    case pathOfURL
    /// A URL of a delivery; its path is hidden with http and https, where it may be a password.
    case addressOfDelivery
    /// A command; its arguments are hidden because they may be passwords.
    case command
    /// A file name. Anything else is hidden, because it may be the secret itself.
    case file
  }

  init(_ name: String, _ standard: String = "", _ secrecy: Secrecy = .none, isList: Bool = false) {
    self.name = name
    self.standard = standard
    self.secrecy = secrecy
    self.isList = isList
  }

  package static let all: [SettingKey] = [
    SettingKey("database.url", "", .connection), SettingKey("database.salesUrl", "", .connection),
    SettingKey("database.salesSchema", "sales"), SettingKey("appstore.apps", isList: true),
    SettingKey("appstore.channel", "auto"),
    SettingKey("appstore.productionUrl", "https://api.storekit.apple.com", .url),
    SettingKey("appstore.sandboxUrl", "https://api.storekit-sandbox.apple.com", .url),
    SettingKey("appstore.verifyReceiptUrl", "https://buy.itunes.apple.com/verifyReceipt", .url),
    SettingKey("appstore.verifyReceiptSandboxUrl", "https://sandbox.itunes.apple.com/verifyReceipt", .url),
    SettingKey("appstore.rootCertificates", "/etc/night-audit/apple-roots"), SettingKey("appstore.pinRoots", "true"),
    SettingKey("appstore.requestsPerSecond", "25"), SettingKey("appstore.concurrency", "256"),
    SettingKey("appstore.timeout", "30s"), SettingKey("recheck.staleAfter", "7d"),
    SettingKey("recheck.refundWindow", "120d"), SettingKey("recheck.maxDuration", "2h"),
    SettingKey("recheck.batchSize", "1000"), SettingKey("audit.lookback", "120d"),
    SettingKey("audit.deliveryGrace", "1h"), SettingKey("audit.evidenceGrace", "1h"),
    SettingKey("audit.notFoundGrace", "72h"), SettingKey("audit.matchWindow", "72h"),
    SettingKey("audit.stuckAfter", "48h"), SettingKey("audit.subscriptionGrace", "16d"),
    SettingKey("audit.clockSkew", "5m"), SettingKey("audit.amountTolerance", "0"),
    SettingKey("audit.testUsers", isList: true),
    SettingKey("audit.systemicShare", "0.25"), SettingKey("audit.holdShare", "0.2"),
    SettingKey("audit.reviewWindows", isList: true), SettingKey("evidence.retention", "forever"),
    SettingKey("report.directory", "reports"), SettingKey("report.link", "", .url),
    SettingKey("report.timeZone", "UTC"),
    SettingKey("report.formats", "csv,xlsx", isList: true), SettingKey("report.retention", "forever"),
    SettingKey("report.workbookOrders", "100000"), SettingKey("report.excelLocale", "en-US"),
    SettingKey("report.pseudonymise", "", .file), SettingKey("report.deliver", isList: true),
    SettingKey("notify.pingUrl", "", .pathOfURL), SettingKey("notify.on", "change"), SettingKey("metrics.textfile"),
    SettingKey("appStoreConnect.issuerId"), SettingKey("appStoreConnect.keyId"),
    SettingKey("appStoreConnect.privateKeyFile", "", .file),
    SettingKey("appStoreConnect.vendorNumbers", isList: true),
    SettingKey("appStoreConnect.url", "https://api.appstoreconnect.apple.com", .url),
    SettingKey("appStoreConnect.salesVersion", "1_0"), SettingKey("tieOut.folder"),
    SettingKey("tieOut.timeZone", "America/Los_Angeles"), SettingKey("tieOut.trailingDays", "5"),
    SettingKey("tieOut.keepRaw", "400d"), SettingKey("tieOut.alertUnits", "10"),
    SettingKey("tieOut.alertShare", "0.001"),
  ]

  static let ofApp: [SettingKey] = [
    SettingKey("bundleId"), SettingKey("appAppleId"), SettingKey("sku"), SettingKey("issuerId"), SettingKey("keyId"),
    SettingKey("privateKeyFile", "", .file), SettingKey("sharedSecretFile", "", .file),
  ]

  static let ofDelivery: [SettingKey] = [
    SettingKey("url", "", .addressOfDelivery), SettingKey("command", "", .command, isList: true), SettingKey("from"),
    SettingKey("to", isList: true), SettingKey("user"), SettingKey("passwordFile", "", .file),
    SettingKey("privateKeyFile", "", .file), SettingKey("hostKey"), SettingKey("region"),
    SettingKey("caFile", "", .file), SettingKey("attempts", "3"),
  ]

  static let ofOwners: [SettingKey] = (FindingKind.allCases.map(\.rawValue) + Severity.allCases.map(\.rawValue))
    .map { SettingKey(SettingsLoader.ownersPrefix + $0) }

  static let journalPrefix = "journal.accounts."

  /// The ledger's account of a role.
  static let ofJournal: [SettingKey] = JournalRole.allCases.map { SettingKey(journalPrefix + $0.rawValue) }

  static func named(_ key: String) -> SettingKey? {
    if let single = (all + ofJournal).first(where: { $0.name == key }) { return single }
    let parts = key.split(separator: ".", omittingEmptySubsequences: false).map(String.init)
    guard parts.count == 3, !parts[1].isEmpty else { return nil }
    let section: [SettingKey]
    switch parts[0] {
    case "app": section = ofApp
    case "deliver": section = ofDelivery
    case "findings": return parts[1] == "owners" ? SettingKey(key) : nil
    default: return nil
    }
    guard var found = section.first(where: { $0.name == parts[2] }) else { return nil }
    found.name = key
    return found
  }

  func isSecret(_ value: String) -> Bool {
    switch secrecy {
    case .none, .file, .command: false
    case .connection: ConnectionParameters.summary(of: value)?.contains("password=") ?? true
    case .url, .addressOfDelivery: ShownURL.text(value) != value
    case .pathOfURL: true
    }
  }

  static func isSecret(variable: String, value: String) -> Bool {
    variable == "PGPASSWORD" || all.contains { $0.variable == variable && $0.isSecret(value) }
  }

  /// The environment variable: words in capitals, separated by `_`, as swift-configuration spells keys.
  package var variable: String {
    var words = ""
    var last: Character?
    for letter in name {
      if letter.isUppercase, last?.isLowercase == true { words += "_" }
      words.append(letter)
      last = letter
    }
    return "NIGHT_AUDIT_" + words.uppercased().map { $0.isLetter || $0.isNumber ? String($0) : "_" }.joined()
  }
}
