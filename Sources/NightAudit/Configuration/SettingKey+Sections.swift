import Postgres
import Reconciliation
import Run

extension SettingKey {
  package static let ofApp: [SettingKey] = [
    SettingKey("bundleId", "the bundle ID; required"),
    SettingKey("appAppleId", "Apple's app ID; notifications with another ID are rejected"),
    SettingKey("sku", "the app's SKU in App Store Connect; needed if two apps share a product ID"),
    SettingKey("issuerId", "the issuer of the In-App Purchase key of the App Store Server API"),
    SettingKey("keyId", "the ID of the key"),
    SettingKey("privateKeyFile", "the .p8 file of the key", secrecy: .file),
    SettingKey("sharedSecretFile", "a file with the app-specific shared secret of verifyReceipt", secrecy: .file),
  ]

  package static let ofDelivery: [SettingKey] = [
    SettingKey("url", "`smtps:`, `smtp:` (STARTTLS), `sftp:`, `https:`", secrecy: .addressOfDelivery),
    SettingKey(
      "command", "a program; the folder's path is its last argument", secrecy: .command, isList: true),
    SettingKey("from", "the sender of a mail"), SettingKey("to", "the recipients of a mail", isList: true),
    SettingKey("user", "the user of the server, or the access key ID of an S3 bucket"),
    SettingKey("passwordFile", "a file with the password; without a user a bearer token", secrecy: .file),
    SettingKey("privateKeyFile", "the key of an SFTP client", secrecy: .file),
    SettingKey("hostKey", "the fingerprint of an SFTP server"), SettingKey("region", "the region of an S3 bucket"),
    SettingKey("caFile", "trusted certificates in place of the system's", secrecy: .file),
    SettingKey("attempts", "attempts in one night", standard: "3"),
  ]

  static let ofOwners: [SettingKey] = (FindingKind.allCases.map(\.rawValue) + Severity.allCases.map(\.rawValue))
    .map { SettingKey(SettingsLoader.ownersPrefix + $0) }

  static let journalPrefix = "journal.accounts."

  /// The ledger's account of a role.
  static let ofJournal: [SettingKey] = JournalRole.allCases.map { SettingKey(journalPrefix + $0.rawValue) }

  /// The rows of the manual for keys whose last word is a kind of finding, a severity or a role.
  static let owners = SettingKey(
    "findings.owners", "owners of new findings by kind or severity; a kind takes precedence")
  static let accounts = SettingKey(
    "journal.accounts",
    "the ledger's accounts for \(JournalRole.allCases.map { "`\($0.rawValue)`" }.joined(separator: ", ")); all or none")

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
}
