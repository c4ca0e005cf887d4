import Crypto
import CryptoExtras
import Foundation
import Reconciliation
import SwiftASN1
import X509

/// Verifies old transaction receipts: RSA with SHA-1 over the version byte and the purchase information, by a leaf that
/// came along, judged at the purchase date.
///
/// Which side the purchase is from is not signed: a sandbox purchase is told by its transaction id.
package struct OldReceiptVerifier: Sendable {
  private let roots: [Certificate]
  private let intermediates: [Certificate]

  /// A verifier that trusts `roots` alone.
  ///
  /// - Parameter intermediates: DER of certificates between leaves and roots. They do not travel with the receipts; Apple's
  ///   one is known here, and is believed only where it leads to a root.
  package init(roots: TrustedRoots, intermediates: [[UInt8]] = []) {
    self.roots = roots.ofAppReceipts
    self.intermediates = Self.knownAuthorities + intermediates.compactMap { try? Certificate(derEncoded: $0) }
  }

  /// What a receipt's signature proves.
  package enum Finding: Hashable, Sendable {
    /// Apple signed it.
    case authentic
    /// The certificate is one of Apple's for this purpose, and did not sign this content.
    case forged
    /// It cannot be judged here: a form of signature that is not known, or a certificate that leads to no root of ours.
    case undecided
  }

  /// Judges the signature of a receipt.
  package func verify(_ receipt: OldTransactionReceipt) -> Finding {
    guard let signature = receipt.signature.flatMap(SignatureBlob.init), let date = receipt.purchaseDate,
      let leaf = SmallCertificate(signature.certificate), isTrusted(leaf, at: date)
    else { return .undecided }
    guard
      let key = try? _RSA.Signing.PublicKey(unsafeDERRepresentation: leaf.publicKey),
      key.keySizeInBits == signature.signature.count * 8
    else { return .undecided }
    let digest = Insecure.SHA1.hash(data: [signature.version] + receipt.purchaseInfo)
    let isValid = key.isValidSignature(
      _RSA.Signing.RSASignature(rawRepresentation: signature.signature), for: digest, padding: .insecurePKCS1v1_5)
    if isValid { return .authentic }
    // Of other versions nobody here knows what they sign.
    return signature.version == SignatureBlob.knownVersion ? .forged : .undecided
  }

  /// Whether the leaf may sign receipts, and leads to one of our roots through certificates that were valid then.
  private func isTrusted(_ leaf: SmallCertificate, at date: Instant) -> Bool {
    guard leaf.hasReceiptMarker, leaf.isValid(at: date) else { return false }
    if roots.contains(where: { leaf.isIssued(by: $0) && Self.isValid($0, at: date) }) { return true }
    return intermediates.contains { intermediate in
      guard leaf.isIssued(by: intermediate), Self.isValid(intermediate, at: date),
        intermediate.extensions[oid: Self.intermediateMarker] != nil,
        case .isCertificateAuthority = try? intermediate.extensions.basicConstraints
      else { return false }
      return roots.contains { root in
        intermediate.issuer.isSame(as: root.subject) && Self.isValid(root, at: date)
          && root.publicKey.isValidSignature(intermediate.signature, for: intermediate)
      }
    }
  }

  private static func isValid(_ certificate: Certificate, at date: Instant) -> Bool {
    let seconds = Double(date.seconds)
    return certificate.notValidBefore.timeIntervalSince1970 <= seconds
      && seconds <= certificate.notValidAfter.timeIntervalSince1970
  }

  /// "Apple iTunes Store Certification Authority".
  private static let intermediateMarker: ASN1ObjectIdentifier = [1, 2, 840, 113_635, 100, 6, 2, 2]

  /// Apple's certificate "Apple iTunes Store Certification Authority", 2009-05-19 to 2016-05-18, SHA-256
  /// 447ad65484610f20fdc33804c8597a1e208fbe4ef9c5653485cc7d3df730c016.
  static let iTunesStoreAuthority =
    Base64Text.decodeReceipt(
      """
      MIIECzCCAvOgAwIBAgIBGjANBgkqhkiG9w0BAQUFADBiMQswCQYDVQQGEwJVUzETMBEGA1UEChMKQXBwbGUgSW5jLjEmMCQGA1UECxMdQXBwbGUg
      Q2VydGlmaWNhdGlvbiBBdXRob3JpdHkxFjAUBgNVBAMTDUFwcGxlIFJvb3QgQ0EwHhcNMDkwNTE5MTgzMTMwWhcNMTYwNTE4MTgzMTMwWjB/MQsw
      CQYDVQQGEwJVUzETMBEGA1UECgwKQXBwbGUgSW5jLjEmMCQGA1UECwwdQXBwbGUgQ2VydGlmaWNhdGlvbiBBdXRob3JpdHkxMzAxBgNVBAMMKkFw
      cGxlIGlUdW5lcyBTdG9yZSBDZXJ0aWZpY2F0aW9uIEF1dGhvcml0eTCCASIwDQYJKoZIhvcNAQEBBQADggEPADCCAQoCggEBAKS8rzKUQz4LvDeH
      zWOJ8szZviBNWrT+h2fSmt4aVJ2i89+H5EzLkxF4oDCPNEHB075mbUdsmLjsetXJ3aXk6sZw9DXQkfez2AoRmas6Yjq9e/RWT9ufJJNRUHwg1WZN
      ZvMYpBOWIhb9Maf0OWab+2JpXEuflKhL6OxbZFoYeYoWdWNCpEnZjDPerXvWOQT04p0KaYzrSxIoSzRIB5sOWfkfYrADnza4TqPTdVnU8zoFysUz
      O/jABgkIk9vnTb8R81IspRY1FfNBAs0C0fz1+MWEvWNqhta2mfaGrl/9A9Qoilpdr7xldNH3GsOSCPQcrWnoAkwOlRUHvL5qb8GzraECAwEAAaOB
      rjCBqzAOBgNVHQ8BAf8EBAMCAYYwDwYDVR0TAQH/BAUwAwEB/zAdBgNVHQ4EFgQUNh3o4p2C0gEYtTJrDtdDC5FYQzowHwYDVR0jBBgwFoAUK9Bp
      R5R2Cf70a40uQKb3R01/CF4wNgYDVR0fBC8wLTAroCmgJ4YlaHR0cDovL3d3dy5hcHBsZS5jb20vYXBwbGVjYS9yb290LmNybDAQBgoqhkiG92Nk
      BgICBAIFADANBgkqhkiG9w0BAQUFAAOCAQEAdaaQ5pqn22VwpgmTbwjfLNvpKI1AG1deoOr07BNlG3FKTdyASE/y5an7hWy3Hp3b9BhIEHkX6sM9
      h9i0eW0UUK3Svz1O/A3ixQOUdYBzTaWhkf4c3hUXrIlxKm8PZwrTnDChaPvPcBfK2UD8+Bu/zrDErvRKLamZhwZCCYYiaoRAOfS7rFYY95ocAYFc
      jG5B8l0ZLBccSUbZHH6TEhPIZ5nC6oPjoowOuDsq3xy/S4tvGrjul2dK2Kuvi6TaXIceILjF87HEmKI3+J7GmmulrfZ4lg6CjwRGHLKl/ZowUSj9
      UgQVA9U8rf72eODqNe9ltSF226Tvy3LvVGsBDcfdGg==
      """.utf8) ?? []

  static let knownAuthorities = [iTunesStoreAuthority].compactMap { try? Certificate(derEncoded: $0) }
}

