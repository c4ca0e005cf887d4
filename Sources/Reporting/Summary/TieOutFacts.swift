import Foundation

/// How Apple's sales reports compare with what is known here, for the summary.
package struct TieOutFacts: Sendable {
  /// One day of the trend.
  package struct Day: Hashable, Sendable {
    /// `2026-11-19`
    package var date: String
    package var apple: Figure
    package var unexplained: Figure
    /// Whether it is more than people want to be told of.
    package var isAlarming: Bool

    package init(date: String, apple: Figure, unexplained: Figure, isAlarming: Bool) {
      self.date = date
      self.apple = apple
      self.unexplained = unexplained
      self.isAlarming = isAlarming
    }
  }

  /// A day that Apple has reported anew since it was tied out.
  package struct Revision: Hashable, Sendable {
    /// `2026-11-10`
    package var day: String
    package var vendor: String
    package var before: Figure
    package var now: Figure

    package init(day: String, vendor: String, before: Figure, now: Figure) {
      self.day = day
      self.vendor = vendor
      self.before = before
      self.now = now
    }

    /// As a sentence.
    package var words: String {
      "Apple has reported \(day) anew (vendor \(vendor)): \(before) units when it was tied out, \(now) now."
    }
  }

  /// By itself: reports are hours to weeks late, and no reason for the night's own completeness.
  package var isComplete: Bool { incompleteReasons.isEmpty }
  package var incompleteReasons: [String]
  package var firstDay: String
  package var lastDay: String
  package var appleUnits: Figure
  package var ourUnits: Figure
  /// By class, in the order of the columns.
  package var explained: [(name: String, units: Figure)]
  /// Net.
  package var unexplained: Figure
  /// The last 28 days, oldest first.
  package var days: [Day] = []
  /// Days that were tied out before and that Apple has reported anew since.
  package var revisions: [Revision] = []
  /// What is worth knowing besides, one sentence each.
  package var notes: [String] = []

  package init(
    incompleteReasons: [String], firstDay: String, lastDay: String, appleUnits: Figure, ourUnits: Figure,
    explained: [(name: String, units: Figure)], unexplained: Figure
  ) {
    self.incompleteReasons = incompleteReasons
    self.firstDay = firstDay
    self.lastDay = lastDay
    self.appleUnits = appleUnits
    self.ourUnits = ourUnits
    self.explained = explained
    self.unexplained = unexplained
  }

  /// “Apple counted 1204 units, we know 1201; 2 are timing, 1 is unexplained.”
  package var sentence: String {
    let zero = Figure(scaled: 0, digits: 0)
    // What belongs to other apps is neither side's here.
    let others = explained.first { $0.name == "other_scope" }?.units ?? zero
    let own = appleUnits.decimal - others.decimal
    var parts = explained.filter { $0.units.scaled != 0 && $0.name != "other_scope" }.map {
      "\($0.units) \($0.units.decimal == 1 ? "is" : "are") \($0.name.replacing("_", with: " "))"
    }
    parts.append("\(unexplained) \(unexplained.decimal == 1 ? "is" : "are") unexplained")
    return "Apple counted \(NSDecimalNumber(decimal: own).stringValue) units, we know \(ourUnits); "
      + parts.joined(separator: ", ") + "."
  }
}
