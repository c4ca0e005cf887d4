import Foundation
import Reconciliation
import TestSupport
import Testing

@testable import SampleWorlds

/// Shops with a known truth: the audit finds every discrepancy in them, and nothing else.
@Suite struct KnownTruthTests {
  @Test("Each scenario by itself has exactly its expected findings and dispositions", arguments: Scenario.all.indices)
  func alone(index: Int) {
    for seed in 0..<20 as Range<UInt64> {
      let shop = KnownShop(scenarios: [Scenario.all[index]], seed: seed)
      shop.check("\(Scenario.all[index].name), seed \(seed)")
    }
  }

  @Test("Every kind of finding and every disposition has a scenario")
  func coverage() {
    var kinds: Set<FindingKind> = []
    var dispositions: Set<Disposition> = []
    for seed in 0..<20 as Range<UInt64> {
      let shop = KnownShop(scenarios: Scenario.all, seed: seed)
      kinds.formUnion(shop.findings.map(\.kind))
      dispositions.formUnion(shop.dispositions.values)
    }
    #expect(kinds.union(FindingKind.foundElsewhere) == Set(FindingKind.allCases))
    #expect(dispositions == Set(Disposition.allCases))
    #expect(Scenario.all.filter { $0.impossible.count > 1 }.map(\.name).isEmpty, "no channel can play the scenario")
  }

  @Test("Precision and recall are 1 for every kind over hundreds of small shops", arguments: 0..<2)
  func small(block: UInt64) {
    var score = Score()
    var random = SeededGenerator(seed: block)
    for _ in 0..<250 * Effort.factor {
      let chosen = (0..<random.number(1...15)).compactMap { _ in Scenario.all.randomElement(using: &random) }
      score.take(KnownShop(scenarios: chosen, seed: random.next()))
    }
    score.check()
  }

  @Test("Precision and recall are 1 over one large shop")
  func large() {
    let size = KnownShop.largeSize
    var random = SeededGenerator(seed: 7)
    // A scenario has any number of orders, so orders are counted until the size is reached.
    var chosen: [Scenario] = []
    var orders = 0
    while orders < size, let scenario = Scenario.all.randomElement(using: &random) {
      var story = ScenarioFixture(prefix: "", seed: UInt64(chosen.count))
      scenario.build(&story)
      orders += story.scene.world.orders.count
      chosen.append(scenario)
    }
    let shop = KnownShop(scenarios: chosen, seed: random.next())
    var score = Score()
    score.take(shop)
    score.check()
    print("orders=\(shop.world.orders.count) stories=\(chosen.count) findings=\(shop.findings.count) \(score)")
  }
}

extension KnownShop {
  /// The approximate number of orders in the large shop: 3,000, or `WORLD_ORDERS`.
  fileprivate static let largeSize =
    ProcessInfo.processInfo.environment["WORLD_ORDERS"].flatMap { Int($0) } ?? 3_000

  fileprivate func check(_ comment: Comment) {
    let outcome = world.audited()
    #expect(Set(outcome.findings.map(\.expected)) == findings, comment)
    #expect(outcome.judgements.mapValues(\.disposition) == dispositions, comment)
    #expect(outcome.totals.isBalanced, comment)
  }
}

/// Counts of found, missed and wrongly reported findings by kind.
private struct Score: CustomStringConvertible {
  private var found: [FindingKind: Int] = [:]
  private var missed: [FindingKind: [Identifier]] = [:]
  private var imagined: [FindingKind: [Identifier]] = [:]
  private var misplaced: [String] = []

  mutating func take(_ shop: KnownShop) {
    let outcome = shop.world.audited()
    let said = Set(outcome.findings.map(\.expected))
    for finding in said.intersection(shop.findings) { found[finding.kind, default: 0] += 1 }
    for finding in shop.findings.subtracting(said) { missed[finding.kind, default: []].append(finding.subject) }
    for finding in said.subtracting(shop.findings) { imagined[finding.kind, default: []].append(finding.subject) }
    for (orderId, disposition) in shop.dispositions where outcome.judgements[orderId]?.disposition != disposition {
      misplaced.append("\(orderId) is not \(disposition)")
    }
    if outcome.judgements.count != shop.dispositions.count || !outcome.totals.isBalanced { misplaced.append("totals") }
  }

  /// One line of counters.
  var description: String {
    let counts = [found.values.reduce(0, +), missed.values.joined().count, imagined.values.joined().count]
    return
      "kinds=\(found.count) found=\(counts[0]) missed=\(counts[1]) imagined=\(counts[2]) misplaced=\(misplaced.count)"
  }

  func check() {
    for kind in FindingKind.allCases where !FindingKind.foundElsewhere.contains(kind) {
      let count = Double(found[kind] ?? 0)
      let recall = count / (count + Double(missed[kind]?.count ?? 0))
      let precision = count / (count + Double(imagined[kind]?.count ?? 0))
      #expect(recall == 1, "\(kind) missed on \(missed[kind] ?? [])")
      #expect(precision == 1, "\(kind) imagined on \(imagined[kind] ?? [])")
    }
    #expect(misplaced.isEmpty)
  }
}
