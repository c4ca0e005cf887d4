import Foundation
import Reconciliation
import Run

extension SettingKey {
  static let ownersPrefix = "findings.owners."

  static let ofOwners: [SettingKey] = (FindingKind.allCases.map(\.rawValue) + Severity.allCases.map(\.rawValue))
    .map { SettingKey(ownersPrefix + $0) }

  static let journalPrefix = "journal.accounts."

  /// The ledger's account of a role.
  static let ofJournal: [SettingKey] = JournalRole.allCases.map { SettingKey(journalPrefix + $0.rawValue) }

  /// The rows of the manual for keys whose last word is a kind of finding, a severity or a role.
  static let owners = SettingKey(
    "findings.owners", "owners of new findings by kind or severity; a kind takes precedence")
  static let accounts = SettingKey(
    "journal.accounts",
    "the ledger's accounts for \(JournalRole.allCases.map { "`\($0.rawValue)`" }.joined(separator: ", ")); all or none")
}

extension SettingsLoader {
  func reviewWindows(in zone: TimeZone) throws -> [Period] {
    try (list("audit.reviewWindows") ?? []).map { text in
      let days = text.split(separator: "/", omittingEmptySubsequences: false).map(String.init)
      guard days.count == 2, let period = try? Period(since: days[0], until: days[1], in: zone) else {
        throw ConfigurationError(
          key: "audit.reviewWindows",
          problem:
            "\(text.prefix(40)) is not a window; write a list of since and until, two days such as 2026-11-19, in order"
        )
      }
      return period
    }
  }

  /// The ledger's account of every role: an entry has two of them.
  func journalAccounts() throws -> [JournalRole: String] {
    var accounts: [JournalRole: String] = [:]
    for role in JournalRole.allCases {
      accounts[role] = try name(SettingKey.journalPrefix + role.rawValue, "must be the name of an account on one line")
    }
    let missing = JournalRole.allCases.filter { accounts[$0] == nil }.map(\.rawValue)
    guard accounts.isEmpty || missing.isEmpty else {
      throw ConfigurationError(
        key: "journal.accounts", problem: "lacks \(missing.joined(separator: ", ")); name an account for each")
    }
    return accounts
  }

  private func name(_ key: String, _ problem: String) throws(ConfigurationError) -> String? {
    guard list(key) != nil else { return nil }
    guard let text = text(key), let name = try? PeopleText.owner(text) else {
      throw ConfigurationError(key: key, problem: problem)
    }
    return name
  }

  func owners() throws -> FindingOwners {
    var owners = FindingOwners()
    let inFile = fileValues.keys.filter { $0.hasPrefix(SettingKey.ownersPrefix) }
    for key in Set(inFile).union(SettingKey.ofOwners.map(\.name)).sorted() {
      guard let name = try name(key, "must be a name on one line") else { continue }
      let word = String(key.dropFirst(SettingKey.ownersPrefix.count))
      if let kind = FindingKind(rawValue: word) {
        owners.byKind[kind] = name
      } else if let severity = Severity(rawValue: word) {
        owners.bySeverity[severity] = name
      } else {
        throw ConfigurationError(key: key, problem: "\(word) is neither a kind of finding nor a severity")
      }
    }
    return owners
  }
}
