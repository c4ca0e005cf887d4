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
      before == now
        ? "Apple has reported \(day) anew (vendor \(vendor)): \(now) units as when it was tied out, at other prices or in "
          + "other countries."
        : "Apple has reported \(day) anew (vendor \(vendor)): \(before) units when it was tied out, \(now) now."
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

  /// Units of apps and products that are not configured here: neither side's.
  var others: Decimal { explained.first { $0.name == "other_scope" }?.units.decimal ?? 0 }

  /// What Apple counts of ours.
  var own: Decimal { appleUnits.decimal - others }

  /// What is worth knowing besides, others' units included.
  var remarks: [String] {
    others == 0 ? notes : notes + ["\(text(others)) more units are of apps and products that are not configured here"]
  }

  /// “Apple counted 1204 units, we know 1201. The difference: 3 = 2 timing + 1 unexplained.”
  package var sentence: String {
    let parts = explained.filter { $0.units.scaled != 0 && $0.name != "other_scope" } + [("unexplained", unexplained)]
    // As a sum: what explains may be more than the difference, and some of it count the other way.
    let sum = parts.enumerated().map { place, part in
      let isLess = part.units.scaled < 0
      let sign = place == 0 ? (isLess ? "−" : "") : isLess ? " − " : " + "
      return "\(sign)\(Figure(scaled: abs(part.units.scaled), digits: part.units.digits)) "
        + part.name.replacing("_", with: " ")
    }
    let difference = own - ourUnits.decimal
    return
      "Apple counted \(text(own)) units, we know \(ourUnits). The difference: \(text(difference)) = \(sum.joined())."
  }

  /// With a minus that is one.
  func text(_ number: Decimal) -> String {
    (number < 0 ? "−" : "") + NSDecimalNumber(decimal: abs(number)).stringValue
  }
}
