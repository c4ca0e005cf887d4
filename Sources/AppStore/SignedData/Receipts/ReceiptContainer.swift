import X509

/// The CMS `SignedData` of an app receipt (RFC 5652 section 5), reduced to Apple's form. It has one signer, no signed
/// attributes, the signature directly over the content.
struct ReceiptContainer: Sendable {
  let content: ArraySlice<UInt8>
  let certificates: [ArraySlice<UInt8>]
  let signature: Signature

  enum Signature: Sendable {
    case supported(Signer)
    case unsupported(String)
  }

  struct Signer: Sendable {
    /// The content of an INTEGER: a leading zero byte if the next byte has its high bit set (X.690, 8.3).
    let serialNumber: ArraySlice<UInt8>
    let algorithm: Certificate.SignatureAlgorithm
    let signature: ArraySlice<UInt8>
  }

  init(_ bytes: [UInt8]) throws(SignedDataRefusal) {
    guard let info = BERElement(bytes[...]), info.identifier == BERElement.sequence else { throw .payloadUnreadable }
    var outer = info.children
    guard outer.next(BERElement.objectIdentifier)?.content.elementsEqual(Self.signedData) == true,
      let data = outer.next(BERElement.context(0)).flatMap({ BERElement($0.content) }), outer.isAtEnd,
      data.identifier == BERElement.sequence
    else { throw .payloadUnreadable }

    var fields = data.children
    guard fields.next(BERElement.integer) != nil, fields.next(BERElement.set) != nil,
      let encapsulated = fields.next(BERElement.sequence), let content = Self.content(encapsulated)
    else { throw .payloadUnreadable }
    self.content = content
    certificates = try Self.certificates(fields.next(BERElement.context(0)))
    _ = fields.next(BERElement.context(1))
    guard var signers = fields.next(BERElement.set)?.children, fields.isAtEnd,
      let signer = signers.next(BERElement.sequence)
    else { throw .payloadUnreadable }
    signature = try signers.isAtEnd ? Signature(signer) : .unsupported("several signers")
  }

  private static func content(_ encapsulated: BERElement) -> ArraySlice<UInt8>? {
    var fields = encapsulated.children
    guard fields.next(BERElement.objectIdentifier)?.content.elementsEqual(plainData) == true,
      let explicit = fields.next(BERElement.context(0)), fields.isAtEnd
    else { return nil }
    return BERElement(explicit.content)?.octets()
  }

  private static func certificates(_ field: BERElement?) throws(SignedDataRefusal) -> [ArraySlice<UInt8>] {
    var certificates: [ArraySlice<UInt8>] = []
    guard var reader = field?.children else { return certificates }
    while let certificate = reader.next() {
      guard certificates.count < DecodingLimits.receiptCertificates,
        certificate.encoded.count <= DecodingLimits.certificateLength
      else { throw .tooLarge }
      // Other choices of the set are no X.509 certificates (RFC 5652, 10.2.2).
      if certificate.identifier == BERElement.sequence { certificates.append(certificate.encoded) }
    }
    guard reader.isAtEnd else { throw .payloadUnreadable }
    return certificates
  }

  /// 1.2.840.113549.1.7.2
  private static let signedData: [UInt8] = [0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x07, 0x02]
  /// 1.2.840.113549.1.7.1
  private static let plainData: [UInt8] = [0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x07, 0x01]
}

extension ReceiptContainer.Signature {
  fileprivate init(_ element: BERElement) throws(SignedDataRefusal) {
    var fields = element.children
    guard fields.next(BERElement.integer) != nil else { throw .payloadUnreadable }
    guard var identifier = fields.next(BERElement.sequence)?.children else {
      self = .unsupported("signer named by its key")
      return
    }
    guard identifier.next(BERElement.sequence) != nil, let serialNumber = identifier.next(BERElement.integer),
      let digest = Self.algorithm(fields.next(BERElement.sequence))
    else { throw .payloadUnreadable }
    let signedAttributes = fields.next(BERElement.context(0))
    guard let algorithm = Self.algorithm(fields.next(BERElement.sequence)),
      let signature = fields.next(BERElement.octetString, BERElement.constructedOctetString)?.octets()
    else { throw .payloadUnreadable }
    let known: Certificate.SignatureAlgorithm? =
      digest.elementsEqual(Self.sha256)
      ? .sha256WithRSAEncryption : digest.elementsEqual(Self.sha1) ? .sha1WithRSAEncryption : nil
    if signedAttributes != nil {
      self = .unsupported("signed attributes")
    } else if !Self.rsa.contains(where: algorithm.elementsEqual) {
      self = .unsupported("unknown signature algorithm")
    } else if let known {
      self = .supported(
        ReceiptContainer.Signer(serialNumber: serialNumber.content, algorithm: known, signature: signature))
    } else {
      self = .unsupported("unknown digest")
    }
  }

  // The parameters of an `AlgorithmIdentifier` have no meaning for these algorithms.
  private static func algorithm(_ element: BERElement?) -> ArraySlice<UInt8>? {
    guard var fields = element?.children else { return nil }
    return fields.next(BERElement.objectIdentifier)?.content
  }

  /// 1.3.14.3.2.26
  private static let sha1: [UInt8] = [0x2B, 0x0E, 0x03, 0x02, 0x1A]
  /// 2.16.840.1.101.3.4.2.1
  private static let sha256: [UInt8] = [0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, 0x01]
  /// rsaEncryption, sha1WithRSAEncryption and sha256WithRSAEncryption of 1.2.840.113549.1.1. RFC 3370 section 3.2
  /// allows the first, and Apple uses it.
  private static let rsa: [[UInt8]] = [1, 5, 11].map { [0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x01, $0] }
}
