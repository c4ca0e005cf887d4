import Crypto
import CryptoExtras
import Foundation
import SwiftASN1
import X509

import AppStore

/// A test root, intermediate and leaf in Apple's form, and certificates that deviate from it.
struct TestCertificateAuthority: Sendable {
  struct Identity: Sendable {
    let certificate: Certificate
    let key: Certificate.PrivateKey

    var der: [UInt8] {
      get throws {
        var serializer = DER.Serializer()
        try serializer.serialize(certificate)
        return serializer.serializedBytes
      }
    }
  }

  /// The properties of a certificate, by default Apple's.
  struct Template: Sendable {
    var name: String
    var marker: ASN1ObjectIdentifier?
    var isAuthority = false
    var pathLength: Int?
    var usage: KeyUsage
    var notBefore = date(2021, 1)
    var notAfter = date(2036, 1)
    var criticalExtension: ASN1ObjectIdentifier?
    var signatureAlgorithm: Certificate.SignatureAlgorithm?
    var serialNumber: Certificate.SerialNumber?

    static let root = Template(
      name: "Test Root CA", isAuthority: true, usage: KeyUsage(keyCertSign: true), notBefore: date(2014, 4),
      notAfter: date(2039, 4))
    static let intermediate = Template(
      name: "Test Worldwide Developer Relations", marker: intermediateMarker, isAuthority: true, pathLength: 0,
      usage: KeyUsage(keyCertSign: true, cRLSign: true))
    static let leaf = Template(
      name: "Test Receipt Signing", marker: leafMarker, usage: KeyUsage(digitalSignature: true),
      notBefore: date(2025, 9), notAfter: date(2027, 10))

    func with(_ change: (inout Template) -> Void) -> Template {
      var template = self
      change(&template)
      return template
    }
  }

  static let leafMarker: ASN1ObjectIdentifier = [1, 2, 840, 113_635, 100, 6, 11, 1]
  static let intermediateMarker: ASN1ObjectIdentifier = [1, 2, 840, 113_635, 100, 6, 2, 1]

  let root: Identity
  let intermediate: Identity
  let leaf: Identity

  /// Elliptic curves, as Apple signs transactions.
  static let transactions: TestCertificateAuthority = {
    do { return try TestCertificateAuthority() } catch { preconditionFailure("\(error)") }
  }()

  /// RSA, as Apple signs app receipts; the leaf was already valid in 2015.
  static let receipts: TestCertificateAuthority = {
    do {
      return try TestCertificateAuthority(
        rootKey: rsaKey(0), intermediateKey: rsaKey(1), leafKey: rsaKey(2),
        intermediate: .intermediate.with { $0.notBefore = date(2015, 1) },
        leaf: .leaf.with { $0.notBefore = date(2015, 1) })
    } catch { preconditionFailure("\(error)") }
  }()

  init(
    rootKey: Certificate.PrivateKey = .init(P384.Signing.PrivateKey()),
    intermediateKey: Certificate.PrivateKey = .init(P384.Signing.PrivateKey()),
    leafKey: Certificate.PrivateKey = .init(P256.Signing.PrivateKey()),
    root: Template = .root, intermediate: Template = .intermediate, leaf: Template = .leaf
  ) throws {
    self.root = try Self.issue(root, key: rootKey, by: nil)
    self.intermediate = try Self.issue(intermediate, key: intermediateKey, by: self.root)
    self.leaf = try Self.issue(leaf, key: leafKey, by: self.intermediate)
  }

  var roots: TrustedRoots { get throws { try TrustedRoots(certificates: [root.der], pinned: false) } }

  /// The roots of both authorities, as on a machine with both of Apple's.
  static var bothRoots: TrustedRoots {
    get throws { try TrustedRoots(certificates: [transactions.root.der, receipts.root.der], pinned: false) }
  }

  var chain: [[UInt8]] { get throws { [try leaf.der, try intermediate.der, try root.der] } }

  /// An authority with the same root and keys, and another intermediate or leaf certificate.
  func with(intermediate template: Template? = nil, leaf: Template = .leaf) throws -> TestCertificateAuthority {
    let intermediate = try template.map { try Self.issue($0, key: self.intermediate.key, by: root) }
    let issuer = intermediate ?? self.intermediate
    return Self(root: root, intermediate: issuer, leaf: try Self.issue(leaf, key: self.leaf.key, by: issuer))
  }

  private init(root: Identity, intermediate: Identity, leaf: Identity) {
    (self.root, self.intermediate, self.leaf) = (root, intermediate, leaf)
  }

  func leaf(_ template: Template, key: Certificate.PrivateKey = .init(P256.Signing.PrivateKey())) throws -> Identity {
    try Self.issue(template, key: key, by: intermediate)
  }

  static func issue(_ template: Template, key: Certificate.PrivateKey, by issuer: Identity?) throws -> Identity {
    let name = try DistinguishedName {
      CommonName(template.name)
      OrganizationName("Night Audit Tests")
    }
    let constraints: BasicConstraints =
      template.isAuthority ? .isCertificateAuthority(maxPathLength: template.pathLength) : .notCertificateAuthority
    var extensions = try Certificate.Extensions {
      Critical(constraints)
      Critical(template.usage)
    }
    for (oid, isCritical) in [(template.marker, false), (template.criticalExtension, true)] {
      guard let oid else { continue }
      try extensions.append(Certificate.Extension(oid: oid, critical: isCritical, value: [0x05, 0x00]))
    }
    let issuerKey = issuer?.key ?? key
    let issuerId = SubjectKeyIdentifier(hash: issuerKey.publicKey).keyIdentifier
    try extensions.append(Certificate.Extension(SubjectKeyIdentifier(hash: key.publicKey), critical: false))
    try extensions.append(Certificate.Extension(AuthorityKeyIdentifier(keyIdentifier: issuerId), critical: false))
    let certificate = try Certificate(
      version: .v3, serialNumber: template.serialNumber ?? Certificate.SerialNumber(), publicKey: key.publicKey,
      notValidBefore: template.notBefore, notValidAfter: template.notAfter,
      issuer: issuer?.certificate.subject ?? name, subject: name,
      signatureAlgorithm: template.signatureAlgorithm ?? defaultAlgorithm(issuerKey), extensions: extensions,
      issuerPrivateKey: issuerKey)
    return Identity(certificate: certificate, key: key)
  }

  static func rsaKey(_ index: Int) throws -> Certificate.PrivateKey {
    Certificate.PrivateKey(try RecordedKeys.rsa.get()[index])
  }

  private static func defaultAlgorithm(_ key: Certificate.PrivateKey) -> Certificate.SignatureAlgorithm {
    P384.Signing.PublicKey(key.publicKey) != nil
      ? .ecdsaWithSHA384 : P256.Signing.PublicKey(key.publicKey) != nil ? .ecdsaWithSHA256 : .sha256WithRSAEncryption
  }
}

func date(_ year: Int, _ month: Int) -> Date {
  var calendar = Calendar(identifier: .gregorian)
  calendar.timeZone = .gmt
  return calendar.date(from: DateComponents(year: year, month: month, day: 1)) ?? .distantPast
}

func milliseconds(_ year: Int, _ month: Int) -> Int64 { Int64(date(year, month).timeIntervalSince1970 * 1_000) }
