import AppStore
import Configuration
import Foundation
import Postgres
import Reconciliation
import Reporting
import Run

/// Builds `Settings` from environment, configuration file and defaults, in this order of precedence.
package struct SettingsLoader {
  /// Files that are tried in this order without `--config`.
  package static let searchedFiles = ["./night-audit.yaml", "/etc/night-audit/night-audit.yaml"]

  private let reader: ConfigReader
  let fileValues: [String: ConfigurationFile.Value]
  private let fileName: String
  private let hasFile: Bool
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
      name: found ?? "configuration", environment: environment,
      environmentFile: environmentFile)
  }

  package static func load(path: String?, environment: [String: String]) throws -> Settings {
    try SettingsLoader(path: path, environment: environment).load()
  }

  package static func load(file: ConfigurationFile?, name: String, environment: [String: String]) throws -> Settings {
    try SettingsLoader(file: file, name: name, environment: environment, environmentFile: .init()).load()
  }

  /// Throws `ConfigurationError` for an unknown key, a list in place of one value, or an invalid value.
  package func load() throws -> Settings {
    try refuseUnknownKeys(in: fileName)
    try rejectStrayLists(in: fileName)
    return try settings()
  }

  private init(
    file: ConfigurationFile?, name: String, environment: [String: String], environmentFile: EnvironmentFile.Outcome
  ) throws {
    fileValues = file?.values ?? [:]
    fileName = name
    hasFile = file != nil
    self.environment = environment
    self.environmentFile = environmentFile
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
      InMemoryProvider(values: Dictionary(uniqueKeysWithValues: handedOver)),
      InMemoryProvider(values: content),
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
    var names = list(kind == "app" ? "appstore.apps" : "report.deliver") ?? []
    for key in (Array(fileValues.keys) + credentials.keys).sorted() where key.hasPrefix(kind + ".") {
      let name = String(key.split(separator: ".")[1])
      if !names.contains(name) { names.append(name) }
    }
    return names.isEmpty && kind == "app" ? ["app"] : names
  }

  func ofSections() -> [SettingKey] {
    [("app", SettingKey.ofApp), ("deliver", SettingKey.ofDelivery)].flatMap { kind, fields in
      sections(kind).flatMap { name in fields.compactMap { SettingKey.named("\(kind).\(name).\($0.name)") } }
    }
  }

  private func refuseUnknownKeys(in name: String) throws {
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
    for key in fileValues.keys.sorted() where SettingKey.named(key) == nil {
      let parts = key.split(separator: ".")
      let shown = ConfigurationFile.shown(key)
      if parts.count > 3, parts[0] == "app" || parts[0] == "deliver" {
        throw ConfigurationError(
          key: shown, problem: "has a name of more than one word (in \(name)); give \(parts[0]).<name> one without dots"
        )
      }
      let known =
        SettingKey.all.map(\.name) + SettingKey.ofApp.map { "app.<name>.\($0.name)" }
        + SettingKey.ofDelivery.map { "deliver.<name>.\($0.name)" }
      throw ConfigurationError(
        key: shown, problem: "is not a setting (in \(name)); did you mean \(nearest(to: key, of: known))?")
    }
  }

  /// Refuses a list in place of one value, because it would be ignored silently.
  private func rejectStrayLists(in name: String) throws {
    for (key, value) in fileValues.sorted(by: { $0.key < $1.key }) {
      guard case .list = value, SettingKey.named(key)?.isList == false else { continue }
      throw ConfigurationError(key: key, problem: "takes one value, not a list (in \(name))")
    }
  }

  private func nearest(to word: String, of known: [String]) -> String {
    known.min { (distance($0, word), $0) < (distance($1, word), $1) } ?? "another"
  }

  private func distance(_ left: String, _ right: String) -> Int {
    let (left, right) = (Array(left.utf8), Array(right.utf8))
    var row = Array(0...right.count)
    for (index, letter) in left.enumerated() {
      var diagonal = row[0]
      row[0] = index + 1
      for (column, other) in right.enumerated() {
        let change = diagonal + (letter == other ? 0 : 1)
        diagonal = row[column + 1]
        row[column + 1] = min(change, row[column] + 1, row[column + 1] + 1)
      }
    }
    return row[right.count]
  }

  private func settings() throws -> Settings {
    var settings = Settings()
    settings.databaseURL = try connection("database.url") ?? settings.databaseURL
    settings.salesURL = try connection("database.salesUrl")
    settings.salesSchema = try words("database.salesSchema") ?? settings.salesSchema
    settings.apps = try apps()
    settings.channel = try word("appstore.channel", settings.channel)
    settings.productionURL = try url("appstore.productionUrl", settings.productionURL)
    settings.sandboxURL = try url("appstore.sandboxUrl", settings.sandboxURL)
    settings.verifyReceiptURL = try url("appstore.verifyReceiptUrl", settings.verifyReceiptURL)
    settings.verifyReceiptSandboxURL = try url("appstore.verifyReceiptSandboxUrl", settings.verifyReceiptSandboxURL)
    settings.rootCertificates = try words("appstore.rootCertificates") ?? settings.rootCertificates
    settings.pinRoots = try flag("appstore.pinRoots", settings.pinRoots)
    settings.requestsPerSecond = try number("appstore.requestsPerSecond", settings.requestsPerSecond)
    guard settings.requestsPerSecond == 0 || settings.requestsPerSecond >= 0.001 else {
      throw ConfigurationError(
        key: "appstore.requestsPerSecond",
        problem: "\(settings.requestsPerSecond) is less than one request in a thousand seconds; 0 sets no limit")
    }
    settings.concurrency = try count("appstore.concurrency", settings.concurrency)
    settings.timeout = try span("appstore.timeout", settings.timeout)
    guard settings.timeout.wholeSeconds > 0 else {
      throw ConfigurationError(
        key: "appstore.timeout", problem: "0s leaves Apple no time to answer; write 1s or more, such as 30s")
    }
    settings.staleAfter = try span("recheck.staleAfter", settings.staleAfter)
    settings.refundWindow = try span("recheck.refundWindow", settings.refundWindow)
    settings.maxDuration = try span("recheck.maxDuration", settings.maxDuration)
    settings.batchSize = try count("recheck.batchSize", settings.batchSize)
    settings.lookback = try span("audit.lookback", settings.lookback)
    guard settings.lookback >= .days(1) else {
      throw ConfigurationError(
        key: "audit.lookback",
        problem: "audits no order, and all open findings would close; write 1d or more, such as 120d"
      )
    }
    settings.deliveryGrace = try span("audit.deliveryGrace", settings.deliveryGrace)
    settings.evidenceGrace = try span("audit.evidenceGrace", settings.evidenceGrace)
    settings.notFoundGrace = try span("audit.notFoundGrace", settings.notFoundGrace)
    settings.matchWindow = try span("audit.matchWindow", settings.matchWindow)
    settings.stuckAfter = try span("audit.stuckAfter", settings.stuckAfter)
    settings.subscriptionGrace = try span("audit.subscriptionGrace", settings.subscriptionGrace)
    settings.clockSkew = try span("audit.clockSkew", settings.clockSkew)
    settings.amountToleranceMillionths = try millionths("audit.amountTolerance")
    settings.testUsers = list("audit.testUsers") ?? []
    settings.reportLink = text("report.link")
    if let link = settings.reportLink, !["http", "https"].contains(URL(string: link)?.scheme ?? "") {
      throw ConfigurationError(
        key: "report.link", problem: "is not a URL; write one such as https://reports.example.com/audit/")
    }
    settings.reportDirectory = try words("report.directory") ?? settings.reportDirectory
    settings.timeZoneName = text("report.timeZone") ?? settings.timeZoneName
    guard TimeZone(identifier: settings.timeZoneName) != nil else {
      throw ConfigurationError(
        key: "report.timeZone", problem: "\(settings.timeZoneName) is not a time zone; use a name such as Europe/Berlin"
      )
    }
    settings.retention = try retention("report.retention", settings.retention)
    try loadReportSettings(into: &settings)
    settings.workbookOrders = try count("report.workbookOrders", settings.workbookOrders, least: 0)
    settings.deliver = try dispatchTargets()
    try loadAdditionalSettings(into: &settings)
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

  private func apps() throws -> [Settings.App] {
    var sections: [String] = []
    for key in fileValues.keys.sorted() where key.hasPrefix("app.") {
      let name = String(key.split(separator: ".")[1])
      if !sections.contains(name) { sections.append(name) }
    }
    let listed = list("appstore.apps")
    if listed == nil, sections.count > 1 {
      throw ConfigurationError(
        key: "appstore.apps", problem: "must list the apps when there are several: \(sections.joined(separator: ", "))")
    }
    let names = listed ?? (sections.isEmpty ? ["app"] : sections)
    guard Set(names).count == names.count, !names.isEmpty else {
      throw ConfigurationError(key: "appstore.apps", problem: "must name each app once, and at least one")
    }
    if names.count > 1 || sections.count > 1, let stray = sections.first(where: { !names.contains($0) }) {
      throw ConfigurationError(key: "app.\(stray)", problem: "is configured but not listed in appstore.apps")
    }
    // A single app's section may have any name, whatever the list calls it.
    let single = names.count == 1 && sections.count == 1 ? sections : names
    let apps = try single.map { try app($0) }
    for (index, app) in apps.enumerated() {
      if let first = apps[..<index].first(where: { $0.bundleId == app.bundleId }) {
        throw ConfigurationError(
          key: "app.\(app.name).bundleId", problem: "\(app.bundleId) is also that of app.\(first.name); correct one")
      }
      if let sku = app.sku, let first = apps[..<index].first(where: { $0.sku == sku }) {
        throw ConfigurationError(
          key: "app.\(app.name).sku", problem: "\(sku) is also that of app.\(first.name); correct one")
      }
    }
    return apps
  }

  private func app(_ name: String) throws -> Settings.App {
    let prefix = "app.\(name)."
    guard let bundleId = text(prefix + "bundleId"), !bundleId.isEmpty else {
      let remark =
        hasFile ? "" : "; there is no configuration file, neither \(Self.searchedFiles.joined(separator: " nor "))"
      throw ConfigurationError(
        key: prefix + "bundleId", problem: "is required: the bundle id of the app, such as com.example.game\(remark)")
    }
    var app = Settings.App(name: name, bundleId: bundleId)
    if let text = text(prefix + "appAppleId") {
      guard let number = Int64(text) else {
        throw ConfigurationError(key: prefix + "appAppleId", problem: "must be the app's numeric Apple ID")
      }
      app.appAppleId = number
    }
    app.sku = text(prefix + "sku")
    app.issuerId = text(prefix + "issuerId")
    app.keyId = text(prefix + "keyId")
    app.privateKeyFile = text(prefix + "privateKeyFile")
    try refuseIncompleteKey(app, prefix)
    app.sharedSecretFile = text(prefix + "sharedSecretFile")
    return app
  }

  /// Refuses an incomplete key, because the app would silently be asked through verifyReceipt.
  private func refuseIncompleteKey(_ app: Settings.App, _ prefix: String) throws {
    let parts = [("issuerId", app.issuerId), ("keyId", app.keyId), ("privateKeyFile", app.privateKeyFile)]
    let given = parts.filter { $0.1 != nil }.map(\.0)
    guard !given.isEmpty, let missing = parts.first(where: { $0.1 == nil }) else { return }
    throw ConfigurationError(
      key: prefix + missing.0,
      problem: """
        is missing beside \(given.joined(separator: " and ")): a key of the App Store Server API is issuerId, keyId and \
        privateKeyFile, all of App Store Connect, Users and Access, Integrations; without a key leave out all three
        """)
  }

  // MARK: - Typed reading

  package func text(_ key: String) -> String? {
    reader.string(forKey: configKey(key))
  }

  /// As `text`. Throws `ConfigurationError` for a blank value.
  func words(_ key: String) throws -> String? {
    guard let text = text(key) else { return nil }
    guard !text.allSatisfy(\.isWhitespace) else {
      throw ConfigurationError(key: key, problem: "is empty; give it a value, or leave it out")
    }
    return text
  }

  package func list(_ key: String) -> [String]? {
    if let values = reader.stringArray(forKey: configKey(key)) { return values }
    return reader.string(forKey: configKey(key))?.split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces) }
  }

  private func configKey(_ key: String) -> ConfigKey { ConfigKey(key.split(separator: ".").map(String.init)) }

  func span(_ key: String, _ standard: Span) throws -> Span {
    guard let text = text(key) else { return standard }
    guard let span = DurationText.parse(text) else { throw badDuration(key, text) }
    return span
  }

  func badDuration(_ key: String, _ text: String) -> ConfigurationError {
    ConfigurationError(
      key: key,
      problem: "\(text) is not a duration of at most 365000d; write a number and s, m, h or d, such as 90s or 7d")
  }

  func count(_ key: String, _ standard: Int, least: Int = 1) throws -> Int {
    guard let text = text(key) else { return standard }
    guard let number = Int(text), number >= least else {
      throw ConfigurationError(key: key, problem: "\(text) is not a whole number of \(least) or more")
    }
    return number
  }

  func number(_ key: String, _ standard: Double) throws -> Double {
    guard let text = text(key) else { return standard }
    guard let number = Double(text), number >= 0, number.isFinite else {
      throw ConfigurationError(key: key, problem: "\(text) is not a number of 0 or more")
    }
    return number
  }

  private func millionths(_ key: String) throws -> Int64 {
    guard let text = text(key) else { return 0 }
    let parts = text.split(separator: ".", maxSplits: 1, omittingEmptySubsequences: false)
    let fraction = parts.count > 1 ? String(parts[1]) : ""
    guard let whole = Int64(parts[0]), whole >= 0, whole < 1_000_000_000, fraction.utf8.count <= 6,
      let rest = Int64(fraction + String(repeating: "0", count: 6 - fraction.utf8.count)), rest >= 0
    else {
      throw ConfigurationError(key: key, problem: "\(text) is not an amount in major units of 0 or more, such as 0.01")
    }
    return whole * 1_000_000 + rest
  }

  private func flag(_ key: String, _ standard: Bool) throws -> Bool {
    guard let text = text(key) else { return standard }
    switch text.lowercased() {
    case "true", "yes", "on", "1": return true
    case "false", "no", "off", "0": return false
    default: throw ConfigurationError(key: key, problem: "\(text) is neither true nor false")
    }
  }

  private func word<Word: RawRepresentable>(_ key: String, _ standard: Word) throws -> Word
  where Word.RawValue == String {
    guard let text = text(key) else { return standard }
    guard let word = Word(rawValue: text) else {
      throw ConfigurationError(key: key, problem: "\(text) is not one of auto, serverApi, verifyReceipt")
    }
    return word
  }

  /// A conninfo string that libpq accepts. The value is not quoted in errors, because it may contain a password.
  private func connection(_ key: String) throws -> String? {
    guard let text = text(key) else { return nil }
    do throws(PostgresError) {
      _ = try ConnectionParameters(conninfo: text, applicationName: "night-audit")
    } catch {
      throw ConfigurationError(
        key: key,
        problem: "\(error.message); its options are libpq's, such as host, port, dbname, user, sslmode and sslrootcert")
    }
    return text
  }

  func url(_ key: String, _ standard: String) throws -> String {
    guard let text = text(key) else { return standard }
    do throws(EndpointURLError) {
      return try EndpointURL(text).text
    } catch {
      throw ConfigurationError(key: key, problem: "\(error)")
    }
  }

  // MARK: - Warnings

  private func unknownVariables() -> [String] {
    let known = (SettingKey.all + SettingKey.ofOwners + ofSections()).map(\.variable)
    return Set(environment.keys).subtracting(known).sorted().filter { $0.hasPrefix("NIGHT_AUDIT_") }.map {
      "The environment variable \($0) is not a setting of night-audit; did you mean \(nearest(to: $0, of: known))?"
    }
  }
}
