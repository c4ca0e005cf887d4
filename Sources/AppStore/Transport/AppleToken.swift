import JWTKit
import Reconciliation

/// Creates tokens (Apple: "Generating JSON Web Tokens for API requests"), reused because signing is expensive.
package actor AppleToken {
  private struct Claims: JWTPayload {
    var iss: String
    var iat: Int64
    var exp: Int64
    var aud = "appstoreconnect-v1"
    /// Left out of tokens of team keys, which name no app.
    var bid: String?

    func verify(using algorithm: some JWTAlgorithm) {}
  }

  private let issuerId: String
  private let keyId: JWKIdentifier
  private let bundleId: String?
  private let privateKey: ES256PrivateKey
  private let lifetime: Span
  private var keys: JWTKeyCollection?
  private var current: (issuedAt: Instant, signing: Task<String, any Error>)?

  /// - Parameter bundleId: the app that the tokens name; nil for a team key.
  init(
    issuerId: String, keyId: String, bundleId: String?, privateKeyPEM: Secret, lifetime: Span
  ) throws(AppleKeyError) {
    let kind = bundleId == nil ? AppleKeyError.Kind.team : .inAppPurchase
    guard !issuerId.isEmpty else { throw .issuerIdMissing(kind) }
    guard !keyId.isEmpty else { throw .keyIdMissing }
    guard bundleId?.isEmpty != true else { throw .bundleIdMissing }
    // The library's error is dropped because it may quote the key.
    guard let key = try? ES256PrivateKey(pem: privateKeyPEM.reveal()) else { throw .privateKeyUnreadable(kind) }
    self.issuerId = issuerId
    self.keyId = JWKIdentifier(string: keyId)
    self.bundleId = bundleId
    privateKey = key
    self.lifetime = lifetime
  }

  /// Returns a valid token; nil if signing failed.
  package func token(now: Instant) async -> Secret? {
    let signing: Task<String, any Error>
    // A token with less than a minute left is replaced, because it must be valid by Apple's clock on arrival. After the
    // clock was set back the token would lie in the future, and Apple would refuse it.
    if let current, current.issuedAt <= now, now < current.issuedAt + lifetime - .minutes(1) {
      signing = current.signing
    } else {
      signing = sign(at: now)
      // Stored before signing ends, so that concurrent requests share one token.
      current = (now, signing)
    }
    return try? await Secret(signing.value)
  }

  package func renew() { current = nil }

  private func sign(at now: Instant) -> Task<String, any Error> {
    let claims = Claims(iss: issuerId, iat: now.seconds, exp: (now + lifetime).seconds, bid: bundleId)
    let (keys, isNew) = (self.keys ?? JWTKeyCollection(), self.keys == nil)
    self.keys = keys
    return Task { [keyId, privateKey] in
      if isNew { await keys.add(ecdsa: privateKey, kid: keyId) }
      return try await keys.sign(claims, kid: keyId)
    }
  }
}

/// A reason why a key cannot work. Its description never contains the key.
package enum AppleKeyError: Error, Hashable, Sendable, CustomStringConvertible {
  package enum Kind: Hashable, Sendable {
    case inAppPurchase, team
  }

  case issuerIdMissing(Kind)
  case keyIdMissing
  case bundleIdMissing
  case privateKeyUnreadable(Kind)
  /// An In-App Purchase key in place of a team key.
  case inAppPurchaseKey

  package var description: String {
    switch self {
    case .issuerIdMissing(.inAppPurchase):
      "the issuer id is empty; App Store Connect shows it above the list of In-App Purchase keys"
    case .issuerIdMissing(.team): "the issuer id is empty; App Store Connect shows it above the list of team keys"
    case .keyIdMissing: "the key id is empty; App Store Connect shows it beside the key"
    case .bundleIdMissing: "the bundle id is empty"
    case .privateKeyUnreadable(.inAppPurchase):
      "the private key is not a P-256 key in PEM; use the .p8 file of an In-App Purchase key as it was downloaded"
    case .privateKeyUnreadable(.team):
      "the private key is not a P-256 key in PEM; use the AuthKey_….p8 file of a team key as it was downloaded"
    case .inAppPurchaseKey:
      """
      the file is named as an In-App Purchase key (SubscriptionKey_….p8), which cannot download reports; make a team key \
      under Users and Access, Integrations, App Store Connect API (AuthKey_….p8)
      """
    }
  }

  /// The name of the setting to mend.
  package var setting: String {
    switch self {
    case .issuerIdMissing: "issuerId"
    case .keyIdMissing: "keyId"
    case .bundleIdMissing: "bundleId"
    case .privateKeyUnreadable, .inAppPurchaseKey: "privateKeyFile"
    }
  }
}
