import Reconciliation

package struct TieOutFacts: Sendable {
  package struct Day: Hashable, Sendable {
    package var date: String
    package var apple: Millionths
    package var unexplained: Millionths
    /// True if the unexplained share of Apple's units exceeds `tieOut.alertShare`.
    package var isAlarming: Bool

    package init(date: String, apple: Millionths, unexplained: Millionths, isAlarming: Bool) {
      (self.date, self.apple, self.unexplained, self.isAlarming) = (date, apple, unexplained, isAlarming)
    }
  }

  /// A day that Apple reported anew since it was tied out.
  package struct Revision: Hashable, Sendable {
    package var day: String
    package var vendor: String
    package var before: Millionths
    package var now: Millionths

    package init(day: String, vendor: String, before: Millionths, now: Millionths) {
      (self.day, self.vendor, self.before, self.now) = (day, vendor, before, now)
    }

    package var words: String {
      before == now
        ? "Apple changed its report of \(day) (vendor \(vendor)): \(now.grouped()) units as at the tie-out, at other prices or in "
          + "other countries."
        : "Apple changed its report of \(day) (vendor \(vendor)): \(before.grouped()) units at the tie-out, \(now.grouped()) now."
    }
  }

  /// Apart from the night's own completeness, because reports arrive hours to weeks late.
  package var isComplete: Bool { incompleteReasons.isEmpty }
  package var incompleteReasons: [String]
  package var firstDay: String
  package var lastDay: String
  package var appleUnits: Millionths
  package var ourUnits: Millionths
  /// By class, in the order of the columns.
  package var explained: [(name: String, units: Millionths)]
  package var unexplained: Millionths
  package var days: [Day] = []
  package var revisions: [Revision] = []
  /// The settlement of the newest fiscal period, by currency.
  package var proceeds: [SettlementLine] = []
  package var notes: [String] = []

  package init(
    incompleteReasons: [String], firstDay: String, lastDay: String, appleUnits: Millionths, ourUnits: Millionths,
    explained: [(name: String, units: Millionths)], unexplained: Millionths
  ) {
    (self.incompleteReasons, self.firstDay, self.lastDay) = (incompleteReasons, firstDay, lastDay)
    (self.appleUnits, self.ourUnits, self.explained, self.unexplained) = (appleUnits, ourUnits, explained, unexplained)
  }

  /// Units of apps and products that are not configured here.
  private var others: Millionths { explained.first { $0.name == "other_scope" }?.units ?? .zero }

  var own: Millionths { appleUnits - others }

  var difference: Millionths { own - ourUnits }

  /// The classes of the difference that are not zero.
  var classes: [(name: String, units: Millionths)] {
    explained.filter { $0.units != .zero && $0.name != "other_scope" }
  }

  var remarks: [String] {
    others == .zero
      ? notes : notes + ["\(others.grouped()) more units are of apps and products that are not configured here"]
  }

  /// “Apple counted 1204 units, we know 1201. The difference: 3 = 2 timing + 1 unexplained.”
  package var sentence: String {
    let parts = classes + [("unexplained", unexplained)]
    // Written as a sum because a class may exceed the difference, or count the other way.
    let sum = parts.enumerated().map { place, part in
      let isLess = part.units < .zero
      let sign = place == 0 ? (isLess ? "−" : "") : isLess ? " − " : " + "
      return "\(sign)\(part.units.magnitude.grouped()) \(part.name.replacing("_", with: " "))"
    }
    return "Apple counted \(own.grouped()) units, we know \(ourUnits.grouped()). "
      + "The difference: \(difference.grouped()) = \(sum.joined())."
  }
}
