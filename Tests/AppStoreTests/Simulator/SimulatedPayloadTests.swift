import Reconciliation
import Testing

@testable import AppStore

/// Signed payloads and receipts that the simulator makes, and its answers about them.
@Suite(.timeLimit(.minutes(10)))
struct SimulatedPayloadTests {
  private typealias World = SimulatedWorld
  private static let payload = World.payload(77)

  @Test func simulatedPayloadsVerify() async throws {
    try await SigningSimulator.run(World.ofEveryKind(), makesReceipts: true) { setting in
      for form in ["signed", "app", "notification"] {
        let payload = try await setting.payload(form, ["1"])
        let proof = try #require(setting.judge.judge(payload).judgement.proof, "\(form)")
        #expect(proof.facts.map(\.transactionId) == ["1"] && proof.bundleId == "com.example.game", "\(form)")
        #expect(proof.environment == .production && proof.facts.allSatisfy { $0.quantity == 2 }, "\(form)")
      }
      for form in ["renewalInfo", "appTransaction"] {
        let payload = try await setting.payload(form, ["4"])
        let proof = try #require(setting.judge.judge(payload).judgement.proof, "\(form)")
        #expect(proof.facts.isEmpty && proof.environment == .production, "\(form)")
      }
      for damage in [
        "spaceForPlus", "otherAlphabet", "lostPadding", "lines", "quotes", "json", "bytea", "percent", "truncated",
      ] {
        for form in ["signed", "app", "transaction"] {
          let payload = try await setting.payload(form, ["1", "2"], #","damage":"\#(damage)""#)
          switch setting.judge.judge(payload).judgement {
          case .genuine: #expect(damage != "truncated" && form != "transaction")
          // Only Apple can verify an old transaction receipt.
          case .claim(let claim):
            #expect(damage != "truncated" && form == "transaction" && claim.bundleId == "com.example.game")
          case .refused(let reason, _): #expect(damage == "truncated" && reason == .malformed, "\(damage) of \(form)")
          case .noRoots: Issue.record("\(damage) of \(form)")
          }
        }
      }
      // `verifyReceipt` knows a receipt that was made, and answers about another one on request.
      let mine = try await setting.payload("app", ["1", "2", "7"], #","damage":"spaceForPlus""#)
      let written = WrittenContent(try #require(setting.judge.judge(mine).judgement.proof))
      let receipt = try #require(try await setting.simulator.verify(mine).outcome.receipt)
      #expect(receipt.facts.map(\.transactionId) == ["1", "2", "7"] && receipt.contradictions(with: written).isEmpty)
      let whole = try await setting.payload("app", ["1", "2"])
      let other = try await setting.payload("app", ["1"], #","signedDate":\#(World.start - World.day)"#)
      let confused = World.receipt(whole, ["1", "2"], #""answeredAs":"\#(other)""#)
      try await setting.simulator.control("world", World.ofEveryKind(receipts: confused))
      let local = WrittenContent(try #require(setting.judge.judge(whole).judgement.proof))
      let wrong = try #require(try await setting.simulator.verify(whole).outcome.receipt).contradictions(with: local)
      #expect(wrong.contains(.missing(transactionId: "2")) && wrong.count == 2, "the creation date differs, too")
    }
  }

  @Test func datesComeInEveryForm() async throws {
    try await SigningSimulator.run(World.ofEveryKind()) { setting in
      for dates in ["all", "text", "milliseconds"] {
        let receipt = World.receipt(Self.payload, ["2", "3"], #""dates":"\#(dates)""#)
        try await setting.simulator.control("world", World.ofEveryKind(receipts: receipt))
        let answer = try #require(try await setting.simulator.verify(Self.payload).outcome.receipt)
        let refund = Revocation(date: Instant(milliseconds: World.start - World.hour), reason: 1)
        #expect(answer.facts.first?.revocation == .stated(refund), "\(dates)")
        #expect(answer.facts.map(\.expiresDate) == [nil, Instant(milliseconds: World.start - 5 * World.hour)])
        #expect(answer.creationDate == Instant(milliseconds: World.start - 2 * World.hour))
        #expect(answer.requestDate == Instant(milliseconds: World.start))
      }
    }
  }

  @Test func compressedAnswersAreReadAndABombOrAMalformedReceiptIsRefused() async throws {
    let receipt = World.receipt(Self.payload, ["2"])
    try await SigningSimulator.run(World.ofEveryKind(receipts: receipt)) { setting in
      try await setting.force(#"{"compression":"gzip"}"#)
      let receipt = try #require(try await setting.simulator.verify(Self.payload).outcome.receipt)
      #expect(receipt.facts.map(\.transactionId) == ["2"])
      #expect(try await setting.client.transactionInfo("2").fact?.transactionId == "2")
      try await setting.force(#"{"compression":"bomb"}"#)
      let silence = Silence(reason: .appleError, detail: "answer too long")
      #expect(try await setting.simulator.verify(Self.payload).outcome == .unanswered(silence))
      #expect(try await setting.client.transactionInfo("2").outcome == .unanswered(silence))
      for shape in [
        "emptyReceipt", "textStatus", "noBundleId", "noInApp", "nullInApp", "objectInApp", "nestedInApp",
        "surrogateInApp", "textLatestInfo",
      ] {
        try await setting.force(#"{"receipt":"\#(shape)"}"#)
        #expect(try await setting.simulator.verify(Self.payload).reason == .appleError, "\(shape)")
      }
    }
  }
}
