/// An In-App Purchase key (Apple: "Creating API keys to authorize API requests") and the app.
package struct ServerAPICredentials: Hashable, Sendable {
  /// The UUID above the list of keys in App Store Connect.
  package var issuerId: String
  package var keyId: String
  /// The content of the `.p8` file: a P-256 key in PEM.
  package var privateKeyPEM: Secret
  /// The app that the token names. One key serves all apps of the account.
  package var bundleId: String
  /// The app's Apple ID, which production notifications contain; nil: not compared.
  package var appAppleId: Int64?

  package init(issuerId: String, keyId: String, privateKeyPEM: Secret, bundleId: String, appAppleId: Int64? = nil) {
    self.issuerId = issuerId
    self.keyId = keyId
    self.privateKeyPEM = privateKeyPEM
    self.bundleId = bundleId
    self.appAppleId = appAppleId
  }
}

/// A configuration error in the credentials. Its description never contains the key.
package enum ServerAPICredentialsError: Error, Hashable, CaseIterable, Sendable, CustomStringConvertible {
  case issuerIdMissing
  case keyIdMissing
  case bundleIdMissing
  case privateKeyUnreadable

  package var description: String {
    switch self {
    case .issuerIdMissing: "the issuer id is empty; App Store Connect shows it above the list of In-App Purchase keys"
    case .keyIdMissing: "the key id is empty; App Store Connect shows it beside the key"
    case .bundleIdMissing: "the bundle id is empty"
    case .privateKeyUnreadable:
      "the private key is not a P-256 key in PEM; use the .p8 file of an In-App Purchase key as it was downloaded"
    }
  }
}
