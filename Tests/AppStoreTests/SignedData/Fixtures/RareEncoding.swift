import Crypto
import CryptoExtras
import Foundation
import TestSupport

enum RareKey {
  case rsa(_RSA.Signing.PrivateKey)
  case p384(P384.Signing.PrivateKey)
  case p256(P256.Signing.PrivateKey)

  /// DER of `SubjectPublicKeyInfo`.
  var publicKey: [UInt8] {
    switch self {
    case .rsa(let key): Array(key.publicKey.derRepresentation)
    case .p384(let key): Array(key.publicKey.derRepresentation)
    case .p256(let key): Array(key.publicKey.derRepresentation)
    }
  }

  /// sha256WithRSAEncryption, ecdsa-with-SHA384 or ecdsa-with-SHA256.
  var algorithm: [UInt8] {
    switch self {
    case .rsa: RareEncoding.algorithm([0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x01, 0x0B], hasNull: true)
    case .p384: RareEncoding.algorithm([0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x04, 0x03, 0x03], hasNull: false)
    case .p256: RareEncoding.algorithm([0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x04, 0x03, 0x02], hasNull: false)
    }
  }

  /// - Parameter isShort: true if the number, `r` or `s` must have leading zero bytes.
  /// - Returns: nil if it must, and the only RSA signature of these bytes has none.
  func sign(_ bytes: [UInt8], isShort: Bool) throws -> [UInt8]? {
    switch self {
    case .rsa(let key):
      let signature = try key.signature(for: SHA256.hash(data: bytes), padding: .insecurePKCS1v1_5).rawRepresentation
      return isShort && signature.first != 0 ? nil : Array(signature)
    case .p384(let key):
      return try Self.drawn(isShort) {
        let signature = try key.signature(for: bytes)
        return (Array(signature.rawRepresentation), Array(signature.derRepresentation))
      }
    case .p256(let key):
      return try Self.drawn(isShort) {
        let signature = try key.signature(for: bytes)
        return (Array(signature.rawRepresentation), Array(signature.derRepresentation))
      }
    }
  }

  /// The signature of a JWS: `r` and `s`, 32 bytes each.
  func signJWS(_ bytes: [UInt8], isShort: Bool) throws -> [UInt8] {
    guard case .p256(let key) = self else { return [] }
    return try Self.drawn(isShort) {
      let raw = Array(try key.signature(for: bytes).rawRepresentation)
      return (raw, raw)
    }
  }

  // One signature of 128 has a leading zero byte.
  private static func drawn(_ isShort: Bool, _ sign: () throws -> (raw: [UInt8], form: [UInt8])) rethrows -> [UInt8] {
    while true {
      let (raw, form) = try sign()
      if !isShort || raw[0] == 0 || raw[raw.count / 2] == 0 { return form }
    }
  }
}

/// Writes chains and receipts in encodings that DER allows, drawn from a seed.
struct RareEncoding {
  var random: SeededGenerator
  /// True to draw encodings that RFC 5280 or DER forbids and Apple has never sent, such as negative serial numbers.
  var isForbidden = false

  struct Identity {
    var key: RareKey
    var name: Name
    var serialNumber: [UInt8]
    var issuer: Name
    var der: [UInt8]
  }

  /// A common name in one of ASN.1's string types.
  struct Name {
    var text: String
    var tag: UInt8

    var der: [UInt8] {
      let commonName = TestASN1.identifier([0x55, 0x04, 0x03])
      let value = tag == 0x1E ? text.utf16.flatMap { [UInt8($0 >> 8), UInt8($0 & 0xFF)] } : Array(text.utf8)
      return TestASN1.sequence(TestASN1.set([TestASN1.sequence(commonName, TestASN1.element(tag, value))]))
    }
  }

  static func algorithm(_ identifier: [UInt8], hasNull: Bool) -> [UInt8] {
    TestASN1.sequence(TestASN1.identifier(identifier), hasNull ? [0x05, 0x00] : [])
  }

  // MARK: Certificates

  enum Role {
    case root, intermediate, leaf

    var isAuthority: Bool { self == .root || self == .intermediate }

    var marker: [UInt8]? {
      switch self {
      case .root: nil
      case .intermediate: [0x2A, 0x86, 0x48, 0x86, 0xF7, 0x63, 0x64, 0x06, 0x02, 0x01]
      case .leaf: [0x2A, 0x86, 0x48, 0x86, 0xF7, 0x63, 0x64, 0x06, 0x0B, 0x01]
      }
    }
  }

