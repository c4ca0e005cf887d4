/// A team key (App Store Connect, Users and Access, Integrations). No other kind of key can download reports.
package struct ConnectCredentials: Hashable, Sendable {
  /// The UUID above the list of team keys.
  package var issuerId: String
  package var keyId: String
  /// The content of `AuthKey_<keyId>.p8`: a P-256 key in PEM.
  package var privateKeyPEM: Secret

  package init(issuerId: String, keyId: String, privateKeyPEM: Secret) {
    self.issuerId = issuerId
    self.keyId = keyId
    self.privateKeyPEM = privateKeyPEM
  }
}

/// A reason why credentials cannot work. Its description never contains the key.
package enum ConnectCredentialsError: Error, Hashable, CaseIterable, Sendable, CustomStringConvertible {
  case issuerIdMissing
  case keyIdMissing
  case privateKeyUnreadable
  case inAppPurchaseKey

  package var description: String {
    switch self {
    case .issuerIdMissing: "the issuer id is empty; App Store Connect shows it above the list of team keys"
    case .keyIdMissing: "the key id is empty; App Store Connect shows it beside the key"
    case .privateKeyUnreadable:
      "the private key is not a P-256 key in PEM; use the AuthKey_….p8 file of a team key as it was downloaded"
    case .inAppPurchaseKey:
      """
      the file is named as an In-App Purchase key (SubscriptionKey_….p8), which cannot download reports; make a team key \
      under Users and Access, Integrations, App Store Connect API (AuthKey_….p8)
      """
    }
  }

  /// Rejects the file name of an In-App Purchase key. Apple's 401 does not show which key is wrong.
  package static func check(keyFile path: String) throws(ConnectCredentialsError) {
    let name = path.split(separator: "/").last ?? ""
    if name.lowercased().hasPrefix("subscriptionkey_") { throw .inAppPurchaseKey }
  }
}
