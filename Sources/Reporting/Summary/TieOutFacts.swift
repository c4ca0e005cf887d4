import Foundation
import Reconciliation

package struct TieOutFacts: Sendable {
  package struct Day: Hashable, Sendable {
    package var date: String
    package var apple: ExactDecimal
    package var unexplained: ExactDecimal
    /// True if the unexplained share of Apple's units exceeds `tieOut.alertShare`.
    package var isAlarming: Bool

    package init(date: String, apple: ExactDecimal, unexplained: ExactDecimal, isAlarming: Bool) {
      (self.date, self.apple, self.unexplained, self.isAlarming) = (date, apple, unexplained, isAlarming)
    }
  }

  /// A day that Apple reported anew since it was tied out.
  package struct Revision: Hashable, Sendable {
    package var day: String
    package var vendor: String
    package var before: ExactDecimal
    package var now: ExactDecimal

    package init(day: String, vendor: String, before: ExactDecimal, now: ExactDecimal) {
      (self.day, self.vendor, self.before, self.now) = (day, vendor, before, now)
    }

    package var words: String {
      before == now
        ? "Apple changed its report of \(day) (vendor \(vendor)): \(now.text()) units as at the tie-out, at other prices or in "
          + "other countries."
        : "Apple changed its report of \(day) (vendor \(vendor)): \(before.text()) units at the tie-out, \(now.text()) now."
    }
  }

  /// Apart from the night's own completeness, because reports arrive hours to weeks late.
  package var isComplete: Bool { incompleteReasons.isEmpty }
  package var incompleteReasons: [String]
  package var firstDay: String
  package var lastDay: String
  package var appleUnits: ExactDecimal
  package var ourUnits: ExactDecimal
  /// By class, in the order of the columns.
  package var explained: [(name: String, units: ExactDecimal)]
  package var unexplained: ExactDecimal
  package var days: [Day] = []
  package var revisions: [Revision] = []
  /// The settlement of the newest fiscal period, by currency.
  package var proceeds: [SettlementLine] = []
  package var notes: [String] = []

  package init(
    incompleteReasons: [String], firstDay: String, lastDay: String, appleUnits: ExactDecimal, ourUnits: ExactDecimal,
    explained: [(name: String, units: ExactDecimal)], unexplained: ExactDecimal
  ) {
    (self.incompleteReasons, self.firstDay, self.lastDay) = (incompleteReasons, firstDay, lastDay)
    (self.appleUnits, self.ourUnits, self.explained, self.unexplained) = (appleUnits, ourUnits, explained, unexplained)
  }

  /// Units of apps and products that are not configured here.
  var others: Decimal { explained.first { $0.name == "other_scope" }?.units.decimal ?? 0 }

  var own: Decimal { appleUnits.decimal - others }

  var remarks: [String] {
    others == 0 ? notes : notes + ["\(text(others)) more units are of apps and products that are not configured here"]
  }

  /// “Apple counted 1204 units, we know 1201. The difference: 3 = 2 timing + 1 unexplained.”
  package var sentence: String {
    let parts = explained.filter { $0.units.scaled != 0 && $0.name != "other_scope" } + [("unexplained", unexplained)]
    // Written as a sum because a class may exceed the difference, or count the other way.
    let sum = parts.enumerated().map { place, part in
      let isLess = part.units.scaled < 0
      let sign = place == 0 ? (isLess ? "−" : "") : isLess ? " − " : " + "
      return "\(sign)\(ExactDecimal(scaled: abs(part.units.scaled), digits: part.units.digits).text()) "
        + part.name.replacing("_", with: " ")
    }
    let difference = own - ourUnits.decimal
    return
      "Apple counted \(text(own)) units, we know \(ourUnits.text()). The difference: \(text(difference)) = \(sum.joined())."
  }

  func text(_ number: Decimal) -> String { Money.grouped(NSDecimalNumber(decimal: number).stringValue) }
}
