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

  private init(issuerId: String, keyId: String, bundleId: String?, privateKey: ES256PrivateKey, lifetime: Span) {
    self.issuerId = issuerId
    self.keyId = JWKIdentifier(string: keyId)
    self.bundleId = bundleId
    self.privateKey = privateKey
    self.lifetime = lifetime
  }

  /// Tokens have the lifetime of those of Apple's own libraries, far below the allowed 60 minutes.
  package init(_ credentials: ServerAPICredentials) throws(ServerAPICredentialsError) {
    guard !credentials.issuerId.isEmpty else { throw .issuerIdMissing }
    guard !credentials.keyId.isEmpty else { throw .keyIdMissing }
    guard !credentials.bundleId.isEmpty else { throw .bundleIdMissing }
    // The library's error is dropped because it may quote the key.
    guard let key = try? ES256PrivateKey(pem: credentials.privateKeyPEM.reveal()) else { throw .privateKeyUnreadable }
    self.init(
      issuerId: credentials.issuerId, keyId: credentials.keyId, bundleId: credentials.bundleId, privateKey: key,
      lifetime: .minutes(5))
  }

  /// Tokens for downloads are valid for 20 minutes at most.
  package init(_ credentials: ConnectCredentials) throws(ConnectCredentialsError) {
    guard !credentials.issuerId.isEmpty else { throw .issuerIdMissing }
    guard !credentials.keyId.isEmpty else { throw .keyIdMissing }
    guard let key = try? ES256PrivateKey(pem: credentials.privateKeyPEM.reveal()) else { throw .privateKeyUnreadable }
    self.init(
      issuerId: credentials.issuerId, keyId: credentials.keyId, bundleId: nil, privateKey: key, lifetime: .minutes(10))
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
