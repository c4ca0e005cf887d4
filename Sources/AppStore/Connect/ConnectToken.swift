import JWTKit
import Reconciliation

/// Makes the tokens that authorize downloads (Apple: "Generating Tokens for API Requests"): as those of the App Store
/// Server API, but without an app, and valid for 20 minutes at most.
package actor ConnectToken {
  /// How long a token is valid: a night's downloads need one or two.
  package static let lifetime = Span.minutes(10)
  /// A token is not used any more when it has less than this left: the request must arrive before it expires.
  package static let reserve = Span.minutes(1)

  private struct Claims: JWTPayload {
    var iss: String
    /// Seconds since the epoch.
    var iat: Int64
    var exp: Int64
    var aud = "appstoreconnect-v1"

    /// Only Apple verifies our tokens.
    func verify(using algorithm: some JWTAlgorithm) {}
  }

  private let credentials: ConnectCredentials
  private let privateKey: ES256PrivateKey
  private var current: (token: Secret, issuedAt: Instant)?

  /// Throws when the credentials cannot work, whatever Apple would say.
  package init(_ credentials: ConnectCredentials) throws(ConnectCredentialsError) {
    guard !credentials.issuerId.isEmpty else { throw .issuerIdMissing }
    guard !credentials.keyId.isEmpty else { throw .keyIdMissing }
    // The library's error may quote what it read.
    guard let key = try? ES256PrivateKey(pem: credentials.privateKeyPEM.reveal()) else { throw .privateKeyUnreadable }
    self.credentials = credentials
    privateKey = key
  }

  /// A token that is valid now and a while longer; nil when signing failed, which no key that was read does.
  /// - Parameter isFresh: whether it must be a new one, because the last one was refused.
  package func token(now: Instant, isFresh: Bool = false) async -> Secret? {
    if !isFresh, let current, current.issuedAt <= now, now < current.issuedAt + Self.lifetime - Self.reserve {
      return current.token
    }
    let claims = Claims(iss: credentials.issuerId, iat: now.seconds, exp: (now + Self.lifetime).seconds)
    let kid = JWKIdentifier(string: credentials.keyId)
    let keys = JWTKeyCollection()
    await keys.add(ecdsa: privateKey, kid: kid)
    guard let text = try? await keys.sign(claims, kid: kid) else { return nil }
    let token = Secret(text)
    current = (token, now)
    return token
  }
}
