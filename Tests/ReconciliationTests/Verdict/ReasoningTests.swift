import Reconciliation
import TestSupport
import Testing

@testable import SampleWorlds

/// Reasons come from the rules that decide. They therefore cover every kind and agree with the audit.
@Suite struct ReasoningTests {
  @Test("Every finding kind is either found or declined with a reason", arguments: Effort.blocks)
  func complete(block: UInt64) {
    forEachOrder(block) { facts, rules in
      let (judgement, reasoning) = Judgement.explained(facts, rules: rules)
      let found = Set(judgement.findings.map(\.kind))
      let declined = Set(reasoning.declined.keys)
      #expect(found.isDisjoint(with: declined), "\(found.intersection(declined)) on \(facts.order.orderId)")
      #expect(
        found.union(declined) == Set(FindingKind.allCases), "\(facts.order.orderId)")
      #expect(reasoning.declined.values.allSatisfy { $0.hasSuffix(".") && $0.count > 10 })
    }
  }

  @Test("An explained judgement equals the judgement", arguments: Effort.blocks)
  func same(block: UInt64) {
    forEachOrder(block) { facts, rules in
      let (judgement, _) = Judgement.explained(facts, rules: rules)
      #expect("\(judgement)" == "\(Judgement(judging: facts, rules: rules))")
    }
  }

  @Test("Reasons list the rules in order, up to the first that applies", arguments: Effort.blocks)
  func steps(block: UInt64) {
    forEachOrder(block) { facts, rules in
      let (judgement, reasoning) = Judgement.explained(facts, rules: rules)
      #expect(reasoning.steps.map(\.rule) == Array(VerdictRule.allCases.prefix(reasoning.steps.count)))
      #expect(reasoning.steps.dropLast().allSatisfy { $0.verdict == nil })
      #expect(reasoning.steps.last?.verdict == judgement.verdict)
      #expect(reasoning.steps.allSatisfy { $0.because.hasSuffix(".") && $0.because.count > 10 })
      #expect(reasoning.disposition.hasSuffix("."))
    }
  }

  @Test("Random worlds reach every rule of the verdict, and decline every rule but the last")
  func everyRule() {
    var applied: Set<VerdictRule> = []
    var declined: Set<VerdictRule> = []
    for seed in 0..<40 as Range<UInt64> {
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
    // Random worlds contain no contradictory records.
    #expect(applied == Set(VerdictRule.allCases).subtracting([.recordsContradict]))
    #expect(declined == Set(VerdictRule.allCases.dropLast()))
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
    var scene = ShopFixture()
    let other = scene.transaction("T1") { $0.productId = "coins" }
    let early = scene.transaction("T2") { $0.purchaseDate = asOf - .days(60) }
    let order = scene.order { $0.transactionId = other.transactionId }
    scene.receipt(for: order, .verified(.app), containing: [early])
    let facts = try #require(scene.world.matchedFacts().orders["order"])
    let reasoning = Judgement.explained(facts, rules: scene.world.rules).reasoning
    #expect(reasoning.steps.first?.because == "It owns none of the 2 transactions that are known for it.")
  }

  @Test("A reversed refund without a finding has a reason")
  func withdrawnRefund() throws {
    for (isWithdrawn, expected) in [
      (false, "Apple reversed no refund."),
      (true, "Apple reversed a refund, and the user has all goods of the order."),
    ] {
      var scene = ShopFixture()
      let order = scene.paidOrder(transaction: { $0.revocationWithdrawnDate = isWithdrawn ? asOf : nil })
      scene.delivery(of: order)
      let facts = try #require(scene.world.matchedFacts().orders["order"])
      let reasoning = Judgement.explained(facts, rules: scene.world.rules).reasoning
      #expect(reasoning.declined[.refundReversedNotReinstated] == expected)
    }
  }

  /// Runs a check over the facts of every order in the block's worlds and in every scenario.
  private func forEachOrder(_ block: UInt64, _ check: (OrderFacts, Rules) -> Void) {
    var generator = SeededGenerator(seed: block)
    for _ in 0..<100 {
      let world = RandomWorld.make(using: &generator).world
      for facts in world.matchedFacts().orders.values { check(facts, world.rules) }
    }
    for scenario in Scenario.all {
      var story = ScenarioFixture(prefix: "", seed: generator.next())
      scenario.build(&story)
      let world = story.scene.world
      for facts in world.matchedFacts().orders.values { check(facts, world.rules) }
    }
  }
}
