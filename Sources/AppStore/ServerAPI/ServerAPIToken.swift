import JWTKit
import Reconciliation

/// Creates tokens for requests (Apple: "Generating JSON Web Tokens for API requests"), reused because signing is
/// expensive.
package actor ServerAPIToken {
  /// The lifetime of Apple's own libraries, far below the allowed 60 minutes.
  package static let lifetime = Span.minutes(5)
  /// A token with less than this left is replaced, because it must be valid by Apple's clock on arrival.
  package static let reserve = Span.minutes(1)

  private struct Claims: JWTPayload {
    var iss: String
    var iat: Int64
    var exp: Int64
    var aud = "appstoreconnect-v1"
    var bid: String

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

  package init(_ credentials: ServerAPICredentials) throws(ServerAPICredentialsError) {
    guard !credentials.issuerId.isEmpty else { throw .issuerIdMissing }
    guard !credentials.keyId.isEmpty else { throw .keyIdMissing }
    guard !credentials.bundleId.isEmpty else { throw .bundleIdMissing }
    // The library's error is dropped because it may quote the key.
    guard let key = try? ES256PrivateKey(pem: credentials.privateKeyPEM.reveal()) else { throw .privateKeyUnreadable }
    self.credentials = credentials
    privateKey = key
  }

  package func token(now: Instant) async -> Secret? {
    let signing: Task<String, any Error>
    // After the clock was set back the token would lie in the future, and Apple would refuse it.
    if let current, current.issuedAt <= now, now < current.issuedAt + Self.lifetime - Self.reserve {
      signing = current.signing
    } else {
      signing = sign(at: now)
      // Stored before signing ends, so that concurrent requests share one token.
      current = Current(issuedAt: now, signing: signing)
    }
    return try? await Secret(signing.value)
  }

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
