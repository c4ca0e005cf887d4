import Crypto
import Foundation

/// A client's token (Apple: "Generating JSON Web Tokens for API requests"). Independent of the code that makes it.
struct ClientToken: Sendable {
  struct Keys: Sendable {
    private var keys: [P256.Signing.PublicKey] = []

    mutating func add(pem: String) throws { keys.append(try P256.Signing.PublicKey(pemRepresentation: pem)) }

    var isEmpty: Bool { keys.isEmpty }

    fileprivate func verify(_ signature: P256.Signing.ECDSASignature, of content: Data) -> Bool {
      keys.contains { $0.isValidSignature(signature, for: content) }
    }
  }

  var bundleId: String?

  /// An unverified token, for a simulator without keys.
  static func unchecked(authorization: String?) -> ClientToken {
    ClientToken(bundleId: parts(authorization)?.claims["bid"] as? String)
  }

  /// A verified token; nil if Apple would answer 401. `now` is in seconds since the epoch, by the wall clock.
  static func checked(authorization: String?, keys: Keys, world: World, now: Int64) -> ClientToken? {
    guard let parts = parts(authorization), parts.header["alg"] as? String == "ES256",
      let keyId = parts.header["kid"] as? String, !keyId.isEmpty,
      let signature = try? P256.Signing.ECDSASignature(rawRepresentation: parts.signature),
      let bundleId = parts.claims["bid"] as? String, let app = world.app(bundleId: bundleId),
      let issuer = parts.claims["iss"] as? String, let expiresAt = parts.claims["exp"] as? Int64
    else { return nil }
    // Apple's own libraries leave it out.
    let issuedAt = parts.claims["iat"] as? Int64 ?? now
    let keys = app.keys.isEmpty ? keys : app.keys
    guard keys.verify(signature, of: parts.content), app.issuerId == nil || app.issuerId == issuer,
      app.keyId == nil || app.keyId == keyId, parts.claims["aud"] as? String == "appstoreconnect-v1",
      // A minute of clock difference; Apple allows at most an hour.
      issuedAt <= now + 60, now < expiresAt, expiresAt - issuedAt <= 3_600
    else { return nil }
    return ClientToken(bundleId: bundleId)
  }

  /// True for a team key's token: no bundle ID, at most 20 minutes.
  static func isTeamToken(authorization: String?, keys: Keys, issuerId: String?, keyId: String?, now: Int64) -> Bool {
    guard let parts = parts(authorization), parts.header["alg"] as? String == "ES256",
      let key = parts.header["kid"] as? String, !key.isEmpty,
      let signature = try? P256.Signing.ECDSASignature(rawRepresentation: parts.signature),
      let issuer = parts.claims["iss"] as? String, let issuedAt = parts.claims["iat"] as? Int64,
      let expiresAt = parts.claims["exp"] as? Int64
    else { return false }
    return keys.verify(signature, of: parts.content) && (issuerId == nil || issuerId == issuer)
      && (keyId == nil || keyId == key) && parts.claims["aud"] as? String == "appstoreconnect-v1"
      && parts.claims["bid"] == nil && parts.claims["sub"] == nil && issuedAt <= now + 60 && now < expiresAt
      && expiresAt - issuedAt <= 1_200
  }

  private struct Parts {
    var header: [String: Any]
    var claims: [String: Any]
    var signature: Data
    var content: Data
  }

  private static func parts(_ authorization: String?) -> Parts? {
    guard let authorization, authorization.hasPrefix("Bearer ") else { return nil }
    let parts = authorization.dropFirst("Bearer ".count).split(separator: ".", omittingEmptySubsequences: false)
    guard parts.count == 3, let header = fields(parts[0]), let claims = fields(parts[1]),
      let signature = Data(base64URL: parts[2])
    else { return nil }
    return Parts(
      header: header, claims: claims, signature: signature, content: Data("\(parts[0]).\(parts[1])".utf8))
  }

  private static func fields(_ part: Substring) -> [String: Any]? {
    Data(base64URL: part).flatMap { try? JSONSerialization.jsonObject(with: $0) as? [String: Any] }
  }
}
