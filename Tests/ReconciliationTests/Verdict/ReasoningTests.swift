import Reconciliation
import TestSupport
import Testing

@testable import SampleWorlds

/// Reasons come from the rules that decide. They therefore cover every kind and agree with the audit.
@Suite struct ReasoningTests {
  @Test(
    "Every kind is found or declined with a reason, and the rules apply in order up to the first",
    arguments: Effort.blocks)
  func complete(block: UInt64) {
    forEachWorld(block) { world in
      for facts in world.matchedFacts().orders.values {
        let (judgement, reasoning) = Judgement.explained(facts, rules: world.rules)
        #expect("\(judgement)" == "\(Judgement(judging: facts, rules: world.rules))")
        let (found, declined) = (Set(judgement.findings.map(\.kind)), Set(reasoning.declined.keys))
        #expect(found.isDisjoint(with: declined), "\(found.intersection(declined)) on \(facts.order.orderId)")
        #expect(found.union(declined) == Set(FindingKind.allCases), "\(facts.order.orderId)")
        #expect(reasoning.steps.map(\.rule) == Array(VerdictRule.allCases.prefix(reasoning.steps.count)))
        #expect(reasoning.steps.dropLast().allSatisfy { $0.verdict == nil })
        #expect(reasoning.steps.last?.verdict == judgement.verdict)
        let sentences = reasoning.steps.map(\.because) + reasoning.declined.values
        #expect(sentences.allSatisfy { $0.hasSuffix(".") && $0.count > 10 } && reasoning.disposition.hasSuffix("."))
      }
    }
  }

  @Test("Random worlds reach every rule of the verdict, and decline every rule but the last")
  func everyRule() {
    // Random worlds contain no contradictory records.
    let (applicable, declinable) = (
      Set(VerdictRule.allCases).subtracting([.recordsContradict]), Set(VerdictRule.allCases.dropLast())
    )
    var (applied, declined): (Set<VerdictRule>, Set<VerdictRule>) = ([], [])
    for seed in 0..<40 as Range<UInt64> where applied != applicable || declined != declinable {
      var generator = SeededGenerator(seed: seed)
      for _ in 0..<60 {
        let world = RandomWorld.make(using: &generator).world
        for facts in world.matchedFacts().orders.values {
          for step in Judgement.explained(facts, rules: world.rules).reasoning.steps {
            if step.verdict == nil { declined.insert(step.rule) } else { applied.insert(step.rule) }
          }
        }
      }
    }
    #expect(applied == applicable && declined == declinable)
  }

  @Test(
    "Spans are written in words",
    arguments: [
      (Span.seconds(1), "1 second"), (.seconds(119), "119 seconds"), (.minutes(2), "2 minutes"),
      (.hours(1), "60 minutes"), (.hours(2), "2 hours"), (.hours(24), "24 hours"), (.hours(72), "3 days"),
      (.days(-16), "16 days"),
    ])
  func words(span: Span, words: String) { #expect(span.words == words) }

  @Test("The reason for an order that owns nothing counts the known transactions")
  func known() throws {
    let (_, reasoning) = try shop { scene in
      scene.different("T1")
      scene.order(stating: "T1", with: .list(scene.transaction("T2") { $0.purchaseDate = asOf - .days(60) }))
    }.explained()
    #expect(reasoning.steps.first?.because == "It owns none of the 2 transactions that are known for it.")
  }

  @Test("A reversed refund without a finding has a reason")
  func withdrawnRefund() throws {
    for (withdrawn, expected) in [
      (nil, "Apple reversed no refund."), (asOf, "Apple reversed a refund, and the user has all goods of the order."),
    ] as [(Instant?, String)] {
      let (_, reasoning) = try shop { $0.sale(bought: { $0.revocationWithdrawnDate = withdrawn }) }.explained()
      #expect(reasoning.declined[.refundReversedNotReinstated] == expected)
    }
  }
}
