import Crypto
import CryptoExtras
import Foundation
import SwiftASN1
import X509

/// Signs app receipts with RSA through an intermediate, like Apple. Keys are created on first use.
struct ReceiptAuthority: Sendable {
  private let root: Certificate
  private let intermediate: Certificate
  private let leaf: Certificate
  private let leafKey: _RSA.Signing.PrivateKey

  init() throws {
    let rootKey = try _RSA.Signing.PrivateKey(keySize: .bits2048)
    let intermediateKey = try _RSA.Signing.PrivateKey(keySize: .bits2048)
    leafKey = try _RSA.Signing.PrivateKey(keySize: .bits2048)
    let rootName = try Self.name("Simulated Receipt Root CA")
    let intermediateName = try Self.name("Simulated Worldwide Developer Relations")
    root = try Self.issue(
      rootName, rootKey.publicKey, by: rootName, rootKey, isAuthority: true, marker: nil)
    intermediate = try Self.issue(
      intermediateName, intermediateKey.publicKey, by: rootName, rootKey, isAuthority: true,
      marker: [1, 2, 840, 113_635, 100, 6, 2, 1])
    leaf = try Self.issue(
      Self.name("Simulated App Receipt Signing"), leafKey.publicKey, by: intermediateName, intermediateKey,
      isAuthority: false, marker: [1, 2, 840, 113_635, 100, 6, 11, 1])
  }

  var rootPEM: String {
    get throws { try root.serializeAsPEM().pemString + "\n" }
  }

  /// A PKCS#7 container (RFC 2315, 7 and 9.1), signed without attributes like Apple's.
  func appReceipt(content: [UInt8]) throws -> [UInt8] {
    let signature = try leafKey.signature(for: SHA256.hash(data: content), padding: .insecurePKCS1v1_5)
    let digest = DER.sequence(DER.identifier([0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, 0x01]), DER.null)
    let rsa = DER.sequence(DER.identifier([0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x01, 0x01]), DER.null)
    var leafName = SwiftASN1.DER.Serializer()
    try leafName.serialize(leaf.issuer)
    try leafName.serialize(leaf.serialNumber.bytes)
    let signer = DER.sequence(
      DER.integer(1), DER.sequence(leafName.serializedBytes), digest, rsa, DER.octets(signature.rawRepresentation))
    let chain = try [leaf, intermediate, root].flatMap { try $0.serializeAsPEM().derBytes }
    let signed = DER.sequence(
      DER.integer(1), DER.set([digest]),
      DER.sequence(DER.contentType(1), DER.context(0, DER.octets(content))), DER.context(0, chain), DER.set([signer]))
    return DER.sequence(DER.contentType(2), DER.context(0, signed))
  }

  private static func name(_ commonName: String) throws -> DistinguishedName {
    try DistinguishedName {
      CommonName(commonName)
      OrganizationName("App Store Simulator")
    }
  }

  /// Valid at any date of the simulated clock.
  private static func issue(
    _ subject: DistinguishedName, _ key: _RSA.Signing.PublicKey, by issuer: DistinguishedName,
    _ issuerKey: _RSA.Signing.PrivateKey, isAuthority: Bool, marker: ASN1ObjectIdentifier?
  ) throws -> Certificate {
    var extensions = try Certificate.Extensions {
      Critical(
        isAuthority ? BasicConstraints.isCertificateAuthority(maxPathLength: nil) : .notCertificateAuthority)
      Critical(isAuthority ? KeyUsage(keyCertSign: true, cRLSign: true) : KeyUsage(digitalSignature: true))
    }
    let (publicKey, issuerPublicKey) = (Certificate.PublicKey(key), Certificate.PublicKey(issuerKey.publicKey))
    let issuerId = SubjectKeyIdentifier(hash: issuerPublicKey).keyIdentifier
    try extensions.append(Certificate.Extension(SubjectKeyIdentifier(hash: publicKey), critical: false))
    try extensions.append(Certificate.Extension(AuthorityKeyIdentifier(keyIdentifier: issuerId), critical: false))
    if let marker { try extensions.append(Certificate.Extension(oid: marker, critical: false, value: [0x05, 0x00])) }
    return try Certificate(
      version: .v3, serialNumber: Certificate.SerialNumber(),
      publicKey: publicKey,
      notValidBefore: Date(timeIntervalSince1970: 946_684_800),
      notValidAfter: Date(timeIntervalSince1970: 2_524_608_000), issuer: issuer, subject: subject,
      signatureAlgorithm: .sha256WithRSAEncryption, extensions: extensions,
      issuerPrivateKey: Certificate.PrivateKey(issuerKey))
  }
}
