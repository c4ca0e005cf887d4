import Crypto
import Foundation
import X509

/// Builds a JWS in parts, so that tests can break each.
struct TestJWS {
  var algorithm = "ES256"
  var chain: [[UInt8]]
  var payload: [String: any Sendable]
  /// The signing key, independent of the chain.
  var key: Certificate.PrivateKey

  init(
    _ authority: TestCertificateAuthority = .transactions, payload: [String: any Sendable] = TestJWS.transaction
  ) throws {
    chain = try authority.chain
    key = authority.leaf.key
    self.payload = payload
  }

  static let transaction: [String: any Sendable] = [
    "transactionId": "2000000123456789", "originalTransactionId": "2000000123456780",
    "webOrderLineItemId": "2000000000123", "bundleId": "com.example.game", "productId": "gems.100",
    "purchaseDate": milliseconds(2026, 6), "originalPurchaseDate": milliseconds(2026, 5), "quantity": 2,
    "type": "Consumable", "inAppOwnershipType": "PURCHASED", "signedDate": milliseconds(2026, 6) + 250,
    "environment": "Production", "transactionReason": "PURCHASE", "storefront": "USA", "storefrontId": "143441",
    "price": 1_990, "currency": "USD", "appTransactionId": "704897469903783919",
    "appAccountToken": "F7A1B9A0-6B0C-4C0E-9B43-1D2F3C4B5A69",
  ]

  /// Renewal information in billing retry.
  static let renewalInfo: [String: any Sendable] = [
    "originalTransactionId": "2000000123456780", "autoRenewProductId": "pass.month", "productId": "pass.month",
    "autoRenewStatus": 1, "isInBillingRetryPeriod": false, "expirationIntent": 2, "environment": "Production",
    "gracePeriodExpiresDate": milliseconds(2026, 7), "signedDate": milliseconds(2026, 6), "renewalPrice": 4_990,
    "currency": "EUR",
  ]

  static func transaction(_ change: (inout [String: any Sendable]) -> Void) -> [String: any Sendable] {
    var payload = transaction
    change(&payload)
    return payload
  }

  var headerText: String {
    get throws {
      let header: [String: Any] = ["alg": algorithm, "x5c": chain.map { Data($0).base64EncodedString() }]
      return try Self.json(header)
    }
  }

  var text: String { get throws { try Self.signed(header: headerText, payload: Self.json(payload), key: key) } }

  static func signed(header: String, payload: String, key: Certificate.PrivateKey) throws -> String {
    let content = base64URL(Array(header.utf8)) + "." + base64URL(Array(payload.utf8))
    return try content + "." + base64URL(signature(of: content, key: key))
  }

  static func json(_ object: [String: Any]) throws -> String {
    let data = try JSONSerialization.data(withJSONObject: object, options: [.sortedKeys, .withoutEscapingSlashes])
    return String(decoding: data, as: UTF8.self)
  }

  static func base64URL(_ bytes: some Sequence<UInt8>) -> String {
    Data(bytes).base64EncodedString().replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
  }

  // The raw `r || s` form of elliptic curves (RFC 7518 section 3.4); other keys' signatures are unchanged.
  static func signature(of content: String, key: Certificate.PrivateKey) throws -> [UInt8] {
    let algorithm: Certificate.SignatureAlgorithm =
      P256.Signing.PublicKey(key.publicKey) != nil
      ? .ecdsaWithSHA256 : P384.Signing.PublicKey(key.publicKey) != nil ? .ecdsaWithSHA384 : .sha256WithRSAEncryption
    let bytes = Array(try key.sign(bytes: Data(content.utf8), signatureAlgorithm: algorithm).rawRepresentation)
    guard algorithm == .ecdsaWithSHA256 else { return bytes }
    return Array(try P256.Signing.ECDSASignature(derRepresentation: bytes).rawRepresentation)
  }
}
