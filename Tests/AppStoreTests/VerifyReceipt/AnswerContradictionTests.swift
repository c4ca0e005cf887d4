import Foundation
import Reconciliation
import Testing

@testable import AppStore

@Suite("Contradictions of answers")
struct AnswerContradictionTests {
  private static let created = Instant(seconds: 1_780_272_000)

  private func fact(_ id: String, product: String = "gems.100", type: ProductType? = .consumable) -> TransactionFact {
    var fact = TransactionFact(
      environment: .production, transactionId: id, productId: product, channel: .offline, signedDate: Self.created)
    fact.productType = type
    return fact
  }

  private func proof(_ facts: [TransactionFact]) -> WrittenContent {
    WrittenContent(
      GenuineProof(environment: .production, bundleId: "com.example.game", facts: facts, creationDate: Self.created))
  }

  private func answer(
    _ facts: [TransactionFact], environment: AppleEnvironment = .production, bundleId: String? = "com.example.game",
    created: Instant? = Instant(microseconds: created.microseconds + 617_000)
  ) -> VerifiedReceipt {
    var receipt = VerifiedReceipt(
      environment: environment, bundleId: bundleId, facts: facts, requestDate: Instant(seconds: 1_795_212_000),
      status: 0)
    receipt.creationDate = created
    return receipt
  }

  @Test("An answer that agrees with the receipt has no contradiction")
  func agreement() {
    let facts = [fact("1"), fact("2", product: "remove.ads", type: .nonConsumable)]
    #expect(answer(facts).contradictions(with: proof(facts)).isEmpty)
    // Finished consumables disappear, and a missing field contradicts nothing.
    #expect(answer([facts[1]]).contradictions(with: proof(facts)).isEmpty)
    #expect(answer(facts + [fact("3")], bundleId: nil, created: nil).contradictions(with: proof(facts)).isEmpty)
  }

  @Test("An answer to another receipt differs in date, app, environment, product or a missing transaction")
  func disagreement() {
    let ads = fact("2", product: "remove.ads", type: .nonConsumable)
    let local = proof([fact("1"), ads])
    let later = Self.created + .seconds(1)
    #expect(answer([ads], created: later).contradictions(with: local) == [.creationDate(answered: later)])
    #expect(answer([ads], bundleId: "com.example.other").contradictions(with: local) == [.bundle])
    #expect(answer([ads], environment: .sandbox).contradictions(with: local) == [.environment(answered: .sandbox)])
    #expect(answer([fact("1")]).contradictions(with: local) == [.missing(transactionId: "2")])
    #expect(answer([fact("2")]).contradictions(with: local) == [.product(transactionId: "2")])
  }

  @Test("An answer to another old receipt lacks the receipt's transaction")
  func oldReceipts() {
    let local = WrittenContent(
      GenuineProof(
        environment: .production, bundleId: "com.example.game", facts: [fact("1")], signedTransactionId: "1"))
    var right = answer([fact("1")], created: nil)
    right.ownTransactionId = "1"
    #expect(right.contradictions(with: local).isEmpty)
    var wrong = answer([fact("9")], created: nil)
    wrong.ownTransactionId = "9"
    #expect(wrong.contradictions(with: local) == [.missing(transactionId: "1")])
  }

  @Test("A contradiction within an answer is kept")
  func itself() {
    var odd = answer([])
    odd.contradictions = [.unreadableDate(transactionId: "2", field: "cancellation_date")]
    let local = proof([fact("2", product: "remove.ads", type: .nonConsumable)])
    #expect(odd.contradictions(with: local) == odd.contradictions, "the transaction is listed, although it is no fact")
    #expect(odd.contradictions[0].description.contains("cancellation_date"))
  }
}
