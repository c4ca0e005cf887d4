import Reconciliation
import Testing

@testable import SampleWorlds

/// One named row of a table: a scene and what must be said about its order `order`.
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

  /// What the audit says about the order.
  var judgement: Judgement? { scene.world.audited().judgements["order"] }
}

extension Judgement {
  /// `payment` and `payment_reason` as in the report: `paid`, `unpaid duplicate`.
  var payment: String { [verdict?.name, verdict?.reason?.rawValue].compactMap { $0 }.joined(separator: " ") }
}

extension World {
  /// Every finding as `kind` on `subject`, sorted.
  var findingNames: [String] { audited().findings.map { "\($0.kind.rawValue) on \($0.subject.id)" }.sorted() }
}

extension FindingKind {
  /// Kinds that no rule about orders, payments and deliveries finds: the tie-out does.
  static let foundElsewhere: Set<FindingKind> = [.unreportedByShop]
}
