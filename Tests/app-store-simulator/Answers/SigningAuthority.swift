import Crypto
import Foundation
import X509

/// Signs documents like Apple. Its keys are created at each start.
struct SigningAuthority: Sendable {
  let chain: CertificateChain
  private let leafKey: P256.Signing.PrivateKey
  private let header: String

  /// An authority with the same names and an untrusted root.
  static let stranger = Result { try SigningAuthority() }

  init() throws {
    leafKey = P256.Signing.PrivateKey()
    chain = try CertificateChain(
      root: "Simulated Root CA", leaf: "Simulated Receipt Signing",
      keys: [.init(P384.Signing.PrivateKey()), .init(P384.Signing.PrivateKey()), .init(leafKey)],
      algorithm: .ecdsaWithSHA384)
    let certificates = try chain.der.map { Data($0).base64EncodedString() }
    header = try Self.json(["alg": "ES256", "x5c": certificates]).base64URL
  }

  /// A compact JWS (RFC 7515).
  func sign(_ payload: [String: Any]) throws -> String {
    let content = try header + "." + Self.json(payload).base64URL
    let signature = try leafKey.signature(for: Data(content.utf8))
    return content + "." + signature.rawRepresentation.base64URL
  }

  private static func json(_ fields: [String: Any]) throws -> Data {
    try JSONSerialization.data(withJSONObject: fields, options: [.sortedKeys, .withoutEscapingSlashes])
  }
}

extension Data {
  var base64URL: String {
    base64EncodedString().replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
  }

  init?(base64URL text: some StringProtocol) {
    let standard = String(text).replacing("-", with: "+").replacing("_", with: "/")
    self.init(base64Encoded: standard + String(repeating: "=", count: (4 - standard.count % 4) % 4))
  }
}
