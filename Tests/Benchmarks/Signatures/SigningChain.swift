import Crypto
import Foundation
import SwiftASN1
import X509

struct SigningChain {
  let key = P256.Signing.PrivateKey()
  let root: [UInt8]
  private let header: String

  init() throws {
    let keys = (0..<2).map { _ in Certificate.PrivateKey(P384.Signing.PrivateKey()) }
    let names = try ["Root", "Intermediate", "Leaf"].map { name in try DistinguishedName { CommonName(name) } }
    let issued = try [
      Self.issue(names[0], keys[0].publicKey, by: names[0], keys[0], marker: nil, isAuthority: true),
      Self.issue(
        names[1], keys[1].publicKey, by: names[0], keys[0], marker: [1, 2, 840, 113_635, 100, 6, 2, 1],
        isAuthority: true),
      Self.issue(
        names[2], .init(key.publicKey), by: names[1], keys[1], marker: [1, 2, 840, 113_635, 100, 6, 11, 1],
        isAuthority: false),
    ].map { try $0.serializeAsPEM().derBytes }
    root = issued[0]
    let chain = issued.reversed().map { Data($0).base64EncodedString() }
    header = try Self.part(["alg": "ES256", "x5c": chain])
  }

  func transaction(number: Int) throws -> String {
    let content =
      try header + "."
      + Self.part([
        "transactionId": "\(2_000_000_000_000_000 + number)", "originalTransactionId": "2000000123456780",
        "bundleId": "com.example.game", "productId": "gems.100", "purchaseDate": 1_780_272_000_000,
        "originalPurchaseDate": 1_780_272_000_000, "quantity": 1, "type": "Consumable",
        "inAppOwnershipType": "PURCHASED",
        "signedDate": 1_780_272_000_250, "environment": "Production", "transactionReason": "PURCHASE",
        "storefront": "USA",
        "storefrontId": "143441", "price": 1_990, "currency": "USD", "appTransactionId": "704897469903783919",
        "appAccountToken": "f7a1b9a0-6b0c-4c0e-9b43-1d2f3c4b5a69",
      ])
    return try content + "." + key.signature(for: Data(content.utf8)).rawRepresentation.base64URL
  }

  private static func part(_ fields: [String: Any]) throws -> String {
    try JSONSerialization.data(withJSONObject: fields, options: [.sortedKeys, .withoutEscapingSlashes]).base64URL
  }

  private static func issue(
    _ subject: DistinguishedName, _ key: Certificate.PublicKey, by issuer: DistinguishedName,
    _ issuerKey: Certificate.PrivateKey, marker: ASN1ObjectIdentifier?, isAuthority: Bool
  ) throws -> Certificate {
    var extensions = try Certificate.Extensions {
      Critical(isAuthority ? BasicConstraints.isCertificateAuthority(maxPathLength: nil) : .notCertificateAuthority)
      Critical(KeyUsage(digitalSignature: !isAuthority, keyCertSign: isAuthority))
    }
    if let marker { try extensions.append(Certificate.Extension(oid: marker, critical: false, value: [0x05, 0x00])) }
    return try Certificate(
      version: .v3, serialNumber: Certificate.SerialNumber(), publicKey: key,
      notValidBefore: Date(timeIntervalSince1970: 1_600_000_000),
      notValidAfter: Date(timeIntervalSince1970: 2_000_000_000),
      issuer: issuer, subject: subject, signatureAlgorithm: .ecdsaWithSHA384, extensions: extensions,
      issuerPrivateKey: issuerKey)
  }
}

extension Data {
  /// base64url without padding (RFC 4648 section 5).
  var base64URL: String {
    base64EncodedString().replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
  }

  init(base64URL text: Substring) throws {
    let standard = text.replacing("-", with: "+").replacing("_", with: "/")
    let padding = String(repeating: "=", count: (4 - standard.count % 4) % 4)
    guard let data = Data(base64Encoded: standard + padding) else { throw CocoaError(.coderInvalidValue) }
    self = data
  }
}
