import Foundation
import Reconciliation
import Testing
import X509

@testable import AppStore

@Suite("The signature of an old transaction receipt")
struct OldReceiptVerifierTests {
  private func finding(
    _ receipt: TestOldReceipt, roots: TrustedRoots? = nil, intermediates: [[UInt8]] = []
  ) throws -> OldReceiptVerifier.Finding {
    let roots = try roots ?? TestCertificateAuthority.bothRoots
    let parsed = try OldTransactionReceipt.parse(base64: receipt.base64).get()
    return OldReceiptVerifier(roots: roots, intermediates: intermediates).verify(parsed)
  }

  private func altered(_ change: (inout TestOldReceipt) throws -> Void) rethrows -> TestOldReceipt {
    var receipt = TestOldReceipt()
    try change(&receipt)
    return receipt
  }

  @Test("by a leaf of our root is Apple's")
  func authentic() throws {
    #expect(try finding(TestOldReceipt()) == .authentic)
  }

  @Test("by a leaf of an intermediate that is known here is Apple's, and of another one is not judged")
  func intermediate() throws {
    let receipt = altered { $0.signer = TestOldReceipt.signer(by: TestOldReceipt.intermediate) }
    let known = try TestOldReceipt.intermediate.der
    #expect(try finding(receipt, intermediates: [known]) == .authentic)
    #expect(try finding(receipt) == .undecided)
    #expect(
      try finding(receipt, roots: TestCertificateAuthority.transactions.roots, intermediates: [known]) == .undecided)
    let notForThis = altered { $0.signer = TestOldReceipt.signer(by: TestCertificateAuthority.receipts.intermediate) }
    #expect(
      try finding(notForThis, intermediates: [TestCertificateAuthority.receipts.intermediate.der]) == .undecided,
      "that one issues leaves for app receipts")
  }

  @Test("that does not fit the content is forged")
  func forged() throws {
    let other = altered { $0.signedInstead = Array("{ }".utf8) }
    #expect(try finding(other) == .forged)
    let cheaper = altered { receipt in
      receipt.signedInstead = Array(receipt.infoText.utf8)
      receipt.info[6].value = "com.example.game.castle"
    }
    #expect(try finding(cheaper) == .forged)
  }

  @Test("of a form that is not known is not judged")
  func unknownForms() throws {
    let newer = altered {
      $0.version = 3
      $0.signedInstead = [1]
    }
    #expect(try finding(newer) == .undecided)
    #expect(try finding(altered { $0.certificate = [] }) == .undecided)
    #expect(try finding(altered { $0.certificate = [0x30, 0x00] }) == .undecided)
    let big = try TestCertificateAuthority.receipts.leaf.der
    #expect(try finding(altered { $0.certificate = big }) == .undecided)
  }

  @Test("by a certificate that leads elsewhere, was issued for another purpose or had ended is not judged")
  func untrusted() throws {
    let root = TestCertificateAuthority.receipts.root
    let selfMade = altered { $0.signer = TestOldReceipt.signer(by: TestCertificateAuthority.receipts.leaf) }
    #expect(try finding(selfMade) == .undecided)
    #expect(try finding(altered { $0.signer = TestOldReceipt.signer(by: root, marker: nil) }) == .undecided)
    let ended = altered { $0.signer = TestOldReceipt.signer(by: root, notAfter: date(2026, 5)) }
    #expect(try finding(ended) == .undecided)
    let future = altered { $0.signer = TestOldReceipt.signer(by: root, notBefore: date(2026, 7)) }
    #expect(try finding(future) == .undecided)
    #expect(try finding(TestOldReceipt(), roots: TrustedRoots.none) == .undecided)
  }

  @Test("makes it evidence, with all that it says")
  func evidence() throws {
    let receipt = altered { receipt in
      receipt.info += [
        ("expires-date", "1782950400000"), ("web-order-line-item-id", "77"), ("is-trial-period", "true"),
      ]
      receipt.info[2].value = "170000029449000"
    }
    let judge = OfflineJudge(roots: try TestCertificateAuthority.bothRoots)
    guard case .genuine(let proof) = try judge.judge(receipt.base64).judgement else {
      Issue.record("not genuine")
      return
    }
    var fact = TransactionFact(
      environment: .production, transactionId: "170000029449420", productId: "com.example.game.gems",
      channel: .offline, signedDate: Instant(milliseconds: 1_780_272_000_000))
    fact.bundleId = "com.example.game"
    fact.originalTransactionId = "170000029449000"
    fact.webOrderLineItemId = "77"
    fact.productType = .autoRenewable
    fact.quantity = 2
    fact.purchaseDate = fact.signedDate
    fact.originalPurchaseDate = fact.signedDate
    fact.expiresDate = Instant(milliseconds: 1_782_950_400_000)
    fact.hasOffer = true
    #expect(proof.facts == [fact] && proof.signedTransactionId == fact.transactionId)
    #expect(proof.environment == .production && proof.bundleId == "com.example.game")
  }

  @Test("does not cover the environment: the sandbox is told by its ids, too")
  func environment() throws {
    let outer = altered { $0.outer.append(("environment", "Sandbox")) }
    let id = altered { $0.info[3].value = "1000000046178817" }
    for receipt in [outer, id] {
      #expect(try OldTransactionReceipt.parse(base64: receipt.base64).get().environment == .sandbox)
    }
    #expect(try OldTransactionReceipt.parse(base64: TestOldReceipt().base64).get().environment == .production)
  }

  @Test("leads through Apple's own authority, which is known here")
  func applesAuthority() throws {
    let root = try #require(TrustedRoots.applePins.first { $0.name == "Apple Root CA" })
    let authority = try #require(OldReceiptVerifier.knownAuthorities.first)
    #expect(authority.issuer.description.contains("CN=\(root.name)"))
    #expect(authority.subject.description.contains("CN=Apple iTunes Store Certification Authority"))
    #expect(
      TrustedRoots.fingerprint(OldReceiptVerifier.iTunesStoreAuthority)
        == "447ad65484610f20fdc33804c8597a1e208fbe4ef9c5653485cc7d3df730c016")
  }
}
