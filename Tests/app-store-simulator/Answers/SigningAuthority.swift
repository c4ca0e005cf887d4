import Crypto
import Foundation
import SwiftASN1
import X509

/// Signs like Apple: root, intermediate and leaf, the last two with Apple's marker extensions. All are created at each
/// start; clients must trust the root file.
struct SigningAuthority: Sendable {
  private let root: Certificate
  private let leafKey: P256.Signing.PrivateKey
  private let header: String

  /// An authority with the same names and an untrusted root.
  static let stranger = Result { try SigningAuthority() }

  init() throws {
    let rootKey = Certificate.PrivateKey(P384.Signing.PrivateKey())
    let intermediateKey = Certificate.PrivateKey(P384.Signing.PrivateKey())
    leafKey = P256.Signing.PrivateKey()
    let rootName = try Self.name("Simulated Root CA")
    let intermediateName = try Self.name("Simulated Worldwide Developer Relations")
    root = try Self.issue(
      rootName, key: rootKey.publicKey, by: rootName, issuerKey: rootKey,
      extensions: Certificate.Extensions {
        Critical(BasicConstraints.isCertificateAuthority(maxPathLength: nil))
        Critical(KeyUsage(keyCertSign: true, cRLSign: true))
      })
    let intermediate = try Self.issue(
      intermediateName, key: intermediateKey.publicKey, by: rootName, issuerKey: rootKey,
      extensions: Certificate.Extensions {
        Critical(BasicConstraints.isCertificateAuthority(maxPathLength: 0))
        Critical(KeyUsage(keyCertSign: true, cRLSign: true))
        Self.marker([1, 2, 840, 113_635, 100, 6, 2, 1])
      })
    let leaf = try Self.issue(
      Self.name("Simulated Receipt Signing"), key: .init(leafKey.publicKey), by: intermediateName,
      issuerKey: intermediateKey,
      extensions: Certificate.Extensions {
        Critical(BasicConstraints.notCertificateAuthority)
        Critical(KeyUsage(digitalSignature: true))
        Self.marker([1, 2, 840, 113_635, 100, 6, 11, 1])
      })
    let chain = try [leaf, intermediate, root].map { Data(try $0.serializeAsPEM().derBytes).base64EncodedString() }
    header = try Self.json(["alg": "ES256", "x5c": chain]).base64URL
  }

  var rootPEM: String {
    get throws { try root.serializeAsPEM().pemString + "\n" }
  }

  /// A compact JWS (RFC 7515).
  func sign(_ payload: [String: Any]) throws -> String {
    let content = try header + "." + Self.json(payload).base64URL
    let signature = try leafKey.signature(for: Data(content.utf8))
    return content + "." + signature.rawRepresentation.base64URL
  }

  private static func json(_ fields: [String: Any]) throws -> Data {
    try JSONSerialization.data(withJSONObject: fields, options: [.sortedKeys, .withoutEscapingSlashes])
  }

  private static func name(_ commonName: String) throws -> DistinguishedName {
    try DistinguishedName {
      CommonName(commonName)
      OrganizationName("App Store Simulator")
    }
  }

  /// An extension that only has to exist; its value is an ASN.1 NULL.
  private static func marker(_ oid: ASN1ObjectIdentifier) -> Certificate.Extension {
    Certificate.Extension(oid: oid, critical: false, value: [0x05, 0x00])
  }

  /// Valid at any date of the simulated clock.
  private static func issue(
    _ subject: DistinguishedName, key: Certificate.PublicKey, by issuer: DistinguishedName,
    issuerKey: Certificate.PrivateKey, extensions: Certificate.Extensions
  ) throws -> Certificate {
    // RFC 5280 requires both key identifiers.
    var extensions = extensions
    let issuerId = SubjectKeyIdentifier(hash: issuerKey.publicKey).keyIdentifier
    try extensions.append(Certificate.Extension(SubjectKeyIdentifier(hash: key), critical: false))
    try extensions.append(Certificate.Extension(AuthorityKeyIdentifier(keyIdentifier: issuerId), critical: false))
    return try Certificate(
      version: .v3, serialNumber: Certificate.SerialNumber(),
      publicKey: key,
      notValidBefore: Date(timeIntervalSince1970: 946_684_800),
      notValidAfter: Date(timeIntervalSince1970: 2_524_608_000), issuer: issuer, subject: subject,
      signatureAlgorithm: .ecdsaWithSHA384, extensions: extensions, issuerPrivateKey: issuerKey)
  }
}

extension Data {
  var base64URL: String {
    base64EncodedString().replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
  }

  init?(base64URL text: some StringProtocol) {
    let standard = String(text).replacing("-", with: "+").replacing("_", with: "/")
    self.init(base64Encoded: standard + String(repeating: "=", count: (4 - standard.count % 4) % 4))
  }
}
