import Reconciliation
import Testing

@testable import SampleWorlds

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
}

extension Judgement {
  /// `payment` and `payment_reason` as in the report: `paid`, `unpaid duplicate`.
  var payment: String { [verdict?.name, verdict?.reason?.rawValue].compactMap { $0 }.joined(separator: " ") }
}

extension World {
  /// Every finding as `kind` on `subject`, sorted.
  var findingNames: [String] { audited().findings.map { "\($0.kind.rawValue) on \($0.subject.id)" }.sorted() }
}

extension ShopFixture {
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
