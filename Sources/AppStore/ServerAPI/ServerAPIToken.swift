import JWTKit
import Reconciliation

/// Makes the tokens that authorize requests (Apple: "Generating JSON Web Tokens for API requests"), and uses each of them
/// for a while: signing one a request would cost more than the rest of the request.
package actor ServerAPIToken {
  /// How long a token is valid: what Apple's own libraries ask for, far below the allowed 60 minutes.
  package static let lifetime = Span.minutes(5)
  /// A token is not used any more when it has less than this left: the request must arrive before it expires, and by
  /// Apple's clock.
  package static let reserve = Span.minutes(1)

  private struct Claims: JWTPayload {
    var iss: String
    /// Seconds since the epoch.
    var iat: Int64
    var exp: Int64
    var aud = "appstoreconnect-v1"
    var bid: String

    /// Only Apple verifies our tokens.
    func verify(using algorithm: some JWTAlgorithm) {}
  }

  private struct Current {
    var issuedAt: Instant
    var signing: Task<String, any Error>
  }

  private let credentials: ServerAPICredentials
  private let privateKey: ES256PrivateKey
  private var keys: JWTKeyCollection?
  private var current: Current?

  /// Throws when the credentials cannot work, whatever Apple would say.
  package init(_ credentials: ServerAPICredentials) throws(ServerAPICredentialsError) {
    guard !credentials.issuerId.isEmpty else { throw .issuerIdMissing }
    guard !credentials.keyId.isEmpty else { throw .keyIdMissing }
    guard !credentials.bundleId.isEmpty else { throw .bundleIdMissing }
    // The library's error may quote what it read.
    guard let key = try? ES256PrivateKey(pem: credentials.privateKeyPEM.reveal()) else { throw .privateKeyUnreadable }
    self.credentials = credentials
    privateKey = key
  }

  /// A token that is valid now and a while longer; nil when signing failed, which no key that was read does.
  package func token(now: Instant) async -> Secret? {
    let signing: Task<String, any Error>
    // A clock that was set back makes the token one from the future, which Apple refuses.
    if let current, current.issuedAt <= now, now < current.issuedAt + Self.lifetime - Self.reserve {
      signing = current.signing
    } else {
      signing = sign(at: now)
      // Kept before it is done, so that requests that start together share one.
      current = Current(issuedAt: now, signing: signing)
    }
    return try? await Secret(signing.value)
  }

  /// Forgets the token, so that the next one is made anew.
  package func renew() { current = nil }

  private func sign(at now: Instant) -> Task<String, any Error> {
    let claims = Claims(
      iss: credentials.issuerId, iat: now.seconds, exp: (now + Self.lifetime).seconds, bid: credentials.bundleId)
    let kid = JWKIdentifier(string: credentials.keyId)
    let (keys, privateKey) = (self.keys ?? JWTKeyCollection(), privateKey)
    let isNew = self.keys == nil
    self.keys = keys
    return Task {
      if isNew { await keys.add(ecdsa: privateKey, kid: kid) }
      return try await keys.sign(claims, kid: kid)
    }
  }
}
