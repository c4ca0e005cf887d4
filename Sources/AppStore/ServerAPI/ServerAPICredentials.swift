import Reconciliation

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
    (self.issuerId, self.keyId, self.privateKeyPEM, self.bundleId) = (issuerId, keyId, privateKeyPEM, bundleId)
    self.appAppleId = appAppleId
  }
}

extension AppleToken {
  /// Tokens have the lifetime of those of Apple's own libraries, far below the allowed 60 minutes.
  package init(_ credentials: ServerAPICredentials) throws(AppleKeyError) {
    try self.init(
      issuerId: credentials.issuerId, keyId: credentials.keyId, bundleId: credentials.bundleId,
      privateKeyPEM: credentials.privateKeyPEM, lifetime: .minutes(5))
  }
}
