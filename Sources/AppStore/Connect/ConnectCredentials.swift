import Reconciliation

/// A team key (App Store Connect, Users and Access, Integrations). No other kind of key can download reports.
package struct ConnectCredentials: Hashable, Sendable {
  /// The UUID above the list of team keys.
  package var issuerId: String
  package var keyId: String
  /// The content of `AuthKey_<keyId>.p8`: a P-256 key in PEM.
  package var privateKeyPEM: Secret

  package init(issuerId: String, keyId: String, privateKeyPEM: Secret) {
    (self.issuerId, self.keyId, self.privateKeyPEM) = (issuerId, keyId, privateKeyPEM)
  }

  /// Rejects the file name of an In-App Purchase key. Apple's 401 does not show which key is wrong.
  package static func check(keyFile path: String) throws(AppleKeyError) {
    let name = path.split(separator: "/").last ?? ""
    if name.lowercased().hasPrefix("subscriptionkey_") { throw .inAppPurchaseKey }
  }
}

extension AppleToken {
  /// Tokens for downloads are valid for 20 minutes at most.
  package init(_ credentials: ConnectCredentials) throws(AppleKeyError) {
    try self.init(
      issuerId: credentials.issuerId, keyId: credentials.keyId, bundleId: nil,
      privateKeyPEM: credentials.privateKeyPEM, lifetime: .minutes(10))
  }
}
