import Crypto
import Foundation
import Reconciliation
import SwiftASN1
import TestSupport
import Testing
import X509

@testable import AppStore

private typealias Authority = TestCertificateAuthority

private func verify(_ base64: String) throws -> Result<AppReceipt, SignedDataRefusal> {
  AppReceiptVerifier(roots: try Authority.bothRoots).verify(base64: base64)
}

/// An accepted receipt, with a change made before signing.
@discardableResult
private func accepted(_ change: (inout TestAppReceipt) throws -> Void = { _ in }) throws -> AppReceipt {
  try verify(altered(change)).get()
}

@Suite("Genuine app receipts")
struct AppReceiptTests {
  @Test("Every purchase in a receipt is a fact")
  func readsPurchases() throws {
    var built = try TestAppReceipt()
    built.purchases = [
      TestAppReceipt.purchase(),
      TestAppReceipt.purchase(
        id: "1000000000000003", original: "1000000000000002", type: 3, cancelled: "2026-05-31T13:00:00Z",
        expires: "2026-06-30T12:00:00Z"),
      TestAppReceipt.purchase(id: "1000000000000004", original: "1000000000000001", type: 0),
    ]
    let receipt = try verify(built.base64).get()
    #expect(receipt.environment == .production && receipt.bundleId == "com.example.game")
    #expect(receipt.creationDate == Instant(milliseconds: milliseconds(2026, 6)))
    #expect(receipt.incompletePurchases == 0)
    #expect(receipt.transactions.map(\.transactionId) == ["1000000000000001", "1000000000000003", "1000000000000004"])
    #expect(receipt.transactions.map(\.isRenewal) == [nil, nil, nil])
    #expect(receipt.transactions.map(\.productType) == [.consumable, .autoRenewable, .nonConsumable])

    var expected = TransactionFact(
      environment: .production, transactionId: "1000000000000003", productId: "gems.100", channel: .offline,
      signedDate: receipt.creationDate)
    expected.originalTransactionId = "1000000000000002"
    expected.webOrderLineItemId = "2000000000123"
    expected.bundleId = "com.example.game"
    expected.productType = .autoRenewable
    expected.quantity = 2
    expected.purchaseDate = Instant(rfc3339: "2026-05-31T12:00:00Z")
    expected.originalPurchaseDate = Instant(rfc3339: "2026-05-30T12:00:00Z")
    expected.expiresDate = Instant(rfc3339: "2026-06-30T12:00:00Z")
    expected.revocation = .stated(Revocation(date: Instant(milliseconds: 1_780_232_400_000)))
    #expect(receipt.transactions[1] == expected)
    let payload = ReceivedPayload(try built.base64)
    #expect(payload.listedTransactions == receipt.transactions && payload.claimedTransaction == nil)
    #expect(ReceivedPayload("rubbish").listedTransactions == nil)
  }

  @Test("Empty dates are no statement")
  func emptyDatesAreSilent() throws {
    let fact = try accepted().transactions[0]
    #expect(fact.revocation == .absent && fact.appAccountToken == .absent)
    #expect(fact.expiresDate == nil && fact.priceMilliunits == nil)
  }

  @Test("A receipt without purchases is genuine")
  func acceptsNoPurchases() throws {
    #expect(try accepted { $0.purchases = [] }.transactions.isEmpty)
  }

  @Test("A trial or an offer is stated, but never its absence, because not every offer has a field")
  func readsOffers() throws {
    let plain = TestAppReceipt.purchase().filter { $0 != TestASN1.attribute(1713, TestASN1.integer(0)) }
    let receipt = try accepted {
      $0.purchases = [
        plain + [TestASN1.attribute(1719, TestASN1.integer(0))],
        TestAppReceipt.purchase() + [TestASN1.attribute(1719, TestASN1.integer(0))],
        plain + [TestASN1.attribute(1713, TestASN1.integer(1))],
        plain + [TestASN1.attribute(1721, TestASN1.utf8("spring"))],
      ]
    }
    #expect(receipt.transactions.map(\.hasOffer) == [nil, nil, true, true])
  }

  @Test("Purchases without IDs are counted, and are no facts")
  func countsIncompletePurchases() throws {
    let receipt = try accepted { $0.purchases.append([TestASN1.attribute(1702, TestASN1.utf8("gems.100"))]) }
    #expect(receipt.transactions.count == 1 && receipt.incompletePurchases == 1)
  }

