extension TrustedRoots {
  /// One of Apple's roots, known by the fingerprint of its DER form (https://www.apple.com/certificateauthority/).
  package struct Pin: Hashable, Sendable {
    /// The certificate's common name.
    package let name: String
    /// SHA-256 of the DER form, 64 lower-case hexadecimal digits.
    package let fingerprint: String
    /// Where Apple publishes it, as DER.
    package let address: String

    /// What Apple calls the file.
    package var fileName: String { String(address[(address.lastIndex(of: "/") ?? address.startIndex)...].dropFirst()) }
  }

  /// The roots that Apple signs with: G3 for signed transactions, the older RSA root for app receipts.
  package static let applePins = [
    Pin(
      name: "Apple Root CA - G3",
      fingerprint: "63343abfb89a6a03ebb57e9b3f5fa7be7c4f5c756f3017b3a8c488c3653e9179",
      address: "https://www.apple.com/certificateauthority/AppleRootCA-G3.cer"),
    Pin(
      name: "Apple Root CA",
      fingerprint: "b0b1730ecbc7ff4505142c49f1295e6eda6bcaed7e2c68c5be91b5a11001f024",
      address: "https://www.apple.com/appleca/AppleIncRootCertificate.cer"),
  ]
}

extension TrustedRoots.Pin {
  /// Why something is not the pinned certificate.
  package enum Mismatch: Error, Hashable, Sendable, CustomStringConvertible {
    /// Longer than a certificate.
    case tooLong
    /// Not one certificate as DER or PEM.
    case noCertificate
    /// Another certificate; its SHA-256.
    case otherCertificate(fingerprint: String)

    package var description: String {
      switch self {
      case .tooLong: "it is too large for a certificate"
      case .noCertificate: "it is no certificate, neither DER nor PEM"
      case .otherCertificate(let fingerprint): "it is another certificate, whose SHA-256 is \(fingerprint)"
      }
    }
  }

  /// The pinned certificate in DER form, from content that must be it and nothing else, as DER or PEM.
  ///
  /// Where the content comes from needs no trust: only the certificate with this fingerprint passes.
  package func certificate(in content: [UInt8]) throws(Mismatch) -> [UInt8] {
    // PEM is a third longer than DER, and may have words around it.
    guard content.count <= DecodingLimits.certificateLength * 2 else { throw .tooLong }
    guard let certificates = TrustedRoots.certificates(in: content), certificates.count == 1 else {
      throw .noCertificate
    }
    let fingerprint = TrustedRoots.fingerprint(certificates[0])
    guard fingerprint == self.fingerprint else { throw .otherCertificate(fingerprint: fingerprint) }
    return certificates[0]
  }
}