  /// Issues a certificate, self-signed without an issuer.
  mutating func issue(_ role: Role, _ key: RareKey, by issuer: Identity?) throws -> Identity {
    let name = Name(text: "Rare \(role) \(random.number(0...9))", tag: nameTag())
    var issuerName = issuer?.name ?? name
    // RFC 5280 (7.1) compares names by characters, regardless of their types.
    if random.oneIn(4), issuer != nil, [0x0C, 0x13, 0x16].contains(issuerName.tag) {
      issuerName.tag = random.pick(0x0C, 0x13)
    }
    let signer = issuer?.key ?? key
    let isShort = random.oneIn(16)
    while true {
      // The root stays valid, because an operator installs it.
      let serialNumber = serialNumber(mayBeForbidden: role != .root)
      let signed = TestASN1.sequence(
        TestASN1.element(0xA0, TestASN1.integer(2)), TestASN1.element(0x02, serialNumber), signer.algorithm,
        issuerName.der, TestASN1.sequence(time("150101000000Z", "20"), time("400101000000Z", "20")), name.der,
        publicKey(key), TestASN1.element(0xA3, TestASN1.sequence(extensions(role, key, issuer?.key ?? key))))
      guard let signature = try signer.sign(signed, isShort: isShort) else { continue }
      let der = TestASN1.sequence(signed, signer.algorithm, TestASN1.element(0x03, [0] + signature))
      return Identity(key: key, name: name, serialNumber: serialNumber, issuer: issuerName, der: der)
    }
  }

  // Mostly PrintableString and UTF8String; else IA5String, TeletexString or BMPString.
  private mutating func nameTag() -> UInt8 { random.pick(0x0C, 0x0C, 0x13, 0x13, 0x16, 0x14, 0x1E) }

  private mutating func serialNumber(mayBeForbidden: Bool) -> [UInt8] {
    if isForbidden, mayBeForbidden, random.oneIn(3) {
      return random.pick([0x80], [0xFF, 0x01], [0x00, 0x00, 0x01], [0xFF, 0xFF])
    }
    var bytes = (0..<random.pick(1, 2, 8, 16, 19, 20)).map { _ in UInt8(truncatingIfNeeded: random.next()) }
    if random.oneIn(3) { bytes[0] |= 0x80 }
    if random.oneIn(8) { bytes[bytes.count - 1] = 0 }
    bytes = Array(bytes.drop { $0 == 0 })
    return bytes.first.map { $0 & 0x80 == 0 } == true ? bytes : [0] + bytes
  }

  private mutating func time(_ text: String, _ century: String) -> [UInt8] {
    random.oneIn(4) ? TestASN1.element(0x18, Array((century + text).utf8)) : TestASN1.element(0x17, Array(text.utf8))
  }

  // Sometimes a compressed point, which the libraries do not read.
  private mutating func publicKey(_ key: RareKey) -> [UInt8] {
    guard isForbidden, case .p256(let key) = key, random.oneIn(4) else { return key.publicKey }
    let algorithm = TestASN1.sequence(
      TestASN1.identifier([0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x02, 0x01]),
      TestASN1.identifier([0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x03, 0x01, 0x07]))
    return TestASN1.sequence(algorithm, TestASN1.element(0x03, [0] + Array(key.publicKey.compressedRepresentation)))
  }

  private mutating func extensions(_ role: Role, _ key: RareKey, _ issuer: RareKey) -> [UInt8] {
    let critical: [UInt8] = [0x01, 0x01, 0xFF]
    // DER omits default values; an explicit one has the same meaning.
    let notCritical: [UInt8] = isForbidden && role != .root && random.oneIn(4) ? [0x01, 0x01, 0x00] : []
    func item(_ identifier: [UInt8], _ flag: [UInt8], _ value: [UInt8]) -> [UInt8] {
      TestASN1.sequence(TestASN1.identifier(identifier), flag, TestASN1.octets(value))
    }
    let isEnd = role == .intermediate && random.oneIn(2)
    let constraints: [UInt8] =
      role.isAuthority ? TestASN1.sequence([0x01, 0x01, 0xFF], isEnd ? TestASN1.integer(0) : []) : [0x30, 0x00]
    var items = [
      item([0x55, 0x1D, 0x13], critical, constraints),
      item([0x55, 0x1D, 0x0F], critical, role.isAuthority ? [0x03, 0x02, 0x01, 0x06] : [0x03, 0x02, 0x07, 0x80]),
    ]
    let (own, others) = (
      Array(Insecure.SHA1.hash(data: key.publicKey)), Array(Insecure.SHA1.hash(data: issuer.publicKey))
    )
    if random.oneIn(2) { items.append(item([0x55, 0x1D, 0x0E], notCritical, TestASN1.octets(own))) }
    if random.oneIn(2) {
      items.append(item([0x55, 0x1D, 0x23], notCritical, TestASN1.sequence(TestASN1.element(0x80, others))))
    }
    if let marker = role.marker { items.append(item(marker, notCritical, [0x05, 0x00])) }
    return items.shuffled(using: &random).flatMap(\.self)
  }

