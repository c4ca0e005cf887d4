import Crypto
import Foundation
import Reconciliation
import SwiftASN1
import Testing
import X509

@testable import AppStore

private typealias Authority = TestCertificateAuthority
private typealias Case = RefusalCase

@Suite("Refused signed transactions")
struct JWSRefusalTests {
  @Test("Each defect has its own refusal, also if the genuine chain is remembered", arguments: RefusalCase.jws)
  func refuses(_ broken: RefusalCase) throws {
    let payload = try broken.payload()
    let (cold, warm) = (JWSVerifier(roots: try Authority.bothRoots), JWSVerifier(roots: try Authority.bothRoots))
    #expect(throws: Never.self) { try warm.verifyTransaction(TestJWS().text, channel: .offline).get() }
    for verifier in [cold, warm] {
      #expect(verifier.verifyTransaction(payload, channel: .offline) == .failure(broken.refusal))
    }
  }
}

/// A genuine JWS with a change made before signing.
@Sendable private func signed(_ change: (inout TestJWS) throws -> Void) throws -> String {
  var jws = try TestJWS()
  try change(&jws)
  return try jws.text
}

/// A genuine JWS whose payload has another value of a field.
@Sendable private func signed(_ field: String, _ value: (any Sendable)?) throws -> String {
  try signed { $0.payload[field] = value }
}

/// A genuine payload under another header, signed.
@Sendable private func signed(header change: (String) throws -> String) throws -> String {
  let jws = try TestJWS()
  return try TestJWS.signed(header: change(jws.headerText), payload: TestJWS.json(jws.payload), key: jws.key)
}

/// A genuine JWS with another leaf, which also signs it.
@Sendable private func signed(by leaf: Authority.Identity, chain: [[UInt8]]? = nil) throws -> String {
  try signed {
    $0.chain = try chain ?? [leaf.der] + $0.chain.dropFirst()
    $0.key = leaf.key
  }
}

/// A genuine JWS with one of its three parts changed after signing.
@Sendable private func altered(_ change: (inout [String]) throws -> Void) throws -> String {
  var parts = try TestJWS().text.split(separator: ".", omittingEmptySubsequences: false).map(String.init)
  try change(&parts)
  return parts.joined(separator: ".")
}

/// A genuine JWS with another signature, made of the genuine `r` and `s`.
@Sendable private func signature(_ join: ([UInt8], [UInt8]) -> [UInt8]) throws -> String {
  try altered {
    let bytes = try #require(Base64Text.decodeURLSafe(Array($0[2].utf8)[...]))
    $0[2] = TestJWS.base64URL(join(Array(bytes[..<32]), Array(bytes[32...])))
  }
}

private func newLeaf(by issuer: Authority.Identity) throws -> Authority.Identity {
  try Authority.issue(.leaf, key: .init(P256.Signing.PrivateKey()), by: issuer)
}

/// A genuine root that has issued another intermediate.
private func intermediate(
  _ name: String, _ refusal: SignedDataRefusal, _ change: @escaping @Sendable (inout Authority.Template) -> Void
) -> Case {
  Case("intermediate \(name)", refusal) {
    try TestJWS(Authority.transactions.with(intermediate: .intermediate.with(change))).text
  }
}

/// A genuine intermediate that has issued another leaf.
private func leaf(
  _ name: String, _ refusal: SignedDataRefusal, _ change: @escaping @Sendable (inout Authority.Template) -> Void
) -> Case {
  Case("leaf \(name)", refusal) { try TestJWS(Authority.transactions.with(leaf: .leaf.with(change))).text }
}

/// A signed payload that is no JSON object.
private func unreadable(_ name: String, _ payload: String) -> Case {
  Case(name, .payloadIncomplete("readable content")) {
    let jws = try TestJWS()
    return try TestJWS.signed(header: jws.headerText, payload: payload, key: jws.key)
  }
}

