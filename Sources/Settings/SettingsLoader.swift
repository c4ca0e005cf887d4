import Configuration
import Foundation
import Reconciliation
import Run

/// Builds `Settings` from environment, configuration file and defaults, in this order of precedence.
package struct SettingsLoader {
  /// Files that are tried in this order without `--config`.
  package static let searchedFiles = ["./night-audit.yaml", "/etc/night-audit/night-audit.yaml"]

  private let reader: ConfigReader
  let fileValues: [String: ConfigurationFile.Value]
  let emptyKeys: [String]
  private let fileName: String
  let hasFile: Bool
  private let environment: [String: String]
  private let environmentFile: EnvironmentFile.Outcome
  /// systemd credentials by key: a path for keys that name a file, else the value.
  private let credentials: [String: String]

  /// Reads `path`, which must exist, or the first one of `searchedFiles`. Throws `ConfigurationError`.
  package init(
    path: String?, environment: [String: String], environmentFile: EnvironmentFile.Outcome = .init()
  ) throws {
    let found = path ?? Self.searchedFiles.first { FileManager.default.fileExists(atPath: $0) }
    try self.init(
      file: try found.map { try ConfigurationFile(path: $0, isFound: path == nil && $0.hasPrefix("./")) },
      name: found ?? "configuration", environment: environment, environmentFile: environmentFile)
  }

  /// Throws `ConfigurationError` for an unknown key, a list in place of one value, or an invalid value.
  package func load() throws -> Settings {
    try refuseUnknownKeys()
    try rejectStrayLists()
    return try settings()
  }

  init(
    file: ConfigurationFile?, name: String, environment: [String: String],
    environmentFile: EnvironmentFile.Outcome = .init()
  ) throws {
    fileValues = file?.values ?? [:]
    emptyKeys = file?.emptyKeys ?? []
    fileName = name
    hasFile = file != nil
    (self.environment, self.environmentFile) = (environment, environmentFile)
    credentials = try Self.credentials(in: environment["CREDENTIALS_DIRECTORY"])
    func path(_ key: String) -> AbsoluteConfigKey { AbsoluteConfigKey(key.split(separator: ".").map(String.init)) }
    var content: [AbsoluteConfigKey: ConfigValue] = [:]
    for (key, value) in fileValues {
      switch value {
      case .scalar(let text): content[path(key)] = ConfigValue(.string(text), isSecret: false)
      case .list(let items): content[path(key)] = ConfigValue(.stringArray(items), isSecret: false)
      }
    }
    let handedOver = credentials.map { (path($0.key), ConfigValue(.string($0.value), isSecret: true)) }
    reader = ConfigReader(providers: [
      EnvironmentVariablesProvider(environmentVariables: environment).prefixKeys(with: "night.audit"),
      InMemoryProvider(values: Dictionary(uniqueKeysWithValues: handedOver)), InMemoryProvider(values: content),
    ])
  }

  /// Credentials have the names of keys: `LoadCredential=app.game.privateKeyFile:/etc/…` (systemd.exec(5)).
  ///
  /// Throws for an unreadable one, because a night would otherwise run without it.
  private static func credentials(in directory: String?) throws -> [String: String] {
    guard let directory else { return [:] }
    func unreadable(_ key: String, _ error: any Error) -> ConfigurationError {
      let reason = (error as? RegularFile.Failure)?.problem ?? (error as NSError).localizedDescription
      return ConfigurationError(
        key: key, problem: "the credential from systemd in \(directory) cannot be read: \(reason)")
    }
    var credentials: [String: String] = [:]
    let names: [String]
    do { names = try FileManager.default.contentsOfDirectory(atPath: directory) } catch {
      throw unreadable("CREDENTIALS_DIRECTORY", error)
    }
    for name in names {
      guard let key = SettingKey.named(name) else { continue }
      let path = "\(directory)/\(name)"
      if case .file = key.secrecy {
        credentials[name] = path
      } else {
        do {
          guard let text = String(validating: try RegularFile(path).content, as: UTF8.self) else {
            throw RegularFile.Failure(problem: "is not UTF-8; save it as UTF-8")
          }
          credentials[name] = text.trimmingCharacters(in: .whitespacesAndNewlines)
        } catch {
          throw unreadable(name, error)
        }
      }
    }
    return credentials
  }

  func origin(of key: SettingKey) -> String? {
    if environment[key.variable] != nil {
      return environmentFile.adopted.contains(key.variable)
        ? "\(EnvironmentFile.path) \(key.variable)" : "environment \(key.variable)"
    }
    if credentials[key.name] != nil { return "credential \(key.name)" }
    return fileValues[key.name] == nil ? nil : fileName
  }

  func sections(_ kind: String) -> [String] {
    let listed = list(kind == "app" ? "appstore.apps" : "report.deliver") ?? []
    let names = listed + sections(kind, in: Array(fileValues.keys) + credentials.keys).filter { !listed.contains($0) }
    return names.isEmpty && kind == "app" ? ["app"] : names
  }

  func sections(_ kind: String, in keys: some Sequence<String>) -> [String] {
    let ofKind = keys.filter { $0.hasPrefix(kind + ".") }
    return Set(ofKind.compactMap { $0.split(separator: ".").dropFirst().first.map { String($0) } }).sorted()
  }

  func ofSections() -> [SettingKey] {
    [("app", SettingKey.ofApp), ("deliver", SettingKey.ofDelivery)].flatMap { kind, fields in
      sections(kind).flatMap { name in fields.compactMap { SettingKey.named("\(kind).\(name).\($0.name)") } }
    }
  }

  private func refuseUnknownKeys() throws {
    if list("journal.accounts") != nil {
      throw ConfigurationError(
        key: "journal.accounts",
        problem: """
          is a map from \(JournalRole.allCases.map(\.rawValue).joined(separator: ", ")) to accounts; write \
          journal.accounts.sale: "4000"
          """)
    }
    if list("findings.owners") != nil {
      throw ConfigurationError(
        key: "findings.owners",
        problem: """
          is a map from a kind of finding or a severity to a name; write findings.owners.critical: anna, or in the \
          environment \(SettingKey("findings.owners.critical").variable)
          """)
    }
    let misplaced = emptyKeys.filter { !SettingKey.isSection($0) }
    for key in (fileValues.keys + misplaced).sorted() where SettingKey.named(key) == nil {
      let parts = key.split(separator: ".")
      let shown = ConfigurationFile.shown(key)
      if parts.count > 3, parts[0] == "app" || parts[0] == "deliver" {
        throw ConfigurationError(
          key: shown,
          problem: "has a name of more than one word (in \(fileName)); give \(parts[0]).<name> one without dots")
      }
      // A section's name in the suggestion is the one in the file, unless that must not be shown.
      let name = shown == key && parts.count > 1 ? String(parts[1]) : "<name>"
      let known =
        (SettingKey.all + SettingKey.ofOwners + SettingKey.ofJournal).map(\.name)
        + SettingKey.ofApp.map { "app.\(name).\($0.name)" }
        + SettingKey.ofDelivery.map { "deliver.\(name).\($0.name)" }
      let advice = suggestion(Spelling.nearest(to: key, among: known))
      throw ConfigurationError(key: shown, problem: "is not a setting (in \(fileName)); \(advice)")
    }
  }

  /// Refuses a list in place of one value, because it would be ignored silently.
  private func rejectStrayLists() throws {
    for (key, value) in fileValues.sorted(by: { $0.key < $1.key }) {
      guard case .list = value, SettingKey.named(key)?.isList == false else { continue }
      throw ConfigurationError(key: key, problem: "takes one value, not a list (in \(fileName))")
    }
  }

  private func suggestion(_ name: String?) -> String {
    name.map { "did you mean \($0)?" } ?? "night-audit config show lists all settings"
  }

  private func settings() throws -> Settings {
    var settings = Settings()
    for key in SettingKey.all {
      guard let store = key.store,
        let values = key.isList ? list(key.name) : text(key.name).map({ [$0] })
      else { continue }
      try store(values, &settings)
    }
    settings.apps = try apps()
    settings.reviewWindows = try reviewWindows(in: settings.timeZone)
    settings.owners = try owners()
    settings.journalAccounts = try journalAccounts()
    settings.deliver = try dispatchTargets()
    try refuseIncompleteKey(settings.appStoreConnect)
    settings.sources = [source, environmentFile.source].compactMap(\.self)
    settings.warnings = unknownVariables() + [environmentFile.warning].compactMap(\.self)
    return settings
  }

  private var source: Settings.Source? {
    guard hasFile else { return nil }
    let holdsSecret = fileValues.contains { key, value in
      guard case .scalar(let text) = value else { return false }
      return SettingKey.named(key)?.isSecret(text) ?? false
    }
    return Settings.Source(path: fileName, holdsSecret: holdsSecret)
  }

  private func refuseIncompleteKey(_ connect: Settings.AppStoreConnect) throws {
    guard connect.privateKeyFile != nil else {
      if connect.issuerId == nil, connect.keyId == nil { return }
      throw ConfigurationError(
        key: "appStoreConnect.privateKeyFile",
        problem: "is required with issuerId or keyId: the .p8 file of the team key, without which nothing is fetched")
    }
    if connect.keyId == nil {
      throw ConfigurationError(key: "appStoreConnect.keyId", problem: "is required with a private key")
    }
    if connect.vendorNumbers.isEmpty {
      throw ConfigurationError(
        key: "appStoreConnect.vendorNumbers",
        problem: "is required with a private key: the vendor numbers in App Store Connect, Sales and Trends")
    }
  }

  // MARK: - Reading

  package func text(_ key: String) -> String? { reader.string(forKey: configKey(key)) }

  package func list(_ key: String) -> [String]? {
    if let values = reader.stringArray(forKey: configKey(key)) { return values }
    return reader.string(forKey: configKey(key))?.split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces) }
  }

  private func configKey(_ key: String) -> ConfigKey { ConfigKey(key.split(separator: ".").map(String.init)) }

  // MARK: - Warnings

  private func unknownVariables() -> [String] {
    let prefix = "NIGHT_AUDIT_"
    let known = (SettingKey.all + SettingKey.ofOwners + SettingKey.ofJournal + ofSections()).map(\.variable)
    // All names share the prefix, which would make any two similar.
    let words = known.map { String($0.dropFirst(prefix.count)) }
    return Set(environment.keys).subtracting(known).sorted().filter { $0.hasPrefix(prefix) }.map { variable in
      let near = Spelling.nearest(to: String(variable.dropFirst(prefix.count)), among: words)
      let advice = suggestion(near.map { prefix + $0 })
      return "The environment variable \(variable) is not a setting of night-audit; \(advice)"
    }
  }
}