  @Test(
    "The receipt type gives the environment",
    arguments: [
      ("Production", AppleEnvironment.production), ("ProductionVPP", .production), ("ProductionSandbox", .sandbox),
      ("ProductionVPPSandbox", .sandbox),
    ])
  func readsEnvironment(name: String, environment: AppleEnvironment) throws {
    let receipt = try accepted { $0.attributes = TestAppReceipt.attributes(environment: name) }
    #expect(receipt.environment == environment)
  }

  @Test("A receipt with indefinite lengths is read")
  func readsIndefiniteLengths() throws {
    #expect(try accepted { $0.encoding = .indefinite } == accepted())
  }

  @Test("A receipt in lines and without padding is read")
  func readsWrappedBase64() throws {
    var built = try TestAppReceipt()
    // Lengthened until padding is needed.
    var filler: [UInt8] = []
    while try !built.base64.hasSuffix("=") {
      filler.append(1)
      built.attributes = TestAppReceipt.attributes() + [TestASN1.attribute(9_998, filler)]
    }
    let text = try built.base64
    let lines = stride(from: 0, to: text.count, by: 64).map { String(text.dropFirst($0).prefix(64)) }
    let wrapped = lines.joined(separator: "\r\n").replacing("=", with: "") + "\n"
    #expect(try verify(wrapped).get() == verify(text).get())
  }

  @Test("A digest that is named together with RSA, and certificates in any order, are accepted")
  func toleratesSpellings() throws {
    #expect(throws: Never.self) {
      try accepted {
        $0.signatureAlgorithm[8] = 11
        $0.certificates = try $0.certificates.reversed() + [Authority.transactions.leaf.der]
      }
    }
  }

  @Test(
    "A leaf with any serial number may sign a receipt",
    arguments: [[0x00, 0x80], [0x00, 0xFF, 0x01], [0x7F], [0x01, 0x00], [UInt8](repeating: 0xFF, count: 20)])
  func acceptsSerialNumbers(serialNumber: [UInt8]) throws {
    let template = Authority.Template.leaf.with { $0.serialNumber = Certificate.SerialNumber(bytes: serialNumber) }
    #expect(throws: Never.self) { try verify(withLeaf(template)).get() }
  }

  @Test("An unreadable certificate outside the path is ignored")
  func ignoresOtherCertificates() throws {
    #expect(throws: Never.self) { try accepted { $0.certificates.insert([0x30, 0x00], at: 0) } }
  }

  @Test("SHA-1 is accepted as long as Apple used it", arguments: ["2015-06-01T00:00:00Z", "2024-12-31T23:59:59Z"])
  func acceptsOldSHA1(created: String) throws {
    #expect(throws: Never.self) {
      try accepted {
        $0.digest = .sha1WithRSAEncryption
        $0.attributes = TestAppReceipt.attributes(created: created)
      }
    }
  }
}

struct ReceiptRefusalCase: Sendable, CustomTestStringConvertible {
  let testDescription: String
  let refusal: SignedDataRefusal
  let receipt: @Sendable () throws -> String

  init(_ name: String, _ refusal: SignedDataRefusal, _ receipt: @escaping @Sendable () throws -> String) {
    testDescription = name
    self.refusal = refusal
    self.receipt = receipt
  }

  static var all: [ReceiptRefusalCase] { receiptCases }
}

private typealias Case = ReceiptRefusalCase

@Suite("Refused app receipts")
struct AppReceiptRefusalTests {
  @Test("Each defect has its own refusal", arguments: receiptCases)
  func refuses(_ broken: ReceiptRefusalCase) throws {
    #expect(try verify(broken.receipt()) == .failure(broken.refusal))
  }

  @Test("Without roots for receipts, no receipt is judged")
  func refusesWithoutRoots() throws {
    for roots in [.none, try Authority.transactions.roots] {
      #expect(try AppReceiptVerifier(roots: roots).verify(base64: TestAppReceipt().base64) == .failure(.noRoots))
    }
  }

  @Test("A receipt that is truncated anywhere is unreadable")
  func refusesEveryCut() throws {
    let bytes = try TestAppReceipt().bytes
    let verifier = AppReceiptVerifier(roots: try Authority.bothRoots)
    for length in 0..<bytes.count {
      let cut = Data(bytes[..<length]).base64EncodedString()
      #expect(verifier.verify(base64: cut) == .failure(.payloadUnreadable), "\(length) bytes")
    }
  }
}

@Sendable private func altered(_ change: (inout TestAppReceipt) throws -> Void) throws -> String {
  var receipt = try TestAppReceipt()
  try change(&receipt)
  return try receipt.base64
}

