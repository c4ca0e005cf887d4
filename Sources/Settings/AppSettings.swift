import Reconciliation

extension Settings {
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
      name: String, bundleId: String, appAppleId: Int64? = nil, sku: String? = nil, issuerId: String? = nil,
      keyId: String? = nil, privateKeyFile: String? = nil, sharedSecretFile: String? = nil
    ) {
      (self.name, self.bundleId, self.appAppleId, self.sku) = (name, bundleId, appAppleId, sku)
      (self.issuerId, self.keyId, self.privateKeyFile) = (issuerId, keyId, privateKeyFile)
      self.sharedSecretFile = sharedSecretFile
    }
  }
}

extension SettingKey {
  package static let ofApp: [SettingKey] = [
    SettingKey("bundleId", "the bundle ID; required"),
    SettingKey("appAppleId", "Apple's app ID; notifications with another ID are rejected"),
    SettingKey("sku", "the app's SKU in App Store Connect; needed if two apps share a product ID"),
    SettingKey("issuerId", "the issuer of the In-App Purchase key of the App Store Server API"),
    SettingKey("keyId", "the ID of the key"), SettingKey("privateKeyFile", "the .p8 file of the key", secrecy: .file),
    SettingKey("sharedSecretFile", "a file with the app-specific shared secret of verifyReceipt", secrecy: .file),
  ]
}

extension SettingsLoader {
  func apps() throws -> [Settings.App] {
    let sections = sections("app", in: fileValues.keys + emptyKeys)
    let listed = list("appstore.apps")
    if listed == nil, sections.count > 1 {
      throw ConfigurationError(
        key: "appstore.apps", problem: "must list the apps when there are several: \(sections.joined(separator: ", "))")
    }
    if listed == nil, sections.isEmpty, text("app.app.bundleId") == nil {
      let remedy =
        hasFile ? "" : "; there is no configuration file: create \(Self.searchedFiles.joined(separator: " or "))"
      throw ConfigurationError(key: "app.<name>.bundleId", problem: "\(Self.missingBundleId)\(remedy)")
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
      if let number = app.appAppleId, let first = apps[..<index].first(where: { $0.appAppleId == number }) {
        throw ConfigurationError(
          key: "app.\(app.name).appAppleId", problem: "\(number) is also that of app.\(first.name); correct one")
      }
      if let sku = app.sku, let first = apps[..<index].first(where: { $0.sku == sku }) {
        throw ConfigurationError(
          key: "app.\(app.name).sku", problem: "\(sku) is also that of app.\(first.name); correct one")
      }
    }
    return apps
  }

  private static let missingBundleId = "is required: the bundle ID of the app, such as com.example.game"

  private func app(_ name: String) throws -> Settings.App {
    let prefix = "app.\(name)."
    guard let bundleId = text(prefix + "bundleId"), !bundleId.isEmpty else {
      throw ConfigurationError(key: prefix + "bundleId", problem: Self.missingBundleId)
    }
    if bundleId.contains(where: \.isWhitespace) {
      throw ConfigurationError(
        key: prefix + "bundleId",
        problem: "has a blank in it; write the bundle id as in App Store Connect, such as com.example.game")
    }
    var app = Settings.App(name: name, bundleId: bundleId)
    if let text = text(prefix + "appAppleId") {
      guard let number = Int64(digits: text) else {
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
}
