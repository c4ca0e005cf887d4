import Foundation
import SwiftASN1
import X509

/// A root, an intermediate and a leaf like Apple's, the last two with Apple's marker extensions. Clients must trust the
/// root.
struct CertificateChain: Sendable {
  let root: Certificate
  let intermediate: Certificate
  let leaf: Certificate

  /// - Parameter keys: of root, intermediate and leaf.
  init(
    root rootName: String, leaf leafName: String, keys: [Certificate.PrivateKey],
    algorithm: Certificate.SignatureAlgorithm
  ) throws {
    root = try Self.issue(rootName, keys[0], by: nil, keys[0], algorithm)
    intermediate = try Self.issue(
      "Simulated Worldwide Developer Relations", keys[1], by: root, keys[0], algorithm,
      marker: [1, 2, 840, 113_635, 100, 6, 2, 1])
    leaf = try Self.issue(
      leafName, keys[2], by: intermediate, keys[1], algorithm, isAuthority: false,
      marker: [1, 2, 840, 113_635, 100, 6, 11, 1])
  }

  var rootPEM: String {
    get throws { try root.serializeAsPEM().pemString + "\n" }
  }

  /// The certificates, the leaf first.
  var der: [[UInt8]] {
    get throws { try [leaf, intermediate, root].map { try $0.serializeAsPEM().derBytes } }
  }

  /// Valid at any date of the simulated clock.
  private static func issue(
    _ name: String, _ key: Certificate.PrivateKey, by issuer: Certificate?, _ issuerKey: Certificate.PrivateKey,
    _ algorithm: Certificate.SignatureAlgorithm, isAuthority: Bool = true, marker: ASN1ObjectIdentifier? = nil
  ) throws -> Certificate {
    let subject = try DistinguishedName {
      CommonName(name)
      OrganizationName("App Store Simulator")
    }
    var extensions = try Certificate.Extensions {
      Critical(isAuthority ? BasicConstraints.isCertificateAuthority(maxPathLength: nil) : .notCertificateAuthority)
      Critical(isAuthority ? KeyUsage(keyCertSign: true, cRLSign: true) : KeyUsage(digitalSignature: true))
    }
    // RFC 5280 requires both key identifiers.
    let issuerId = SubjectKeyIdentifier(hash: issuerKey.publicKey).keyIdentifier
    try extensions.append(Certificate.Extension(SubjectKeyIdentifier(hash: key.publicKey), critical: false))
    try extensions.append(Certificate.Extension(AuthorityKeyIdentifier(keyIdentifier: issuerId), critical: false))
    // A marker only has to exist; its value is an ASN.1 NULL.
    if let marker { try extensions.append(Certificate.Extension(oid: marker, critical: false, value: [0x05, 0x00])) }
    return try Certificate(
      version: .v3, serialNumber: Certificate.SerialNumber(), publicKey: key.publicKey,
      notValidBefore: Date(timeIntervalSince1970: 946_684_800),
      notValidAfter: Date(timeIntervalSince1970: 2_524_608_000), issuer: issuer?.subject ?? subject, subject: subject,
      signatureAlgorithm: algorithm, extensions: extensions, issuerPrivateKey: issuerKey)
  }
}
