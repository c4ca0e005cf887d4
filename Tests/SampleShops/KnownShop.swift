import Reconciliation

/// A shop of combined stories with shuffled rows, and the expected result of its audit.
package struct KnownShop: Sendable {
  package var world = ShopFixture().world
  package private(set) var dispositions: [Identifier: Disposition] = [:]
  package private(set) var findings: Set<ScenarioFixture.Expected> = []

  package init(scenarios: [Scenario], seed: UInt64) {
    var random = SampleRandom(seed: seed)
    world.products = SampleProduct.all.map { .init(productId: $0.productId, type: $0.type) }
    for (number, scenario) in scenarios.enumerated() {
      var story = ScenarioFixture(prefix: "\(number + 1)-", seed: random.next())
      scenario.build(&story)
      add(story)
    }
    world = world.shuffled(using: &random)
  }

  package init(asOf: Instant) { world = ShopFixture(asOf: asOf).world }

  package mutating func add(_ story: ScenarioFixture) {
    world.add(story.scene.world)
    dispositions.merge(story.dispositions) { first, _ in first }
    findings.formUnion(story.findings)
  }
}
