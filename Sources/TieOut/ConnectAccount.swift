import AppStore
import Settings

/// The access to the reports of App Store Connect, with its key read.
package struct ConnectAccount: Sendable {
  package let credentials: ConnectCredentials
  package let vendors: [String]
  package let url: EndpointURL
  package let salesVersion: String

  /// Throws `ConfigurationError` for a key that cannot work, or `EndpointURLError`.
  package init(_ settings: Settings.AppStoreConnect) throws {
    let file = settings.privateKeyFile ?? ""
    do {
      // Checked before the key is read, because a key of the other kind reads just as well.
      try ConnectCredentials.check(keyFile: file)
      credentials = ConnectCredentials(
        issuerId: settings.issuerId ?? "", keyId: settings.keyId ?? "",
        privateKeyPEM: try SecretFile.read(file, key: "appStoreConnect.privateKeyFile"))
      _ = try AppleToken(credentials)
    } catch let error as AppleKeyError {
      throw ConfigurationError(key: "appStoreConnect.\(error.setting)", problem: "\(error)")
    }
    // A duplicate vendor number must not fetch its reports twice.
    vendors = Set(settings.vendorNumbers).sorted()
    url = try EndpointURL(settings.url)
    salesVersion = settings.salesVersion
  }
}