  // MARK: Payloads

  /// A stored payload and the root of its chain.
  struct Payload {
    var root: [UInt8]
    var text: String
  }

  mutating func signedTransaction() throws -> Payload {
    let root = try issue(.root, .p384(ecKey()), by: nil)
    let intermediate = try issue(.intermediate, .p384(ecKey()), by: root)
    let leaf = try issue(.leaf, .p256(leafKey()), by: intermediate)
    let chain = [leaf.der, intermediate.der, root.der].map { Data($0).base64EncodedString() }
    let header = try TestJWS.json(["alg": "ES256", "x5c": chain])
    let content = try [header, TestJWS.json(TestJWS.transaction)].map { TestJWS.base64URL(Array($0.utf8)) }
      .joined(separator: ".")
    let signature = try leaf.key.signJWS(Array(content.utf8), isShort: random.oneIn(8))
    return Payload(root: root.der, text: content + "." + TestJWS.base64URL(signature))
  }

  mutating func appReceipt(_ keys: [_RSA.Signing.PrivateKey]) throws -> Payload {
    let keys = keys.shuffled(using: &random).map(RareKey.rsa)
    let root = try issue(.root, keys[0], by: nil)
    let intermediate = try issue(.intermediate, keys[1], by: root)
    let leaf = try issue(.leaf, keys[2], by: intermediate)
    let (content, signature) = try signedContent(by: leaf.key)
    let digest = Self.algorithm([0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, 0x01], hasNull: random.oneIn(2))
    let signing = Self.algorithm(
      [0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x01, random.pick(0x01, 0x0B)], hasNull: random.oneIn(2))
    var issuer = leaf.issuer
    if random.oneIn(4), [0x0C, 0x13, 0x16].contains(issuer.tag) { issuer.tag = random.pick(0x0C, 0x13) }
    var signerName = TestASN1.sequence(issuer.der, TestASN1.element(0x02, leaf.serialNumber))
    if isForbidden, random.oneIn(6) {
      signerName = TestASN1.element(0x80, Array(Insecure.SHA1.hash(data: leaf.key.publicKey)))
    }
    let signer = TestASN1.sequence(
      TestASN1.integer(random.pick(1, 3)), signerName, digest, signing, TestASN1.octets(signature))
    var certificates = [leaf.der, intermediate.der, root.der].shuffled(using: &random)
    if random.oneIn(4) { certificates.append(certificates[0]) }
    if isForbidden, random.oneIn(6) { certificates.append(TestASN1.element(0xA1, TestASN1.integer(1))) }
    let cut = random.oneIn(3) ? random.number(0...content.count) : nil
    let bytes = TestAppReceipt.container(
      content, digest: digest, certificates: certificates, signers: [signer], cut: cut)
    return Payload(root: root.der, text: base64(bytes))
  }

  private mutating func signedContent(by key: RareKey) throws -> (content: [UInt8], signature: [UInt8]) {
    let isShort = random.oneIn(16)
    while true {
      let opaque = (0..<random.number(0...80)).map { _ in UInt8(truncatingIfNeeded: random.next()) }
      var attributes = TestAppReceipt.attributes()
      attributes[4] = TestASN1.attribute(4, opaque)
      attributes += (0..<random.number(0...3)).map {
        TestASN1.attribute(17, TestASN1.set(TestAppReceipt.purchase(id: "100000000000000\($0)")))
      }
      let content = TestASN1.set(attributes.shuffled(using: &random))
      if let signature = try key.sign(content, isShort: isShort) { return (content, signature) }
    }
  }

  /// Base64 in lines, without padding, or URL-safe.
  private mutating func base64(_ bytes: [UInt8]) -> String {
    let text = Data(bytes).base64EncodedString()
    switch random.number(0...5) {
    case 0: return Data(bytes).base64EncodedString(options: [.lineLength64Characters])
    case 1: return text.replacing("=", with: "")
    case 2: return TestJWS.base64URL(bytes)
    default: return text
    }
  }

  private mutating func ecKey() throws -> P384.Signing.PrivateKey {
    try P384.Signing.PrivateKey(rawRepresentation: scalar(48))
  }

  private mutating func leafKey() throws -> P256.Signing.PrivateKey {
    try P256.Signing.PrivateKey(rawRepresentation: scalar(32))
  }

  private mutating func scalar(_ count: Int) -> [UInt8] {
    [UInt8(random.number(0...0x7F))] + (1..<count).map { _ in UInt8(truncatingIfNeeded: random.next()) }
  }
}
