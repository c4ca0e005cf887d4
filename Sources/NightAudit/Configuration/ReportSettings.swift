import AppStore
import AuditStore
import Foundation
import Reconciliation
import Reporting
import Run

extension SettingsLoader {
  func loadReportSettings(into settings: inout Settings) throws {
    if let names = list("report.formats") {
      settings.formats = Set(
        try names.map { name in
          guard let format = ReportFormat(rawValue: name) else {
            let known = ReportFormat.allCases.map(\.rawValue).joined(separator: ", ")
            throw ConfigurationError(key: "report.formats", problem: "\(name) is not a format; use some of \(known)")
          }
          return format
        })
    }
    if let name = text("report.excelLocale") {
      guard let locale = ExcelLocale(name) else {
        throw ConfigurationError(
          key: "report.excelLocale", problem: "\(name) is not a locale; write language and region, such as de-DE")
      }
      settings.excelLocale = locale
    }
    if let path = text("report.pseudonymise") { settings.pseudonyms = try pseudonyms(path) }
    settings.owners = try owners()
    settings.journalAccounts = try journalAccounts()
  }

  private func pseudonyms(_ path: String) throws -> Pseudonyms {
    let key = "report.pseudonymise"
    guard let pseudonyms = Pseudonyms(key: Array(try SecretFile.read(path, key: key).reveal().utf8)) else {
      throw ConfigurationError(
        key: key,
        problem: """
          \(SecretFile.shown(path)) holds fewer than \(Pseudonyms.shortestKey) bytes, which could be guessed; write a \
          key to it with `openssl rand -hex 32`
          """)
    }
    return pseudonyms
  }

  /// The ledger's account of every role: an entry has two of them.
  private func journalAccounts() throws -> [JournalRole: String] {
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

  private func owners() throws -> FindingOwners {
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
