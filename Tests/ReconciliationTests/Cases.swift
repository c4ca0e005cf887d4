import Reconciliation
import TestSupport
import Testing

@testable import SampleWorlds

/// The as-of of every fixture.
let asOf = ShopFixture.asOf
/// The default time of a fixture's orders and purchases.
let ordered = asOf - .days(4)

/// A named test case: a fixture and the expected result for its order `order`.
struct Case<Expected: Sendable>: Sendable, CustomTestStringConvertible {
  let name: String
  let expected: Expected
  let scene: ShopFixture

  init(_ name: String, _ expected: Expected, _ build: (inout ShopFixture) -> Void) {
    self.name = name
    self.expected = expected
    var scene = ShopFixture()
    build(&scene)
    self.scene = scene
  }

  var testDescription: String { name }

  /// The audit's judgement of the order.
  var judgement: Judgement? { scene.world.audited().judgements["order"] }

  /// All findings of the audit, sorted; those on the order without their subject.
  var findings: String {
    let kinds = scene.world.findingNames.map { $0.hasSuffix(" on order") ? String($0.dropLast(9)) : $0 }
    return kinds.isEmpty ? "nothing" : kinds.joined(separator: ", ")
  }
}

extension Judgement {
  /// `payment` and `payment_reason` as in the report: `paid`, `unpaid duplicate`.
  var payment: String { [verdict?.name, verdict?.reason?.rawValue].compactMap { $0 }.joined(separator: " ") }
}

/// Runs a check over the random worlds of a block, and over some worlds of every scenario.
func forEachWorld(_ block: UInt64, worldsOfAScenario: Int = 1, _ check: (World) -> Void) {
  var generator = SeededGenerator(seed: block)
  for _ in 0..<100 { check(RandomWorld.make(using: &generator).world) }
  for scenario in Scenario.all {
    for _ in 0..<worldsOfAScenario {
      var story = ScenarioFixture(prefix: "", seed: generator.next())
      scenario.build(&story)
      check(story.scene.world)
    }
  }
}

/// The world of a fixture.
func shop(_ build: (inout ShopFixture) -> Void) -> World {
  var scene = ShopFixture()
  build(&scene)
  return scene.world
}

extension World {
  func judged(_ id: Identifier = "order") -> Judgement? { audited().judgements[id] }

  func finding(_ kind: FindingKind) -> Finding? { audited().findings.first { $0.kind == kind } }

  /// The judgement of the order, with its reasons.
  func explained() throws -> (Judgement, Reasoning) {
    Judgement.explained(try #require(matchedFacts().orders["order"]), rules: rules)
  }

  /// Every finding as `kind` on `subject`, sorted.
  var findingNames: [String] { audited().findings.map { "\($0.kind.rawValue) on \($0.subject.id)" }.sorted() }
}

/// An app that is not audited.
let otherApp = "com.example.other"

extension ShopFixture {
  /// A paid order without goods, whose purchase has these facts.
  mutating func paid(_ change: (inout TransactionRecord) -> Void) { paidOrder(transaction: change) }

  /// A sale of a purchase with these facts.
  mutating func bought(_ change: (inout TransactionRecord) -> Void) { sale(bought: change) }

  /// A sale whose goods have these facts.
  mutating func delivered(_ change: (inout Delivery) -> Void) { sale(goods: change) }

  /// A purchase in another app.
  @discardableResult
  mutating func foreign(_ id: String = "T1") -> TransactionRecord { transaction(id) { $0.bundleId = otherApp } }

  /// A purchase of another product.
  @discardableResult
  mutating func different(_ id: String = "T1") -> TransactionRecord { transaction(id) { $0.productId = "gems.500" } }

  /// Purchases T1, T2 … so many minutes after the fixture's time.
  mutating func transactions(
    minutes: [Int64], _ change: (inout TransactionRecord) -> Void = { _ in }
  ) -> [TransactionRecord] {
    let time = self.time
    return minutes.enumerated().map { place, minutes in
      transaction("T\(place + 1)") { record in
        record.purchaseDate = time + .minutes(minutes)
        change(&record)
      }
    }
  }

  /// The periods T1, T2 … of a subscription, the last one from the fixture's time on. Changes concern all but the first.
  @discardableResult
  mutating func periods(_ count: Int, _ change: (inout TransactionRecord) -> Void = { _ in }) -> [TransactionRecord] {
    let first = time - .days(30 * Int64(count - 1))
    return (0..<count).map { place in
      let start = first + .days(30 * Int64(place))
      return transaction("T\(place + 1)") { record in
        (record.originalTransactionId, record.isRenewal) = ("T1", place > 0)
        (record.purchaseDate, record.originalPurchaseDate) = (start, first)
        record.expiresDate = start + .days(30)
        if place > 0 { change(&record) }
      }
    }
  }
}

extension FindingKind {
  /// Kinds that the tie-out finds; no rule for orders, payments and deliveries finds them.
  static let foundElsewhere: Set<FindingKind> = [.unreportedByShop]
}
