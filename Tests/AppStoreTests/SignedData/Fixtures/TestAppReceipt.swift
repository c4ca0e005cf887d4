import CryptoExtras
import Foundation
import SwiftASN1
import X509

/// Writes ASN.1 elements by hand, because no library writes malformed and indefinite encodings.
enum TestASN1 {
  static func element(_ identifier: UInt8, _ content: [UInt8]) -> [UInt8] {
    var length = [UInt8(truncatingIfNeeded: content.count)]
    if content.count > 0x7F {
      var rest = content.count
      length = []
      while rest > 0 {
        length.insert(UInt8(truncatingIfNeeded: rest), at: 0)
        rest >>= 8
      }
      length.insert(0x80 | UInt8(length.count), at: 0)
    }
    return [identifier] + length + content
  }

  /// A constructed element of indefinite length.
  static func indefinite(_ identifier: UInt8, _ content: [UInt8]) -> [UInt8] {
    [identifier, 0x80] + content + [0, 0]
  }

  static func sequence(_ elements: [UInt8]...) -> [UInt8] { element(0x30, elements.flatMap(\.self)) }
  static func set(_ elements: [[UInt8]]) -> [UInt8] { element(0x31, elements.flatMap(\.self)) }
  static func octets(_ bytes: [UInt8]) -> [UInt8] { element(0x04, bytes) }
  static func utf8(_ text: String) -> [UInt8] { element(0x0C, Array(text.utf8)) }
  static func ia5(_ text: String) -> [UInt8] { element(0x16, Array(text.utf8)) }
  static func identifier(_ bytes: [UInt8]) -> [UInt8] { element(0x06, bytes) }

  static func integer(_ value: Int) -> [UInt8] {
    var bytes: [UInt8] = []
    var rest = value
    repeat {
      bytes.insert(UInt8(truncatingIfNeeded: rest), at: 0)
      rest >>= 8
    } while rest != 0 && rest != -1 || (bytes[0] ^ UInt8(truncatingIfNeeded: rest)) & 0x80 != 0
    return element(0x02, bytes)
  }

  static func attribute(_ type: Int, _ value: [UInt8]) -> [UInt8] {
    sequence(integer(type), integer(1), octets(value))
  }
}

/// Builds an app receipt in parts, so that tests can break each.
struct TestAppReceipt {
  enum Encoding { case definite, indefinite, xcode }

  var attributes: [[UInt8]] = Self.attributes()
  var purchases: [[[UInt8]]] = [Self.purchase()]
  var certificates: [[UInt8]]
  var leaf: TestCertificateAuthority.Identity
  var digest = Certificate.SignatureAlgorithm.sha256WithRSAEncryption
  var encoding = Encoding.definite
  /// Signed instead of the content, if set.
  var signedInstead: [UInt8]?
  var signedAttributes: [UInt8] = []
  var signers = 1
  /// The identifier of the signature algorithm: rsaEncryption, as Apple writes it.
  var signatureAlgorithm: [UInt8] = [0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x01, 0x01]

  init(_ authority: TestCertificateAuthority = .receipts) throws {
    certificates = try authority.chain
    leaf = authority.leaf
  }

  static func attributes(environment: String = "Production", created: String = "2026-06-01T00:00:00Z") -> [[UInt8]] {
    [
      TestASN1.attribute(0, TestASN1.utf8(environment)), TestASN1.attribute(1, TestASN1.integer(1_234_567_890)),
      TestASN1.attribute(2, TestASN1.utf8("com.example.game")), TestASN1.attribute(3, TestASN1.utf8("1.0")),
      TestASN1.attribute(4, [0xDE, 0xAD, 0xBE, 0xEF]), TestASN1.attribute(5, [UInt8](repeating: 7, count: 20)),
      TestASN1.attribute(12, TestASN1.ia5(created)), TestASN1.attribute(21, TestASN1.ia5("")),
      TestASN1.attribute(9_999, [0xFF]),
    ]
  }

