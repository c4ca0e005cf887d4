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
  static func checked(authorization: String?, world: World, now: Int64) -> ClientToken? {
    guard let parts = parts(authorization), let bundleId = parts.claims["bid"] as? String,
      let app = world.app(bundleId: bundleId),
      parts.areValid(keys: app.keys, issuerId: app.issuerId, keyId: app.keyId, now: now, longest: 3_600)
    else { return nil }
    return ClientToken(bundleId: bundleId)
  }

  /// True for a team key's token: no bundle ID, at most 20 minutes.
  static func isTeamToken(authorization: String?, keys: Keys, issuerId: String?, keyId: String?, now: Int64) -> Bool {
    guard let parts = parts(authorization), parts.claims["iat"] is Int64, parts.claims["bid"] == nil,
      parts.claims["sub"] == nil
    else { return false }
    return parts.areValid(keys: keys, issuerId: issuerId, keyId: keyId, now: now, longest: 1_200)
  }

  private struct Parts {
    var header: [String: Any]
    var claims: [String: Any]
    var signature: Data
    var content: Data

    func areValid(keys: Keys, issuerId: String?, keyId: String?, now: Int64, longest: Int64) -> Bool {
      guard header["alg"] as? String == "ES256", let kid = header["kid"] as? String, !kid.isEmpty,
        let signature = try? P256.Signing.ECDSASignature(rawRepresentation: signature),
        let issuer = claims["iss"] as? String, let expiresAt = claims["exp"] as? Int64
      else { return false }
      // Apple's own libraries leave it out.
      let issuedAt = claims["iat"] as? Int64 ?? now
      // A minute of clock difference.
      return keys.verify(signature, of: content) && (issuerId == nil || issuerId == issuer)
        && (keyId == nil || keyId == kid) && claims["aud"] as? String == "appstoreconnect-v1"
        && issuedAt <= now + 60 && now < expiresAt && expiresAt - issuedAt <= longest
    }
  }

  private static func parts(_ authorization: String?) -> Parts? {
    guard let authorization, authorization.hasPrefix("Bearer ") else { return nil }
    let parts = authorization.dropFirst("Bearer ".count).split(separator: ".", omittingEmptySubsequences: false)
    guard parts.count == 3, let header = fields(parts[0]), let claims = fields(parts[1]),
      let signature = Data(base64URL: parts[2])
    else { return nil }
    return Parts(header: header, claims: claims, signature: signature, content: Data("\(parts[0]).\(parts[1])".utf8))
  }

  private static func fields(_ part: Substring) -> [String: Any]? {
    Data(base64URL: part).flatMap { try? JSONSerialization.jsonObject(with: $0) as? [String: Any] }
  }
}
