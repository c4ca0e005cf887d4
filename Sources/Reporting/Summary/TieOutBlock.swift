import Foundation

/// The block `tie_out` of `summary.json`.
package struct TieOutBlock: Codable, Sendable {
  package var complete: Bool
  package var incompleteReasons: [String]
  package var appleUnits: Decimal
  package var ourUnits: Decimal
  package var explained: [String: Decimal]
  package var unexplained: Decimal
  /// Days that Apple reported anew since they were tied out; nil for none.
  package var adjustments: [Adjustment]?

  package struct Adjustment: Codable, Sendable {
    package var day: String
    package var vendor: String
    package var reported: Decimal
    package var now: Decimal
  }

  package init(_ facts: TieOutFacts) {
    complete = facts.isComplete
    incompleteReasons = facts.incompleteReasons
    appleUnits = facts.appleUnits.decimal
    ourUnits = facts.ourUnits.decimal
    explained = Dictionary(uniqueKeysWithValues: facts.explained.map { ($0.name, $0.units.decimal) })
    unexplained = facts.unexplained.decimal
    let revised = facts.revisions.map {
      Adjustment(day: $0.day, vendor: $0.vendor, reported: $0.before.decimal, now: $0.now.decimal)
    }
    adjustments = revised.isEmpty ? nil : revised
  }
}