private let receiptCases: [Case] = [
  Case("nothing", .payloadUnreadable) { "" },
  Case("no base64", .payloadUnreadable) { "{ \"signature\" = 1; }" },
  Case("random bytes", .payloadUnreadable) {
    var random = SeededGenerator(seed: 1)
    return Data((0..<4_000).map { _ in UInt8.random(in: 0...255, using: &random) }).base64EncodedString()
  },
  Case("a certificate instead", .payloadUnreadable) { try Data(Authority.receipts.leaf.der).base64EncodedString() },
  Case("bytes behind it", .payloadUnreadable) { try Data(TestAppReceipt().bytes + [0]).base64EncodedString() },
  Case("nested without end", .payloadUnreadable) {
    Data([UInt8](repeating: 0x30, count: 200_000).flatMap { [$0, 0x80] }).base64EncodedString()
  },
  Case("larger than the bound", .tooLarge) { String(repeating: "A", count: DecodingLimits.receiptLength + 1) },
  Case("another amount of purchases", .signatureMismatch) {
    try altered {
      $0.signedInstead = $0.content
      $0.purchases.append(TestAppReceipt.purchase(id: "1000000000000009"))
    }
  },
  Case("a later creation date", .signatureMismatch) {
    try altered {
      $0.signedInstead = $0.content
      $0.attributes = TestAppReceipt.attributes(created: "2026-07-01T00:00:00Z")
    }
  },
  Case("signature of the other digest", .signatureMismatch) {
    let weak = try altered { $0.digest = .sha1WithRSAEncryption }
    let bytes = try #require(Data(base64Encoded: weak))
    let sha1 = Data([0x06, 0x05, 0x2B, 0x0E, 0x03, 0x02, 0x1A])
    let sha256 = Data([0x06, 0x05, 0x60, 0x86, 0x48, 0x01, 0x65])
    #expect(bytes.range(of: sha1) != nil)
    // Replaced by an invalid digest identifier of the same length, which makes the form unknown.
    var changed = bytes
    while let range = changed.range(of: sha1) { changed.replaceSubrange(range, with: sha256) }
    #expect(try verify(changed.base64EncodedString()) == .failure(.unsupported("unknown digest")))
    return try altered {
      $0.signedInstead = Array(SHA256.hash(data: $0.content))
    }
  },
  Case("chain of another root", .chainNotTrusted) { try TestAppReceipt(foreign()).base64 },
  Case("another root's chain before the genuine root", .chainNotTrusted) {
    let foreign = try foreign()
    return try altered {
      $0.leaf = foreign.leaf
      $0.certificates = [try foreign.leaf.der, try foreign.intermediate.der, $0.certificates[2]]
    }
  },
  Case("no certificates", .chainNotTrusted) { try altered { $0.certificates = [] } },
  Case("no intermediate", .chainNotTrusted) { try altered { $0.certificates.remove(at: 1) } },
  Case("certificate that is none", .certificateUnreadable(1)) { try altered { $0.certificates[1] = [0x30, 0x00] } },
  Case("too many certificates", .tooLarge) {
    try altered { $0.certificates = Array(repeating: $0.certificates[0], count: 9) }
  },
  Case("too many purchases", .tooLarge) {
    try altered { $0.purchases = Array(repeating: [], count: DecodingLimits.receiptPurchases + 1) }
  },
  Case("leaf without Apple's marker: a developer's certificate", .markerMissing(.leaf)) {
    try withLeaf(.leaf.with { $0.marker = nil })
  },
  Case("leaf with the intermediate's marker", .markerMissing(.leaf)) {
    try underIntermediate(.intermediate, leaf: .leaf.with { $0.marker = Authority.intermediateMarker })
  },
  Case("leaf that may not sign", .certificateNotUsable(.leaf)) {
    try underIntermediate(.intermediate, leaf: .leaf.with { $0.usage = KeyUsage(keyEncipherment: true) })
  },
  Case("intermediate without Apple's marker", .markerMissing(.intermediate)) {
    try underIntermediate(.intermediate.with { $0.marker = nil })
  },
  Case("intermediate with the leaf's marker", .markerMissing(.intermediate)) {
    try underIntermediate(.intermediate.with { $0.marker = Authority.leafMarker })
  },
  Case("intermediate that is no authority", .intermediateNotAuthority) {
    try underIntermediate(.intermediate.with { $0.isAuthority = false })
  },
  Case("intermediate that had expired", .notValidAtSignedDate) {
    try underIntermediate(.intermediate.with { $0.notAfter = date(2026, 5) })
  },
  Case("leaf of the transactions' authority, which the verifier trusts for transactions", .chainNotTrusted) {
    let leaf = try Authority.transactions.leaf(.leaf, key: Authority.rsaKey(2))
    return try altered {
      $0.leaf = leaf
      $0.certificates = try [leaf.der] + Authority.transactions.chain.dropFirst()
    }
  },
  Case("signer whose certificate did not come along", .chainNotTrusted) {
    try altered { $0.leaf = try Authority.receipts.leaf(.leaf, key: Authority.rsaKey(2)) }
  },
  Case("two signers", .unsupported("several signers")) { try altered { $0.signers = 2 } },
  Case("no signer", .payloadUnreadable) { try altered { $0.signers = 0 } },
  Case("signature by a leaf with an elliptic curve", .signatureMismatch) {
    let leaf = try Authority.receipts.leaf(.leaf)
    return try altered {
      $0.certificates[0] = try leaf.der
      $0.leaf = TestCertificateAuthority.Identity(certificate: leaf.certificate, key: try Authority.rsaKey(2))
    }
  },
  Case("created before the leaf was valid", .notValidAtSignedDate) {
    try altered { $0.attributes = TestAppReceipt.attributes(created: "2014-12-31T23:59:59Z") }
  },
  Case("created after the leaf expired", .notValidAtSignedDate) {
    try altered { $0.attributes = TestAppReceipt.attributes(created: "2027-10-01T00:00:01Z") }
  },
  Case("SHA-1 after Apple's last such certificate", .digestTooWeak) {
    try altered {
      $0.digest = .sha1WithRSAEncryption
      $0.attributes = TestAppReceipt.attributes(created: "2025-01-24T00:00:00Z")
    }
  },
  Case("leaf signed with SHA-1 after Apple's last such certificate", .digestTooWeak) {
    try withLeaf(.leaf.with { $0.signatureAlgorithm = .sha1WithRSAEncryption })
  },
  Case("signed attributes", .unsupported("signed attributes")) {
    try altered { $0.signedAttributes = TestASN1.element(0xA0, TestASN1.sequence(TestASN1.identifier([0x2A]))) }
  },
  Case("unknown signature algorithm", .unsupported("unknown signature algorithm")) {
    try altered { $0.signatureAlgorithm[8] = 10 }
  },
  Case("content that is no receipt", .payloadIncomplete("readable content")) {
    try altered { $0.attributes = [[0x0C, 0x01, 0x41]] }
  },
  Case("attribute without a value", .payloadIncomplete("readable content")) {
    try altered { $0.attributes.append(TestASN1.sequence(TestASN1.integer(2), TestASN1.integer(1))) }
  },
  Case("purchase that is no set", .payloadIncomplete("readable content")) {
    try altered { $0.attributes.append(TestASN1.attribute(17, [0x05, 0x00])) }
  },
  Case("no bundle", .payloadIncomplete("bundle identifier")) { try altered { $0.attributes.remove(at: 2) } },
  Case("no creation date", .payloadIncomplete("creation date")) {
    try altered { $0.attributes = TestAppReceipt.attributes(created: "") }
  },
  Case("no environment", .environmentUnknown(nil)) { try altered { $0.attributes.removeFirst() } },
  Case("unknown environment", .environmentUnknown("Staging")) {
    try altered { $0.attributes = TestAppReceipt.attributes(environment: "Staging") }
  },
  Case("Xcode's", .notSignedByApple(.xcode)) {
    var receipt = try TestAppReceipt(foreign())
    receipt.encoding = .xcode
    receipt.attributes = TestAppReceipt.attributes(environment: "Xcode")
    return try receipt.base64
  },
  Case("Xcode's name under Apple's signature", .notSignedByApple(.xcode)) {
    try altered { $0.attributes = TestAppReceipt.attributes(environment: "Xcode") }
  },
]

@Sendable private func withLeaf(_ template: Authority.Template) throws -> String {
  let leaf = try Authority.receipts.leaf(template, key: Authority.rsaKey(2))
  return try altered {
    $0.leaf = leaf
    $0.certificates[0] = try leaf.der
  }
}

@Sendable private func underIntermediate(
  _ template: Authority.Template, leaf leafTemplate: Authority.Template = .leaf
) throws -> String {
  let root = Authority.receipts.root
  let intermediate = try Authority.issue(template, key: Authority.rsaKey(1), by: root)
  let leaf = try Authority.issue(leafTemplate, key: Authority.rsaKey(2), by: intermediate)
  return try altered {
    $0.leaf = leaf
    $0.certificates = [try leaf.der, try intermediate.der, try root.der]
  }
}

@Sendable private func foreign() throws -> Authority {
  try Authority(rootKey: Authority.rsaKey(2), intermediateKey: Authority.rsaKey(0), leafKey: Authority.rsaKey(1))
}