  static func purchase(
    id: String = "1000000000000001", original: String = "1000000000000001", type: Int = 1, cancelled: String = "",
    expires: String = ""
  ) -> [[UInt8]] {
    [
      TestASN1.attribute(1701, TestASN1.integer(2)), TestASN1.attribute(1702, TestASN1.utf8("gems.100")),
      TestASN1.attribute(1703, TestASN1.utf8(id)), TestASN1.attribute(1704, TestASN1.ia5("2026-05-31T12:00:00Z")),
      TestASN1.attribute(1705, TestASN1.utf8(original)), TestASN1.attribute(1706, TestASN1.ia5("2026-05-30T12:00:00Z")),
      TestASN1.attribute(1707, TestASN1.integer(type)), TestASN1.attribute(1708, TestASN1.ia5(expires)),
      TestASN1.attribute(1709, [0x05, 0x00]), TestASN1.attribute(1711, TestASN1.integer(2_000_000_000_123)),
      TestASN1.attribute(1712, TestASN1.ia5(cancelled)), TestASN1.attribute(1713, TestASN1.integer(0)),
      TestASN1.attribute(1719, TestASN1.integer(0)),
    ]
  }

  static let refundedPeriod = purchase(
    id: "1000000000000003", original: "1000000000000002", type: 3, cancelled: "2026-05-31T13:00:00Z",
    expires: "2026-06-30T12:00:00Z")

  var content: [UInt8] { TestASN1.set(attributes + purchases.map { TestASN1.attribute(17, TestASN1.set($0)) }) }

  var bytes: [UInt8] {
    get throws {
      let wrapped = encoding == .xcode ? TestASN1.octets(content) : content
      let usesSHA1 = digest == .sha1WithRSAEncryption
      let digestIdentifier: [UInt8] =
        usesSHA1 ? [0x2B, 0x0E, 0x03, 0x02, 0x1A] : [0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, 0x01]
      let digestAlgorithm = TestASN1.sequence(TestASN1.identifier(digestIdentifier), [0x05, 0x00])
      let signature = try leaf.key.sign(bytes: signedInstead ?? wrapped, signatureAlgorithm: digest)
      var leafName = DER.Serializer()
      try leafName.serialize(leaf.certificate.issuer)
      try leafName.serialize(leaf.certificate.serialNumber.bytes)
      let signer = TestASN1.sequence(
        TestASN1.integer(1), TestASN1.sequence(leafName.serializedBytes), digestAlgorithm, signedAttributes,
        TestASN1.sequence(TestASN1.identifier(signatureAlgorithm), [0x05, 0x00]),
        TestASN1.octets(signature.rawRepresentation))
      return Self.container(
        wrapped, digest: digestAlgorithm, certificates: certificates,
        signers: Array(repeating: signer, count: signers), cut: encoding == .definite ? nil : wrapped.count / 2)
    }
  }

  var base64: String { get throws { Data(try bytes).base64EncodedString() } }

  /// The CMS container of a receipt; with `cut`, it has indefinite lengths, and its content is in two pieces.
  static func container(
    _ content: [UInt8], digest: [UInt8], certificates: [[UInt8]], signers: [[UInt8]], cut: Int?
  ) -> [UInt8] {
    let signedData = TestASN1.identifier([0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x07, 0x02])
    let plainData = TestASN1.identifier([0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x07, 0x01])
    let (digests, signers) = (TestASN1.set([digest]), TestASN1.set(signers))
    let chain = TestASN1.element(0xA0, certificates.flatMap(\.self))
    guard let cut else {
      let encapsulated = TestASN1.sequence(plainData, TestASN1.element(0xA0, TestASN1.octets(content)))
      let body = TestASN1.sequence(TestASN1.integer(1), digests, encapsulated, chain, signers)
      return TestASN1.sequence(signedData, TestASN1.element(0xA0, body))
    }
    let pieces = TestASN1.octets(Array(content[..<cut])) + TestASN1.octets(Array(content[cut...]))
    let octets = TestASN1.indefinite(0x24, pieces)
    let encapsulated = TestASN1.indefinite(0x30, plainData + TestASN1.indefinite(0xA0, octets))
    let body = TestASN1.indefinite(0x30, TestASN1.integer(1) + digests + encapsulated + chain + signers)
    return TestASN1.indefinite(0x30, signedData + TestASN1.indefinite(0xA0, body))
  }
}
