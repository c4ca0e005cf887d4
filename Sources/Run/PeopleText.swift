import Foundation
import Reconciliation

/// Normalizes text entered by people: the same text for every way of entry.
package enum PeopleText {
  package static let longestOwner = 200
  /// Far below the limit of a cell, so that no report truncates a remark.
  package static let longestRemark = 4_000

  /// A name on one line; nil if empty. Throws `Refusal`.
  package static func owner(_ text: String) throws(Refusal) -> String? {
    try plain(text, "owner", longest: longestOwner, isOneLine: true)
  }

  /// A day such as 2026-12-01; nil if empty. Throws `Refusal`.
  package static func due(_ text: String) throws(Refusal) -> String? {
    let plain = text.trimmingCharacters(in: .whitespacesAndNewlines)
    if plain.isEmpty { return nil }
    guard CalendarDay.isDay(plain) else {
      throw Refusal(
        description: plain.wholeMatch(of: /[0-9]{4}-[0-9]{2}-[0-9]{2}/) == nil
          ? "the day is not written as year, month and day; write it as 2026-12-01"
          : "the day is not in the calendar; write one that exists, such as 2026-12-01")
    }
    return plain
  }

  package static func remark(_ text: String) throws(Refusal) -> String? {
    try plain(text, "remark", longest: longestRemark, isOneLine: false)
  }

  package struct Refusal: RunEndingError, Equatable, CustomStringConvertible {
    package var exitStatus: ExitStatus { .usage }
    package let description: String

    package init(description: String) { self.description = description }
  }

  private static func plain(
    _ text: String, _ what: String, longest: Int, isOneLine: Bool
  ) throws(Refusal) -> String? {
    let plain = text.replacing("\r\n", with: "\n").replacing("\r", with: "\n")
      .trimmingCharacters(in: .whitespacesAndNewlines)
    if plain.isEmpty { return nil }
    if plain.utf16.count > longest {
      throw Refusal(description: "the \(what) is longer than \(longest) characters; shorten it")
    }
    let allowed: Set<UnicodeScalar> = isOneLine ? [] : ["\n", "\t"]
    let isClean = plain.unicodeScalars.allSatisfy { scalar in
      scalar.properties.generalCategory != .control || allowed.contains(scalar)
    }
    guard isClean else {
      throw Refusal(
        description: "the \(what) has \(isOneLine ? "a line break or " : "")a control character; take it out")
    }
    return plain
  }
}
