extension TrustedRoots {
  /// One of Apple's root certificates, pinned by fingerprint (https://www.apple.com/certificateauthority/).
  package struct PinnedRoot: Hashable, Sendable {
    package let name: String
    /// SHA-256 of the DER form, 64 lower-case hexadecimal digits.
    package let fingerprint: String
    package let address: String

    package var fileName: String { String(address[(address.lastIndex(of: "/") ?? address.startIndex)...].dropFirst()) }
  }

  /// Apple's signing roots: G3 for signed transactions, the older RSA root for app receipts.
  package static let applePins = [
    PinnedRoot(
      name: "Apple Root CA - G3",
      fingerprint: "63343abfb89a6a03ebb57e9b3f5fa7be7c4f5c756f3017b3a8c488c3653e9179",
      address: "https://www.apple.com/certificateauthority/AppleRootCA-G3.cer"),
    PinnedRoot(
      name: "Apple Root CA",
      fingerprint: "b0b1730ecbc7ff4505142c49f1295e6eda6bcaed7e2c68c5be91b5a11001f024",
      address: "https://www.apple.com/appleca/AppleIncRootCertificate.cer"),
  ]
}

extension TrustedRoots.PinnedRoot {
  package enum Mismatch: Error, Hashable, Sendable, CustomStringConvertible {
    case tooLong
    case noCertificate
    case otherCertificate(fingerprint: String)

    package var description: String {
      switch self {
      case .tooLong: "it is too large for a certificate"
      case .noCertificate: "it is not a certificate, neither DER nor PEM"
      case .otherCertificate(let fingerprint): "it is another certificate, whose SHA-256 is \(fingerprint)"
      }
    }
  }

  /// Returns the pinned certificate as DER. The source needs no trust, because only that certificate passes.
  package func certificate(in content: [UInt8]) throws(Mismatch) -> [UInt8] {
    // PEM is a third longer than DER, and may have text around it.
    guard content.count <= DecodingLimits.certificateLength * 2 else { throw .tooLong }
    guard let certificates = TrustedRoots.certificates(in: content), certificates.count == 1 else {
      throw .noCertificate
    }
    let fingerprint = TrustedRoots.fingerprint(certificates[0])
    guard fingerprint == self.fingerprint else { throw .otherCertificate(fingerprint: fingerprint) }
    return certificates[0]
  }
}
