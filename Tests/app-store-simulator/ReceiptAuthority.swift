import Crypto
import CryptoExtras
import Foundation
import SwiftASN1
import X509

/// Signs app receipts with RSA through an intermediate, like Apple. Keys are created on first use.
struct ReceiptAuthority: Sendable {
  let chain: CertificateChain
  private let leafKey: _RSA.Signing.PrivateKey

  init() throws {
    let keys = try (0..<3).map { _ in try _RSA.Signing.PrivateKey(keySize: .bits2048) }
    leafKey = keys[2]
    chain = try CertificateChain(
      root: "Simulated Receipt Root CA", leaf: "Simulated App Receipt Signing",
      keys: keys.map { Certificate.PrivateKey($0) }, algorithm: .sha256WithRSAEncryption)
  }

  /// A PKCS#7 container (RFC 2315, 7 and 9.1), signed without attributes like Apple's.
  func appReceipt(content: [UInt8]) throws -> [UInt8] {
    let signature = try leafKey.signature(for: SHA256.hash(data: content), padding: .insecurePKCS1v1_5)
    let digest = DER.sequence(DER.identifier([0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, 0x01]), DER.null)
    let rsa = DER.sequence(DER.identifier([0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x01, 0x01]), DER.null)
    var leafName = SwiftASN1.DER.Serializer()
    try leafName.serialize(chain.leaf.issuer)
    try leafName.serialize(chain.leaf.serialNumber.bytes)
    let signer = DER.sequence(
      DER.integer(1), DER.sequence(leafName.serializedBytes), digest, rsa, DER.octets(signature.rawRepresentation))
    let certificates = try chain.der.flatMap(\.self)
    let signed = DER.sequence(
      DER.integer(1), DER.set([digest]),
      DER.sequence(DER.contentType(1), DER.context(0, DER.octets(content))), DER.context(0, certificates),
      DER.set([signer]))
    return DER.sequence(DER.contentType(2), DER.context(0, signed))
  }
}
