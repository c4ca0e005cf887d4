import Crypto
import CryptoExtras
import Foundation
import SwiftASN1
import X509

import AppStore

/// Builds an old transaction receipt piece by piece, so that tests can break each.
struct TestOldReceipt {
  /// In order, as Apple writes them.
  var info: [(name: String, value: String)] = [
    ("original-purchase-date-ms", "1780272000000"), ("purchase-date-ms", "1780272000000"),
    ("original-transaction-id", "170000029449420"), ("transaction-id", "170000029449420"), ("quantity", "2"),
    ("bvrs", "20120427"), ("product-id", "com.example.game.gems"), ("item-id", "521129812"),
    ("bid", "com.example.game"),
  ]
  var outer: [(name: String, value: String)] = [("pod", "17"), ("signing-status", "0")]
  var version: UInt8 = 2
  var signer = Self.leaf
  /// What is signed, when it is not the information.
  var signedInstead: [UInt8]?
  var certificate: [UInt8]?

  struct Signer: Sendable {
    let certificate: [UInt8]
    let key: _RSA.Signing.PrivateKey
  }

  /// A leaf of 1,024 bits right under the root of app receipts.
  static let leaf = signer(by: TestCertificateAuthority.receipts.root)
  /// The one between root and leaf, and a leaf under it, as Apple has them.
  static let intermediate: TestCertificateAuthority.Identity = {
    do {
      return try TestCertificateAuthority.issue(
        .init(
          name: "Test Store Authority", marker: [1, 2, 840, 113_635, 100, 6, 2, 2], isAuthority: true,
          usage: KeyUsage(keyCertSign: true)),
        key: TestCertificateAuthority.rsaKey(1), by: TestCertificateAuthority.receipts.root)
    } catch { preconditionFailure("\(error)") }
  }()

  static let receiptMarker: ASN1ObjectIdentifier = [1, 2, 840, 113_635, 100, 6, 5, 1]

  /// - Parameter marker: nil for a leaf that was issued for another purpose.
  static func signer(
    by issuer: TestCertificateAuthority.Identity, marker: ASN1ObjectIdentifier? = receiptMarker,
    notBefore: Date = date(2020, 1), notAfter: Date = date(2030, 1)
  ) -> Signer {
    do {
      let key = try _RSA.Signing.PrivateKey(unsafeKeySize: .init(bitCount: 1_024))
      let identity = try TestCertificateAuthority.issue(
        .init(
          name: "Test Old Receipt Signing", marker: marker, usage: KeyUsage(digitalSignature: true),
          notBefore: notBefore, notAfter: notAfter, signatureAlgorithm: .sha1WithRSAEncryption),
        key: Certificate.PrivateKey(key), by: issuer)
      return Signer(certificate: try identity.der, key: key)
    } catch { preconditionFailure("\(error)") }
  }

  var infoText: String { Self.list(info) }

  var base64: String {
    get throws {
      let content = Array(infoText.utf8)
      let signature = try signer.key.signature(
        for: Insecure.SHA1.hash(data: [version] + (signedInstead ?? content)), padding: .insecurePKCS1v1_5)
      let certificate = self.certificate ?? signer.certificate
      let length = (0..<4).map { UInt8(truncatingIfNeeded: certificate.count >> (24 - 8 * $0)) }
      let blob = [version] + Array(signature.rawRepresentation) + length + certificate
      let entries =
        [("signature", Data(blob).base64EncodedString()), ("purchase-info", Data(content).base64EncodedString())]
        + outer
      return Data(Self.list(entries).utf8).base64EncodedString()
    }
  }

  private static func list(_ entries: [(name: String, value: String)]) -> String {
    "{\n" + entries.map { "\t\"\($0.name)\" = \"\($0.value)\";\n" }.joined() + "}"
  }
}
