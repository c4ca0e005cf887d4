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
  let bytes = try #require(Base64Text.decodeReceipt(base64.utf8))
  return AppReceiptVerifier(roots: try Authority.bothRoots).verify(bytes)
}

/// An accepted receipt, with a change made before signing.
@discardableResult
private func accepted(_ change: (inout TestAppReceipt) throws -> Void = { _ in }) throws -> AppReceipt {
  try verify(altered(change)).get()
}

/// A receipt, with a change made before signing.
@Sendable private func altered(_ change: (inout TestAppReceipt) throws -> Void) throws -> String {
  var receipt = try TestAppReceipt()
  try change(&receipt)
  return try receipt.base64
}

@Suite("Genuine app receipts")
struct AppReceiptTests {
  @Test("Every purchase in a receipt is a fact")
  func readsPurchases() throws {
    var built = try TestAppReceipt()
    built.purchases = [
      TestAppReceipt.purchase(), TestAppReceipt.refundedPeriod,
      TestAppReceipt.purchase(id: "1000000000000004", original: "1000000000000001", type: 0),
    ]
    let receipt = try verify(built.base64).get()
    #expect(receipt.environment == .production && receipt.bundleId == "com.example.game")
    #expect(receipt.creationDate == Instant(milliseconds: milliseconds(2026, 6)))
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

  @Test("Empty dates are no statement, and a receipt without purchases is genuine")
  func acceptsLittle() throws {
    let fact = try accepted().transactions[0]
    #expect(fact.revocation == .absent && fact.appAccountToken == .absent)
    #expect(fact.expiresDate == nil && fact.priceMilliunits == nil)
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
    #expect(receipt.transactions.count == 1)
  }

  @Test(
    "The receipt type gives the environment",
    arguments: [
      ("Production", AppleEnvironment.production), ("ProductionVPP", .production), ("ProductionSandbox", .sandbox),
      ("ProductionVPPSandbox", .sandbox),
    ])
  func readsEnvironment(name: String, environment: AppleEnvironment) throws {
    #expect(try accepted { $0.attributes = TestAppReceipt.attributes(environment: name) }.environment == environment)
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

  @Test("A combined digest and RSA name, certificates in any order, and others outside the path are accepted")
  func toleratesSpellings() throws {
    #expect(throws: Never.self) {
      try accepted { $0.signatureAlgorithm[8] = 11 }
      try accepted { $0.certificates = try $0.certificates.reversed() + [Authority.transactions.leaf.der] }
      try accepted { $0.certificates.insert([0x30, 0x00], at: 0) }
    }
  }

  @Test(
    "A leaf with any serial number may sign a receipt",
    arguments: [[0x00, 0x80], [0x00, 0xFF, 0x01], [0x7F], [0x01, 0x00], [UInt8](repeating: 0xFF, count: 20)])
  func acceptsSerialNumbers(serialNumber: [UInt8]) throws {
    let template = Authority.Template.leaf.with { $0.serialNumber = Certificate.SerialNumber(bytes: serialNumber) }
    #expect(throws: Never.self) { try verify(TestAppReceipt(Authority.receipts.with(leaf: template)).base64).get() }
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

@Suite("Refused app receipts")
struct AppReceiptRefusalTests {
  @Test("Each defect has its own refusal", arguments: RefusalCase.receipts)
  func refuses(_ broken: RefusalCase) throws {
    #expect(try verify(broken.payload()) == .failure(broken.refusal))
  }

  @Test("Without roots for receipts, no receipt is judged")
  func refusesWithoutRoots() throws {
    for roots in [.none, try Authority.transactions.roots] {
      #expect(try AppReceiptVerifier(roots: roots).verify(TestAppReceipt().bytes) == .failure(.noRoots))
    }
  }

  @Test("A receipt that is truncated anywhere is unreadable")
  func refusesEveryCut() throws {
    let bytes = try TestAppReceipt().bytes
    let verifier = AppReceiptVerifier(roots: try Authority.bothRoots)
    for length in 0..<bytes.count {
      #expect(verifier.verify(Array(bytes[..<length])) == .failure(.payloadUnreadable), "\(length) bytes")
    }
  }
}

private typealias Case = RefusalCase

/// A genuine root that has issued another intermediate or leaf.
private func chain(
  _ name: String, _ refusal: SignedDataRefusal, intermediate: Authority.Template? = nil,
  leaf: Authority.Template = .leaf
) -> Case {
  Case(name, refusal) { try TestAppReceipt(Authority.receipts.with(intermediate: intermediate, leaf: leaf)).base64 }
}

/// A genuine receipt with a change made before signing.
private func receipt(
  _ name: String, _ refusal: SignedDataRefusal, _ change: @escaping @Sendable (inout TestAppReceipt) throws -> Void
) -> Case {
  Case(name, refusal) { try altered(change) }
}

@Sendable private func foreign() throws -> Authority {
  try Authority(rootKey: Authority.rsaKey(2), intermediateKey: Authority.rsaKey(0), leafKey: Authority.rsaKey(1))
}

let receiptForms: [RefusalCase] = [
  Case("nothing", .payloadUnreadable) { "" },
  Case("random bytes", .payloadUnreadable) {
    var random = SeededGenerator(seed: 1)
    return Data((0..<4_000).map { _ in UInt8.random(in: 0...255, using: &random) }).base64EncodedString()
  },
  Case("a certificate instead", .payloadUnreadable) { try Data(Authority.receipts.leaf.der).base64EncodedString() },
  Case("bytes behind it", .payloadUnreadable) { try Data(TestAppReceipt().bytes + [0]).base64EncodedString() },
  Case("nested without end", .payloadUnreadable) {
    Data([UInt8](repeating: 0x30, count: 200_000).flatMap { [$0, 0x80] }).base64EncodedString()
  },
  receipt("another amount of purchases", .signatureMismatch) {
    $0.signedInstead = $0.content
    $0.purchases.append(TestAppReceipt.purchase(id: "1000000000000009"))
  },
  receipt("a later creation date", .signatureMismatch) {
    $0.signedInstead = $0.content
    $0.attributes = TestAppReceipt.attributes(created: "2026-07-01T00:00:00Z")
  },
  receipt("a signature of the digest", .signatureMismatch) { $0.signedInstead = Array(SHA256.hash(data: $0.content)) },
  Case("digest identifier that is none", .unsupported("unknown digest")) {
    var bytes = try #require(Data(base64Encoded: altered { $0.digest = .sha1WithRSAEncryption }))
    let sha1 = Data([0x06, 0x05, 0x2B, 0x0E, 0x03, 0x02, 0x1A])
    #expect(bytes.range(of: sha1) != nil)
    while let range = bytes.range(of: sha1) {
      bytes.replaceSubrange(range, with: [0x06, 0x05, 0x60, 0x86, 0x48, 0x01, 0x65])
    }
    return bytes.base64EncodedString()
  },
  receipt("two signers", .unsupported("several signers")) { $0.signers = 2 },
  receipt("no signer", .payloadUnreadable) { $0.signers = 0 },
  receipt("SHA-1 after Apple's last such certificate", .digestTooWeak) {
    $0.digest = .sha1WithRSAEncryption
    $0.attributes = TestAppReceipt.attributes(created: "2025-01-24T00:00:00Z")
  },
  receipt("signed attributes", .unsupported("signed attributes")) {
    $0.signedAttributes = TestASN1.element(0xA0, TestASN1.sequence(TestASN1.identifier([0x2A])))
  },
  receipt("unknown signature algorithm", .unsupported("unknown signature algorithm")) { $0.signatureAlgorithm[8] = 10 },
]

let receiptChains: [RefusalCase] = [
  Case("chain of another root", .chainNotTrusted) { try TestAppReceipt(foreign()).base64 },
  receipt("another root's chain before the genuine root", .chainNotTrusted) {
    let foreign = try foreign()
    $0.leaf = foreign.leaf
    $0.certificates = [try foreign.leaf.der, try foreign.intermediate.der, $0.certificates[2]]
  },
  receipt("no certificates", .chainNotTrusted) { $0.certificates = [] },
  receipt("no intermediate", .chainNotTrusted) { $0.certificates.remove(at: 1) },
  receipt("certificate that is none", .certificateUnreadable(1)) { $0.certificates[1] = [0x30, 0x00] },
  receipt("too many certificates", .tooLarge) { $0.certificates = Array(repeating: $0.certificates[0], count: 9) },
  chain(
    "leaf without Apple's marker: a developer's certificate", .markerMissing(.leaf),
    leaf: .leaf.with { $0.marker = nil }),
  chain(
    "leaf with the intermediate's marker", .markerMissing(.leaf),
    leaf: .leaf.with { $0.marker = Authority.intermediateMarker }),
  chain(
    "leaf that may not sign", .certificateNotUsable(.leaf),
    leaf: .leaf.with { $0.usage = KeyUsage(keyEncipherment: true) }),
  chain(
    "leaf signed with SHA-1 after Apple's last such certificate", .digestTooWeak,
    leaf: .leaf.with { $0.signatureAlgorithm = .sha1WithRSAEncryption }),
  chain(
    "intermediate without Apple's marker", .markerMissing(.intermediate),
    intermediate: .intermediate.with { $0.marker = nil }),
  chain(
    "intermediate with the leaf's marker", .markerMissing(.intermediate),
    intermediate: .intermediate.with { $0.marker = Authority.leafMarker }),
  chain(
    "intermediate that is no authority", .intermediateNotAuthority,
    intermediate: .intermediate.with { $0.isAuthority = false }),
  chain(
    "intermediate that had expired", .notValidAtSignedDate,
    intermediate: .intermediate.with { $0.notAfter = date(2026, 5) }),
  receipt("leaf of the transactions' authority, which the verifier trusts for transactions", .chainNotTrusted) {
    let leaf = try Authority.transactions.leaf(.leaf, key: Authority.rsaKey(2))
    $0.leaf = leaf
    $0.certificates = try [leaf.der] + Authority.transactions.chain.dropFirst()
  },
  receipt("signer whose certificate did not come along", .chainNotTrusted) {
    $0.leaf = try Authority.receipts.leaf(.leaf, key: Authority.rsaKey(2))
  },
  receipt("signature by a leaf with an elliptic curve", .signatureMismatch) {
    let leaf = try Authority.receipts.leaf(.leaf)
    $0.certificates[0] = try leaf.der
    $0.leaf = Authority.Identity(certificate: leaf.certificate, key: try Authority.rsaKey(2))
  },
]

let receiptContents: [RefusalCase] =
  [
    ("created before the leaf was valid", .notValidAtSignedDate, "Production", "2014-12-31T23:59:59Z"),
    ("created after the leaf expired", .notValidAtSignedDate, "Production", "2027-10-01T00:00:01Z"),
    ("no creation date", .payloadIncomplete("creation date"), "Production", ""),
    ("unknown environment", .environmentUnknown("Staging"), "Staging", "2026-06-01T00:00:00Z"),
    ("Xcode's name under Apple's signature", .notSignedByApple(.xcode), "Xcode", "2026-06-01T00:00:00Z"),
  ].map { (name: String, refusal: SignedDataRefusal, environment: String, created: String) in
    receipt(name, refusal) { $0.attributes = TestAppReceipt.attributes(environment: environment, created: created) }
  } + [
    Case("Xcode's", .notSignedByApple(.xcode)) {
      var receipt = try TestAppReceipt(foreign())
      receipt.encoding = .xcode
      receipt.attributes = TestAppReceipt.attributes(environment: "Xcode")
      return try receipt.base64
    },
    receipt("too many purchases", .tooLarge) {
      $0.purchases = Array(repeating: [], count: DecodingLimits.receiptPurchases + 1)
    },
    receipt("content that is no receipt", .payloadIncomplete("readable content")) {
      $0.attributes = [[0x0C, 0x01, 0x41]]
    },
    receipt("attribute without a value", .payloadIncomplete("readable content")) {
      $0.attributes.append(TestASN1.sequence(TestASN1.integer(2), TestASN1.integer(1)))
    },
    receipt("purchase that is no set", .payloadIncomplete("readable content")) {
      $0.attributes.append(TestASN1.attribute(17, [0x05, 0x00]))
    },
    receipt("no bundle", .payloadIncomplete("bundle identifier")) { $0.attributes.remove(at: 2) },
    receipt("no environment", .environmentUnknown(nil)) { $0.attributes.removeFirst() },
  ]
