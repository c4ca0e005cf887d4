import Postgres

/// One key of the configuration: name, type, default, meaning and secrecy.
package struct SettingKey: Sendable {
  /// The dotted name in the file, such as `audit.lookback`.
  package var name: String
  package let meaning: String
  /// The default as the file would state it; empty for none.
  package let standard: String
  /// The value in the installed file, if it is not the default.
  package let example: String
  package let secrecy: Secrecy
  /// True if the setting takes several values: a list in the file, elsewhere separated by commas.
  package let isList: Bool
  /// Stores the value; nil for keys that are read together with others. Throws `ConfigurationError`.
  package let store: (@Sendable (_ values: [String], inout Settings) throws -> Void)?
  /// The value as the file would state it, for the digest of settings that steer reports; nil for other settings.
  let reportedText: (@Sendable (Settings) -> String)?

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

  /// A setting of its own. Its default is the value of `Settings()`.
  init<Value>(
    _ name: String, _ path: any WritableKeyPath<Settings, Value> & Sendable, _ type: SettingType<Value>,
    _ meaning: String, example: String = "", secrecy: Secrecy = .none, steersReports: Bool = false
  ) {
    (self.name, self.meaning, self.example, self.secrecy) = (name, meaning, example, secrecy)
    let text: @Sendable (Settings) -> String = { settings in type.text(settings[keyPath: path]) }
    reportedText = steersReports ? text : nil
    standard = type.text(Settings()[keyPath: path])
    isList = type.isList
    store = { values, settings in settings[keyPath: path] = try type.parse(name, values) }
  }

  /// A key that is read together with others.
  package init(
    _ name: String, _ meaning: String = "", standard: String = "", example: String = "", secrecy: Secrecy = .none,
    isList: Bool = false
  ) {
    (self.name, self.meaning, self.standard) = (name, meaning, standard)
    (self.example, self.secrecy, self.isList) = (example, secrecy, isList)
    store = nil
    reportedText = nil
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

  /// True if settings may lie below the key, such as `audit` or `app.game`.
  static func isSection(_ key: String) -> Bool {
    let parts = key.split(separator: ".", omittingEmptySubsequences: false)
    if parts.count <= 2, ["app", "deliver"].contains(parts[0]) { return parts.last?.isEmpty == false }
    return (all + ofOwners + ofJournal).contains { $0.name.hasPrefix(key + ".") }
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
