import Crypto
import Foundation
import Reconciliation
import Testing

@testable import AppStore

struct AppleTokenTests {
  private static let now = Instant(seconds: 1_795_212_000)

  /// A token of a team key names no app.
  @Test(arguments: [("com.example.game", 300), (nil, 600)] as [(String?, Int64)])
  func tokensHaveTheRequiredClaims(bundleId: String?, lifetime: Int64) async throws {
    let key = P256.Signing.PrivateKey()
    let source =
      try bundleId == nil
      ? AppleToken(
        ConnectCredentials(
          issuerId: ServerAPICredentials.issuer, keyId: "2X9R4HXF34", privateKeyPEM: Secret(key.pemRepresentation)))
      : AppleToken(.test(key: key))
    let parts = try #require(await source.token(now: Self.now)).reveal().split(separator: ".").map(String.init)
    #expect(parts.count == 3)
    #expect(try fields(parts[0]) as? [String: String] == ["alg": "ES256", "kid": "2X9R4HXF34", "typ": "JWT"])
    let claims = try fields(parts[1])
    #expect(claims["iss"] as? String == ServerAPICredentials.issuer && claims["bid"] as? String == bundleId)
    #expect(claims["aud"] as? String == "appstoreconnect-v1" && claims.count == (bundleId == nil ? 4 : 5))
    #expect(claims["iat"] as? Int64 == 1_795_212_000 && claims["exp"] as? Int64 == 1_795_212_000 + lifetime)
    // The raw form: Apple would answer DER with 401.
    let signature = try P256.Signing.ECDSASignature(rawRepresentation: bytes(parts[2]))
    #expect(key.publicKey.isValidSignature(signature, for: Data("\(parts[0]).\(parts[1])".utf8)))
  }

  @Test func aTokenServesUntilShortlyBeforeItExpires() async throws {
    let source = try AppleToken(.test())
    let first = try #require(await source.token(now: Self.now))
    #expect(await source.token(now: Self.now + .seconds(1)) == first)
    #expect(await source.token(now: Self.now + .seconds(239)) == first)
    let second = try #require(await source.token(now: Self.now + .seconds(240)))
    #expect(second != first)
    #expect(await source.token(now: Self.now + .seconds(300)) == second)
    #expect(await source.token(now: Self.now - .seconds(1)) != second, "the clock was set back")
  }

  @Test func requestsThatStartTogetherShareOne() async throws {
    let source = try AppleToken(.test())
    let tokens = await withTaskGroup(of: Secret?.self) { group in
      for _ in 0..<100 { group.addTask { await source.token(now: Self.now) } }
      return await group.reduce(into: Set()) { $0.insert($1) }
    }
    #expect(tokens.count == 1 && tokens.first != .some(nil))
  }

  @Test func missingCredentialsAreNamedFirst() {
    var credentials = ServerAPICredentials.test()
    credentials.bundleId = ""
    #expect(throws: AppleKeyError.bundleIdMissing) { try AppleToken(credentials) }
    credentials.keyId = ""
    #expect(throws: AppleKeyError.keyIdMissing) { try AppleToken(credentials) }
    credentials.issuerId = ""
    #expect(throws: AppleKeyError.issuerIdMissing(.inAppPurchase)) { try AppleToken(credentials) }
    #expect(!String(reflecting: credentials).contains("PRIVATE KEY"))
  }

  @Test(arguments: [
    "", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----",
    P384.Signing.PrivateKey().pemRepresentation, P256.Signing.PrivateKey().publicKey.pemRepresentation,
  ])
  func otherKeyTypesAreRejectedImmediately(pem: String) {
    var credentials = ServerAPICredentials.test()
    credentials.privateKeyPEM = Secret(pem)
    #expect(throws: AppleKeyError.privateKeyUnreadable(.inAppPurchase)) { try AppleToken(credentials) }
  }

  private func fields(_ part: String) throws -> [String: Any] {
    try #require(try JSONSerialization.jsonObject(with: bytes(part)) as? [String: Any])
  }

  private func bytes(_ part: String) throws -> Data {
    Data(try #require(Base64Text.decodeURLSafe(Array(part.utf8)[...])))
  }
}

extension ServerAPICredentials {
  static let issuer = "57246542-96fe-1a63-e053-0824d011072a"

  static func test(key: P256.Signing.PrivateKey = .init(), bundleId: String = "com.example.game") -> Self {
    Self(issuerId: issuer, keyId: "2X9R4HXF34", privateKeyPEM: Secret(key.pemRepresentation), bundleId: bundleId)
  }
}
