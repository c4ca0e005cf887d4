import AuditStore
import Foundation
import Reconciliation
import Run

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
      let key = SettingKey.journalPrefix + role.rawValue
      guard list(key) != nil else { continue }
      guard let text = text(key), let name = try? PeopleText.owner(text) else {
        throw ConfigurationError(key: key, problem: "must be the name of an account on one line")
      }
      accounts[role] = name
    }
    let missing = JournalRole.allCases.filter { accounts[$0] == nil }.map(\.rawValue)
    guard accounts.isEmpty || missing.isEmpty else {
      throw ConfigurationError(
        key: "journal.accounts", problem: "lacks \(missing.joined(separator: ", ")); name an account for each")
    }
    return accounts
  }

  static let ownersPrefix = "findings.owners."

  func owners() throws -> FindingOwners {
    var owners = FindingOwners()
    let inFile = fileValues.keys.filter { $0.hasPrefix(Self.ownersPrefix) }
    for key in Set(inFile).union(SettingKey.ofOwners.map(\.name)).sorted() where list(key) != nil {
      let word = String(key.dropFirst(Self.ownersPrefix.count))
      guard let text = text(key), let name = try? PeopleText.owner(text) else {
        throw ConfigurationError(key: key, problem: "must be a name on one line")
      }
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