/// `signature` of an old transaction receipt: one byte version, an RSA signature of 128 bytes, four bytes length, and that
/// many bytes of certificate.
private struct SignatureBlob {
  /// Apple's, in every receipt of this form.
  static let knownVersion: UInt8 = 2

  let version: UInt8
  let signature: ArraySlice<UInt8>
  let certificate: ArraySlice<UInt8>

  /// Nil for other forms.
  init?(_ bytes: [UInt8]) {
    var rest = bytes[...]
    guard let version = rest.popFirst(), rest.count > 132 else { return nil }
    self.version = version
    signature = rest.prefix(128)
    rest = rest.dropFirst(128)
    let length = rest.prefix(4).reduce(0) { $0 << 8 | Int($1) }
    rest = rest.dropFirst(4)
    guard length <= DecodingLimits.certificateLength, length <= rest.count else { return nil }
    certificate = rest.prefix(length)
  }
}

/// An X.509 certificate with an RSA key of 1,024 bits, which the libraries refuse as too short for anything new
/// (RFC 5280, 4.1).
private struct SmallCertificate {
  private let signedBytes: ArraySlice<UInt8>
  private let signature: ArraySlice<UInt8>
  private let issuer: ArraySlice<UInt8>
  private let notBefore: Instant
  private let notAfter: Instant
  /// DER of `SubjectPublicKeyInfo`.
  let publicKey: ArraySlice<UInt8>
  /// Whether it was issued to sign receipts: 1.2.840.113635.100.6.5.1.
  let hasReceiptMarker: Bool

