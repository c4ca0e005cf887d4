import Foundation
import Reconciliation
import Testing

@testable import AppStore

@Suite("Offline judgements")
struct OfflineJudgeTests {
  private func judgement(_ payload: String, roots: TrustedRoots? = nil) throws -> OfflineJudgement {
    OfflineJudge(roots: try roots ?? TestCertificateAuthority.bothRoots).judge(payload).judgement
  }

  private func proof(_ payload: String) throws -> GenuineProof {
    let judgement = try judgement(payload)
    return try #require(judgement.proof, "\(judgement)")
  }

  @Test("A signed transaction is genuine")
  func signedTransaction() throws {
    let proof = try proof(try TestJWS().text)
    #expect(proof.signedTransactionId == "2000000123456789" && proof.environment == .production)
    #expect(proof.bundleId == "com.example.game" && proof.facts.map(\.channel) == [.offline])
  }

  @Test("A signed transaction without an app is a claim with its ID")
  func withoutBundle() throws {
    let payload = try TestJWS(payload: TestJWS.transaction { $0["bundleId"] = nil }).text
    let claim = try #require(try judgement(payload).unproven)
    #expect(claim.transactionIds == ["2000000123456789"])
    let verifier = JWSVerifier(roots: try TestCertificateAuthority.transactions.roots)
    #expect(verifier.verifyTransaction(payload, channel: .offline) == .failure(.payloadIncomplete("bundleId")))
  }

  @Test("A notification counts as the transaction in it")
  func notification() throws {
    let payload = try ServerAPIScript.notification("u1")
    #expect(try proof(payload) == proof(try TestJWS().text))
    #expect(try proof(#"{"signedPayload":"\#(payload)"}"#).signedTransactionId == "2000000123456789")
  }

  @Test("A notification with a forged transaction is forged")
  func notificationAroundAForgery() throws {
    let payload = try ServerAPIScript.notification("u", signed: ServerAPIScript.spoilt(TestJWS().text))
    #expect(try judgement(payload).refusal == .signatureInvalid)
  }

  @Test(
    "Any other signed document is a receipt without purchases, and forged with a false signature",
    arguments: [
      TestJWS.renewalInfo,
      [
        "receiptType": "Production", "appAppleId": 1_234_567_890, "bundleId": "com.example.game",
        "receiptCreationDate": milliseconds(2026, 6), "originalApplicationVersion": "1.0", "appTransactionId": "7",
      ],
      [
        "notificationType": "TEST", "notificationUUID": "u", "signedDate": milliseconds(2026, 6),
        "data": ["bundleId": "com.example.game", "environment": "Production"] as [String: any Sendable],
      ],
      ["signedDate": milliseconds(2026, 6), "somethingNew": true],
    ] as [[String: any Sendable]])
  func otherThings(payload: [String: any Sendable]) throws {
    let proof = try proof(try TestJWS(payload: payload).text)
    #expect(proof.facts.isEmpty && proof.signedTransactionId == nil)
    if payload["receiptType"] != nil { #expect(proof.environment == .production) }
    let forged = ServerAPIScript.spoilt(try TestJWS(payload: payload).text)
    #expect(try judgement(forged).refusal == .signatureInvalid)
  }

  @Test("Documents of Xcode are refused as Xcode's")
  func xcode() throws {
    for payload in [
      TestJWS.transaction { $0["environment"] = "Xcode" },
      ["receiptType": "Xcode", "bundleId": "com.example.game", "receiptCreationDate": milliseconds(2026, 6)],
    ] { #expect(try judgement(try TestJWS(payload: payload).text) == .refused(.xcode)) }
  }

  @Test("A payload that cannot be judged is a claim with its transaction IDs")
  func claims() throws {
    let unknown = try TestJWS(payload: TestJWS.transaction { $0["environment"] = "Moon" }).text
    let claim = try #require(try judgement(unknown).unproven)
    #expect(claim.transactionIds == ["2000000123456789"] && claim.bundleId == "com.example.game")

    var receipts = [try TestAppReceipt(), try TestAppReceipt()]
    receipts[0].signers = 2
    receipts[1].signedAttributes = TestASN1.element(0xA0, [])
    for index in receipts.indices {
      receipts[index].purchases = [TestAppReceipt.purchase(id: "7"), TestAppReceipt.purchase(id: "8")]
      let claim = try #require(try judgement(receipts[index].base64).unproven)
      #expect(claim.transactionIds == ["8", "7"] && claim.bundleId == "com.example.game")
    }
  }

  @Test("An old transaction receipt is a claim, with and without roots", arguments: [true, false])
  func oldReceipts(hasRoots: Bool) throws {
    let judge = OfflineJudge(roots: hasRoots ? try TestCertificateAuthority.bothRoots : nil)
    let claim = try #require(judge.judge(TestOldReceipt.base64).judgement.unproven)
    #expect(claim.transactionIds == [TestOldReceipt.transactionId] && claim.bundleId == "com.example.game")
    #expect(claim.content?.ownTransactionId == TestOldReceipt.transactionId)
    #expect(claim.content?.environment == nil, "an old transaction receipt does not prove its environment")
  }

  @Test("Without roots, signed data is not judged, and junk is malformed")
  func withoutRoots() throws {
    let judge = OfflineJudge(roots: nil)
    #expect(!judge.hasRoots)
    #expect(judge.judge(try TestJWS().text).judgement == .noRoots(nil))
    #expect(judge.judge("junk").judgement.refusal == .malformed)
  }

  @Test("The written content is the same with and without roots")
  func writtenContent() throws {
    var receipt = try TestAppReceipt()
    receipt.purchases = [TestAppReceipt.purchase(id: "7"), TestAppReceipt.purchase(id: "8")]
    let payload = try receipt.base64
    let written = WrittenContent(try proof(payload))
    #expect(OfflineJudge(roots: nil).judge(payload).judgement == .noRoots(written))
    #expect(written.purchases.keys.sorted() == ["7", "8"])
  }
}
