import Foundation
import Postgres
import Reconciliation
import Reporting
import Run

/// What a person decides about a finding.
package enum PeopleDecision: Hashable, Sendable {
  case status(FindingStatus)
  /// nil: nobody.
  case owner(String?)
  /// nil: none.
  case remark(String?)
  /// The day by which it is to be settled, `2026-12-01`; nil: none.
  case due(String?)

  /// The event's word in `night_audit.finding_events`, and the column's name.
  package var word: String {
    switch self {
    case .status: "status"
    case .owner: "owner"
    case .remark: "remark"
    case .due: "due"
    }
  }

  /// What the column becomes.
  package var value: String? {
    switch self {
    case .status(let status): status.rawValue
    case .owner(let owner): owner
    case .remark(let remark): remark
    case .due(let day): day
    }
  }
}

extension PeopleDecision {
  /// The decision that an event of the history records; nil for a night's event.
  init?(word: String, value: String?) {
    switch word {
    case "status":
      guard let status = FindingStatus(rawValue: value ?? "open") else { return nil }
      self = .status(status)
    case "owner": self = .owner(value)
    case "remark": self = .remark(value)
    case "due": self = .due(value)
    default: return nil
    }
  }
}

/// One decision about one finding.
package struct PeopleChange: Hashable, Sendable {
  package var findingId: String
  package var decision: PeopleDecision

  package init(findingId: String, decision: PeopleDecision) {
    self.findingId = findingId
    self.decision = decision
  }

  /// Those that would change anything: their ids.
  static func effective(
    _ changes: [PeopleChange], on connection: borrowing BlockingConnection
  ) throws(PostgresError) -> [String] {
    var ids: [String] = []
    for (word, changes) in byWord(changes) {
      ids += try connection.execute(
        """
        SELECT f.finding_id FROM night_audit.findings f
        JOIN unnest($1::text[], $2::text[]) c (finding_id, value) USING (finding_id)
        WHERE f.\(word)::text IS DISTINCT FROM c.value
        """, [.textArray(changes.map(\.findingId)), .textArray(changes.map(\.decision.value))]
      ).map { row throws(PostgresError) in try row.text(0) }
    }
    return ids
  }

  /// Makes the changes and records each in the findings' history, which only grows. Part of a transaction of
  /// `FindingsEditor`, which has waited for everybody else.
  ///
  /// - Parameters:
  ///   - changeId: what changes that are made together have in common, a UUID; nil for one that stands alone.
  ///   - undone: the change that is taken back by these.
  /// - Returns: the ids of those that changed anything.
  package static func apply(
    _ changes: [PeopleChange], by actor: String, at now: Instant, changeId: String? = nil,
    undoing undone: String? = nil, on connection: borrowing BlockingConnection
  ) throws(PostgresError) -> [String] {
    var ids: [String] = []
    for (word, changes) in byWord(changes) {
      // Locked in the order of ids, as a night locks them: two that wait for each other would both be lost.
      ids += try connection.execute(
        """
        WITH wanted AS (
          SELECT f.finding_id, c.value, f.\(word)::text AS before FROM night_audit.findings f
          JOIN unnest($1::text[], $2::text[]) c (finding_id, value) USING (finding_id)
          WHERE f.\(word)::text IS DISTINCT FROM c.value ORDER BY f.finding_id FOR UPDATE OF f),
        changed AS (
          UPDATE night_audit.findings f SET \(word) = w.value\(word == "due" ? "::date" : "") FROM wanted w WHERE w.finding_id = f.finding_id
          RETURNING f.finding_id, w.value, w.before)
        INSERT INTO night_audit.finding_events (finding_id, as_of, event, actor, detail, before, change_id, undoes)
        SELECT finding_id, $3, '\(word)', $4, value, before, $5::uuid, $6::uuid FROM changed ORDER BY finding_id RETURNING finding_id
        """,
        [
          .textArray(changes.map(\.findingId)), .textArray(changes.map(\.decision.value)), .timestamp(now.microseconds),
          .text(actor), .text(changeId), .text(undone),
        ]
      ).map { row throws(PostgresError) in try row.text(0) }
    }
    return ids
  }

  /// The words are this program's own, so they may stand in SQL.
  private static func byWord(_ changes: [PeopleChange]) -> [(String, [PeopleChange])] {
    Dictionary(grouping: changes, by: \.decision.word).sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
  }
}

/// What people write, as it is stored: the same text whichever way it came.
package enum PeopleText {
  package static let longestOwner = 200
  /// Far below what a cell holds, so that no report ever cuts one.
  package static let longestRemark = 4_000

  /// A person's name on one line; nil for none. Throws `Refusal`.
  package static func owner(_ text: String) throws(Refusal) -> String? {
    try plain(text, "owner", longest: longestOwner, isOneLine: true)
  }

  /// A day as people write it, `2026-12-01`; nil for none. Throws `Refusal`.
  package static func due(_ text: String) throws(Refusal) -> String? {
    let plain = text.trimmingCharacters(in: .whitespacesAndNewlines)
    if plain.isEmpty { return nil }
    guard CalendarDay.isDay(plain) else {
      throw Refusal(description: "the due day is no day of the calendar; write it as a date, such as 2026-12-01")
    }
    return plain
  }

  /// A remark; nil for none. Throws `Refusal`.
  package static func remark(_ text: String) throws(Refusal) -> String? {
    try plain(text, "remark", longest: longestRemark, isOneLine: false)
  }

  /// Why a text is not taken.
  package struct Refusal: EndsRun, Equatable, CustomStringConvertible {
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