let headerCases: [RefusalCase] = [
  Case("alg none, no signature", .algorithm("none")) {
    try signed { $0.algorithm = "none" }.split(separator: ".").dropLast().joined(separator: ".") + "."
  },
  Case("alg none, signature kept", .algorithm("none")) { try signed { $0.algorithm = "none" } },
  Case("HS256 with the leaf's certificate as secret", .algorithm("HS256")) {
    var jws = try TestJWS()
    jws.algorithm = "HS256"
    let text = try jws.text.split(separator: ".").dropLast().joined(separator: ".")
    let code = HMAC<SHA256>.authenticationCode(for: Data(text.utf8), using: SymmetricKey(data: jws.chain[0]))
    return text + "." + TestJWS.base64URL(code)
  },
  Case("ES384", .algorithm("ES384")) { try signed { $0.algorithm = "ES384" } },
  Case("RS256", .algorithm("RS256")) { try signed { $0.algorithm = "RS256" } },
  Case("alg in lower case", .algorithm("es256")) { try signed { $0.algorithm = "es256" } },
  Case("alg missing", .algorithm("nothing")) { try signed { $0.replacing("alg", with: "ALG") } },
  Case("critical extension in the header", .headerUnreadable) {
    try signed { $0.replacing(#""alg""#, with: #""crit":["exp"],"alg""#) }
  },
  Case("header that is no JSON", .headerUnreadable) { try signed { "x" + $0 } },
  Case("header that is an array", .headerUnreadable) { try signed { "[" + $0 + "]" } },
  Case("header of standard base64", .headerUnreadable) { try altered { $0[0] = "+/" + $0[0].dropFirst(2) } },
  Case("padded header", .headerUnreadable) { try altered { $0[0] += "=" } },
  Case("empty header", .headerUnreadable) { try altered { $0[0] = "" } },
  Case("no x5c", .chainLength(0)) { try signed { $0.replacing("x5c", with: "x5d") } },
  Case("x5c that is a text", .chainLength(0)) {
    try signed { $0.replacing("[", with: "").replacing("]", with: "").replacing(#"","M"#, with: "M") }
  },
  Case("one certificate", .chainLength(1)) { try signed { $0.chain = [$0.chain[0]] } },
  Case("two certificates", .chainLength(2)) { try signed { $0.chain.removeLast() } },
  Case("four certificates", .chainLength(4)) { try signed { $0.chain.append($0.chain[2]) } },
  Case("certificate that is no text", .certificateUnreadable(0)) {
    try signed { $0.replacing(#""x5c":[""#, with: #""x5c":[7,""#).replacing(#/,"[^"]*"\]/#, with: "]") }
  },
  Case("certificate in URL-safe base64", .certificateUnreadable(1)) {
    try signed { header in
      let second = Data(try TestJWS().chain[1]).base64EncodedString()
      return header.replacing(second, with: "-_" + second.dropFirst(2))
    }
  },
  Case("leaf that is no certificate", .certificateUnreadable(0)) { try signed { $0.chain[0] = [0x30, 0x00] } },
  Case("intermediate that is no certificate", .certificateUnreadable(1)) { try signed { $0.chain[1] = [1, 2, 3] } },
  Case("leaf with bytes behind it", .certificateUnreadable(0)) { try signed { $0.chain[0].append(0) } },
  Case("leaf cut short", .certificateUnreadable(0)) { try signed { $0.chain[0].removeLast() } },
  Case("leaf larger than any of Apple's", .certificateUnreadable(0)) {
    try signed { $0.chain[0] += [UInt8](repeating: 0, count: DecodingLimits.certificateLength) }
  },
]

let chainCases: [RefusalCase] = [
  Case("complete chain of another root", .chainNotTrusted) {
    try TestJWS(Authority(root: .root.with { $0.name = "Another Root CA" })).text
  },
  Case("attacker's root with the same name", .chainNotTrusted) { try TestJWS(Authority()).text },
  Case("attacker's leaf and intermediate before the genuine root", .chainNotTrusted) {
    var jws = try TestJWS(Authority())
    jws.chain[2] = try Authority.transactions.root.der
    return try jws.text
  },
  Case("attacker's leaf under the genuine intermediate's name", .chainNotTrusted) { try signed(by: Authority().leaf) },
  Case("genuine leaf under an attacker's intermediate", .chainNotTrusted) {
    try signed { $0.chain[1] = try Authority().intermediate.der }
  },
  Case("leaf and intermediate swapped", .chainNotTrusted) { try signed { $0.chain.swapAt(0, 1) } },
  Case("root in place of the intermediate", .chainNotTrusted) { try signed { $0.chain[1] = $0.chain[2] } },
  Case("leaf issued by a genuine leaf", .chainNotTrusted) {
    let genuine = Authority.transactions
    let forged = try newLeaf(by: genuine.leaf)
    return try signed(by: forged, chain: [forged.der, genuine.leaf.der, genuine.intermediate.der])
  },
  Case("leaf signed by the intermediate in the root's name", .chainNotTrusted) {
    let genuine = Authority.transactions
    return try signed(
      by: newLeaf(by: Authority.Identity(certificate: genuine.root.certificate, key: genuine.intermediate.key)))
  },
  Case("leaf directly under the root", .chainNotTrusted) { try signed(by: newLeaf(by: Authority.transactions.root)) },
  intermediate("that is no authority", .intermediateNotAuthority) { $0.isAuthority = false },
  intermediate("that may not sign certificates", .certificateNotUsable(.intermediate)) {
    $0.usage = KeyUsage(cRLSign: true)
  },
  intermediate("with an unknown critical extension", .certificateNotUsable(.intermediate)) {
    $0.criticalExtension = [1, 2, 3, 4]
  },
  intermediate("without Apple's marker", .markerMissing(.intermediate)) { $0.marker = nil },
  intermediate("with the leaf's marker", .markerMissing(.intermediate)) { $0.marker = Authority.leafMarker },
  leaf("without Apple's marker", .markerMissing(.leaf)) { $0.marker = nil },
  leaf("with the intermediate's marker", .markerMissing(.leaf)) { $0.marker = Authority.intermediateMarker },
  leaf("that may not sign", .certificateNotUsable(.leaf)) { $0.usage = KeyUsage(keyEncipherment: true) },
  leaf("with an unknown critical extension", .certificateNotUsable(.leaf)) { $0.criticalExtension = [1, 2, 3, 4] },
  Case("leaf with a P-384 key", .leafKeyKind) {
    try signed(by: Authority.transactions.leaf(.leaf, key: .init(P384.Signing.PrivateKey())))
  },
  Case("leaf with an RSA key", .leafKeyKind) {
    try signed(by: Authority.transactions.leaf(.leaf, key: Authority.rsaKey(0)))
  },
  Case("leaf of the receipts' authority, which the verifier trusts for receipts", .chainNotTrusted) {
    var jws = try TestJWS(Authority.receipts)
    jws.key = Authority.transactions.leaf.key
    return try jws.text
  },
  Case("P-256 leaf under the receipts' intermediate", .chainNotTrusted) {
    let leaf = try Authority.receipts.leaf(.leaf)
    return try signed(by: leaf, chain: [leaf.der] + Authority.receipts.chain.dropFirst())
  },
]

let dateCases: [RefusalCase] = [
  Case("leaf expired when it was signed", .notValidAtSignedDate) { try signed("signedDate", milliseconds(2027, 11)) },
  Case("leaf expired a second before", .notValidAtSignedDate) {
    try signed("signedDate", milliseconds(2027, 10) + 1_000)
  },
  Case("leaf not yet valid when it was signed", .notValidAtSignedDate) {
    try signed("signedDate", milliseconds(2025, 9) - 1)
  },
  Case("negative date", .notValidAtSignedDate) { try signed("signedDate", Int64(-62_135_769_600_000)) },
  intermediate("expired when it was signed", .notValidAtSignedDate) { $0.notAfter = date(2026, 5) },
  Case("no signedDate", .payloadIncomplete("signedDate")) { try signed("signedDate", nil) },
  Case("signedDate that is no number", .payloadIncomplete("signedDate")) { try signed("signedDate", "2026-06-01") },
]

private let zero = [UInt8](repeating: 0, count: 32)

let signatureCases: [RefusalCase] = [
  Case("another amount", .signatureMismatch) {
    try altered { $0[1] = TestJWS.base64URL(try TestJWS.json(TestJWS.transaction { $0["price"] = 1 }).utf8) }
  },
  Case("header with one more field", .signatureMismatch) {
    try altered {
      $0[0] = TestJWS.base64URL(try TestJWS().headerText.replacing(#""alg""#, with: #""kid":"1","alg""#).utf8)
    }
  },
  Case("signature of another transaction", .signatureMismatch) {
    try altered { $0[2] = String(try signed("transactionId", "1").split(separator: ".")[2]) }
  },
  Case("signature of another genuine leaf", .signatureMismatch) {
    try signed { $0.key = try Authority.transactions.leaf(.leaf).key }
  },
  Case("signature in DER form", .signatureMismatch) {
    try altered {
      let key = try TestJWS().key
      let signature = try key.sign(bytes: Data("\($0[0]).\($0[1])".utf8), signatureAlgorithm: .ecdsaWithSHA256)
      $0[2] = TestJWS.base64URL(signature.rawRepresentation)
    }
  },
  Case("zero signature", .signatureMismatch) { try signature { _, _ in zero + zero } },
  Case("r = 0", .signatureMismatch) { try signature { _, s in zero + s } },
  Case("s = 0", .signatureMismatch) { try signature { r, _ in r + zero } },
  Case("r and s swapped", .signatureMismatch) { try signature { r, s in s + r } },
  Case("r beyond the curve's order", .signatureMismatch) {
    try signature { _, s in [UInt8](repeating: 0xFF, count: 32) + s }
  },
  Case("signature a byte short", .truncated) { try signature { ($0 + $1).dropLast() } },
  Case("signature a byte long", .signatureMismatch) { try signature { $0 + $1 + [0] } },
  Case("no signature", .signatureMismatch) { try altered { $0[2] = "" } },
]

let formCases: [RefusalCase] = [
  Case("nothing", .notThreeParts) { "" },
  Case("text without dots", .notThreeParts) { try altered { $0 = [$0[0]] } },
  Case("two parts", .notThreeParts) { try altered { $0.removeLast() } },
  Case("four parts", .notThreeParts) { try altered { $0.append($0[2]) } },
  Case("empty fourth part", .notThreeParts) { try altered { $0.append("") } },
  Case("two dots alone", .headerUnreadable) { ".." },
  Case("cut within the payload", .notThreeParts) { try altered { $0 = [$0[0], String($0[1].prefix(40))] } },
  Case("cut within the signature", .truncated) { try altered { $0[2] = String($0[2].prefix(44)) } },
  Case("padded payload", .payloadUnreadable) { try altered { $0[1] += "=" } },
  Case("padded signature", .signatureUnreadable) { try altered { $0[2] += "==" } },
  Case("payload of standard base64", .payloadUnreadable) { try altered { $0[1] = "+/" + $0[1].dropFirst(2) } },
  Case("signature of standard base64", .signatureUnreadable) { try altered { $0[2] = "+/" + $0[2].dropFirst(2) } },
  Case("unused bits of the signature set", .signatureUnreadable) {
    // The last of 86 characters has four bits that belong to no byte.
    try altered { $0[2] = $0[2].dropLast() + (["A": "B", "Q": "R", "g": "h"][String($0[2].suffix(1))] ?? "x") }
  },
  Case("space before", .headerUnreadable) { try altered { $0[0] = " " + $0[0] } },
  Case("line break behind", .signatureUnreadable) { try altered { $0[2] += "\n" } },
  Case("line break within", .payloadUnreadable) { try altered { $0[1].insert("\n", at: $0[1].startIndex) } },
  Case("larger than anything Apple signs", .tooLarge) {
    try altered { $0[1] += String(repeating: "A", count: DecodingLimits.jwsLength) }
  },
]

let payloadCases: [RefusalCase] = [
  unreadable("payload that is no JSON", "{\"transactionId\":"), unreadable("payload with text behind it", "{} {}"),
  unreadable("payload that is an array", "[]"), unreadable("payload with single quotes", "{'transactionId': 1}"),
  unreadable(
    "payload nested too deeply",
    "{\"a\":" + String(repeating: "[", count: 60_000) + String(repeating: "]", count: 60_000) + "}"),
  unreadable("empty payload", ""),
  Case("no transactionId", .payloadIncomplete("transactionId")) { try signed("transactionId", nil) },
  Case("transactionId with a NUL", .payloadIncomplete("transactionId")) { try signed("transactionId", "1\u{0}2") },
  Case("no productId", .payloadIncomplete("productId")) { try signed("productId", nil) },
  // As in verifyReceipt's answers, an unreadable date is not a missing one.
  Case("purchaseDate that is no number", .payloadIncomplete("a readable purchaseDate")) {
    try signed("purchaseDate", "yesterday")
  },
  Case("expiresDate that is no number", .payloadIncomplete("a readable expiresDate")) {
    try signed("expiresDate", "2026-10-19T16:00:00Z")
  },
  Case("revocationDate that is no number", .payloadIncomplete("a readable revocationDate")) {
    try signed("revocationDate", "soon")
  },
  Case("no environment", .payloadIncomplete("environment")) { try signed("environment", nil) },
  Case("unknown environment", .environmentUnknown("Staging")) { try signed("environment", "Staging") },
  Case("Xcode's own chain", .notSignedByApple(.xcode)) {
    var jws = try TestJWS(Authority(), payload: TestJWS.transaction { $0["environment"] = "Xcode" })
    jws.chain = [jws.chain[0]]
    return try jws.text
  },
  Case("Xcode under Apple's chain", .notSignedByApple(.xcode)) { try signed("environment", "Xcode") },
  Case("local testing", .notSignedByApple(.localTesting)) {
    try TestJWS(Authority(), payload: TestJWS.transaction { $0["environment"] = "LocalTesting" }).text
  },
]