  init?(_ bytes: ArraySlice<UInt8>) {
    guard var parts = BERElement(bytes)?.children, let content = parts.next(BERElement.sequence),
      let algorithm = parts.next(BERElement.sequence), algorithm.encoded.elementsEqual(Self.sha1WithRSA),
      let signature = parts.next(BERElement.bitString), signature.content.first == 0
    else { return nil }
    var fields = content.children
    _ = fields.next(BERElement.context(0))
    guard fields.next(BERElement.integer) != nil, fields.next(BERElement.sequence) != nil,
      let issuer = fields.next(BERElement.sequence), var validity = fields.next(BERElement.sequence)?.children,
      let notBefore = validity.next().flatMap(Self.date), let notAfter = validity.next().flatMap(Self.date),
      fields.next(BERElement.sequence) != nil, let publicKey = fields.next(BERElement.sequence)
    else { return nil }
    var hasMarker = false
    if let list = fields.next(BERElement.context(3)).flatMap({ BERElement($0.content) }) {
      var extensions = list.children
      while let item = extensions.next(BERElement.sequence) {
        var item = item.children
        if item.next(BERElement.objectIdentifier)?.content.elementsEqual(Self.marker) == true { hasMarker = true }
      }
    }
    signedBytes = content.encoded
    self.signature = signature.content.dropFirst()
    self.issuer = issuer.encoded
    self.notBefore = notBefore
    self.notAfter = notAfter
    self.publicKey = publicKey.encoded
    hasReceiptMarker = hasMarker
  }

  func isValid(at date: Instant) -> Bool { notBefore <= date && date <= notAfter }

  func isIssued(by authority: Certificate) -> Bool {
    guard let issuer = try? DistinguishedName(derEncoded: DER.parse(issuer)), issuer.isSame(as: authority.subject)
    else { return false }
    return authority.publicKey.isValidSignature(signature, for: signedBytes, signatureAlgorithm: .sha1WithRSAEncryption)
  }

  private static let utcTime: UInt8 = 0x17
  private static let generalizedTime: UInt8 = 0x18
  /// 1.2.840.113635.100.6.5.1
  private static let marker: [UInt8] = [0x2A, 0x86, 0x48, 0x86, 0xF7, 0x63, 0x64, 0x06, 0x05, 0x01]
  /// `AlgorithmIdentifier` of 1.2.840.113549.1.1.5.
  private static let sha1WithRSA: [UInt8] = [
    0x30, 0x0D, 0x06, 0x09, 0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x01, 0x05, 0x05, 0x00,
  ]

  /// `YYMMDDhhmmssZ`, years from 1950, or `YYYYMMDDhhmmssZ` (RFC 5280, 4.1.2.5).
  private static func date(_ element: BERElement) -> Instant? {
    guard let text = String(validating: element.content, as: UTF8.self) else { return nil }
    let full: String
    switch (element.identifier, text.utf8.count) {
    case (utcTime, 13): full = (text < "50" ? "20" : "19") + text
    case (generalizedTime, 15): full = text
    default: return nil
    }
    let pairs = stride(from: 4, to: 14, by: 2).map { full.dropFirst($0).prefix(2) }
    return Instant(rfc3339: "\(full.prefix(4))-\(pairs[0])-\(pairs[1])T\(pairs[2]):\(pairs[3]):\(pairs[4])Z")
  }
}
