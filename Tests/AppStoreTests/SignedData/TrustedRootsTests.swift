import Foundation
import Reconciliation
import SwiftASN1
import Testing
import X509

@testable import AppStore

private typealias Authority = TestCertificateAuthority

@Suite("Root certificates")
struct TrustedRootsTests {
  private func withDirectory(_ files: [String: [UInt8]], _ body: (String) throws -> Void) throws {
    let directory = FileManager.default.temporaryDirectory.appending(path: "roots-\(UUID())")
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: directory) }
    for (name, content) in files { try Data(content).write(to: directory.appending(path: name)) }
    try body(directory.path(percentEncoded: false))
  }

  private func pem(_ identities: [Authority.Identity]) throws -> [UInt8] {
    Array(try identities.map { try $0.certificate.serializeAsPEM().pemString }.joined(separator: "\n").utf8)
  }

  @Test("Roots are read as DER and PEM, several in one file")
  func readsBothForms() throws {
    let other = try Authority().root
    let files = [
      "root.cer": try Authority.transactions.root.der, "both.pem": try pem([Authority.transactions.root, other]),
      ".hidden": [1],
    ]
    try withDirectory(files) { directory in
      let roots = try TrustedRoots(directory: directory, pinned: false)
      #expect(Set(roots.certificates) == [Authority.transactions.root.certificate, other.certificate])
      let verifier = JWSVerifier(roots: roots)
      #expect(throws: Never.self) { try verifier.verifyTransaction(TestJWS().text, channel: .offline).get() }
    }
  }

  @Test("Missing roots have an error of their own")
  func reportsNone() throws {
    try withDirectory([:]) { directory in
      #expect(throws: TrustedRootsError.noRoots(directory: directory)) {
        try TrustedRoots(directory: directory, pinned: true)
      }
      #expect(throws: TrustedRootsError.noRoots(directory: directory + "/none")) {
        try TrustedRoots(directory: directory + "/none", pinned: true)
      }
    }
    #expect(TrustedRoots.none.isEmpty)
  }

  @Test("With pins, roots other than Apple's are refused")
  func refusesOthers() throws {
    try withDirectory(["root.cer": Authority.transactions.root.der]) { directory in
      let error = #expect(throws: TrustedRootsError.self) { try TrustedRoots(directory: directory, pinned: true) }
      guard case .notPinned(let file, let fingerprint) = error else {
        Issue.record("\(String(describing: error))")
        return
      }
      #expect(file == directory + "/root.cer")
      #expect(fingerprint.count == 64)
      let text = String(describing: error)
      #expect(text.contains(fingerprint) && text.contains(TrustedRoots.applePins[0].fingerprint))
      #expect(text.contains("night-audit trust"))
    }
  }

  @Test(
    "A file without a root is reported with the reason",
    arguments: [
      ([], "it is neither DER nor PEM"), (Array("hello".utf8), "it is neither DER nor PEM"),
      ([0x30, 0x03, 0x02, 0x01, 0x00], "it is not an X.509 certificate"),
      ([UInt8](repeating: 0x30, count: 200_000), "it is too large for a certificate"),
    ] as [([UInt8], String)])
  func refusesOtherFiles(content: [UInt8], reason: String) throws {
    try withDirectory(["a.cer": content]) { directory in
      #expect(throws: TrustedRootsError.unreadable(file: directory + "/a.cer", reason: reason)) {
        try TrustedRoots(directory: directory, pinned: false)
      }
    }
  }

  @Test("A leaf is no root")
  func refusesLeaf() throws {
    #expect(throws: TrustedRootsError.notAuthority(file: "certificate 1")) {
      try TrustedRoots(certificates: [Authority.transactions.leaf.der], pinned: false)
    }
  }
}

@Suite("Refusals of signed data")
struct SignedDataRefusalTests {
  @Test(
    "Each refusal has its meaning",
    arguments: [
      (.signatureMismatch, .signatureInvalid), (.algorithm("none"), .signatureInvalid),
      (.chainNotTrusted, .signatureInvalid),
      (.markerMissing(.leaf), .signatureInvalid), (.notValidAtSignedDate, .expired),
      (.digestTooWeak, .signatureInvalid), (.notThreeParts, .malformed), (.payloadUnreadable, .malformed),
      (.payloadIncomplete("productId"), .undecided), (.notSignedByApple(.xcode), .xcode),
      (.noRoots, .noRoots), (.tooLarge, .undecided), (.environmentUnknown(nil), .undecided),
      (.unsupported("signed attributes"), .undecided),
    ] as [(SignedDataRefusal, SignedDataRefusal.Meaning)])
  func means(refusal: SignedDataRefusal, meaning: SignedDataRefusal.Meaning) {
    #expect(refusal.meaning == meaning)
  }

  @Test("Long texts from the data are shortened")
  func cutsWords() {
    let long = String(repeating: "x", count: 500)
    #expect(SignedDataRefusal.algorithm(long).description.count < 100)
    #expect(SignedDataRefusal.environmentUnknown(long).description.count < 100)
  }
}
