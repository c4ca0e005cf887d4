import JWTKit
import Reconciliation

/// Creates tokens for downloads (Apple: "Generating Tokens for API Requests"), valid for 20 minutes at most.
package actor ConnectToken {
  package static let lifetime = Span.minutes(10)
  /// A token with less than this left is replaced, because the request must arrive before it expires.
  package static let reserve = Span.minutes(1)

  private struct Claims: JWTPayload {
    var iss: String
    var iat: Int64
    var exp: Int64
    var aud = "appstoreconnect-v1"

    func verify(using algorithm: some JWTAlgorithm) {}
  }

  private let credentials: ConnectCredentials
  private let privateKey: ES256PrivateKey
  private var current: (token: Secret, issuedAt: Instant)?

  package init(_ credentials: ConnectCredentials) throws(ConnectCredentialsError) {
    guard !credentials.issuerId.isEmpty else { throw .issuerIdMissing }
    guard !credentials.keyId.isEmpty else { throw .keyIdMissing }
    // The library's error is dropped because it may quote the key.
    guard let key = try? ES256PrivateKey(pem: credentials.privateKeyPEM.reveal()) else { throw .privateKeyUnreadable }
    self.credentials = credentials
    privateKey = key
  }

  /// Returns a valid token, new if `isFresh`; nil if signing failed.
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
