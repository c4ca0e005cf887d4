import Foundation
import Postgres
import Reconciliation
import Reporting
import Run

/// A decision of a person about a finding. nil clears the column.
package enum FindingDecision: Hashable, Sendable {
  case status(FindingStatus)
  case owner(String?)
  case remark(String?)
  case due(String?)
  case acceptance(Acceptance?)

  /// The event in `finding_events`, and the name of the column.
  package var word: String {
    switch self {
    case .status: "status"
    case .owner: "owner"
    case .remark: "remark"
    case .due: "due"
    case .acceptance: "acceptance"
    }
  }

  package var value: String? {
    switch self {
    case .status(let status): status.rawValue
    case .owner(let owner): owner
    case .remark(let remark): remark
    case .due(let day): day
    case .acceptance(let acceptance): acceptance?.text
    }
  }
}

extension FindingDecision {
  /// nil for an event of a night.
  init?(word: String, value: String?) {
    switch word {
    case "status":
      guard let status = FindingStatus(rawValue: value ?? "open") else { return nil }
      self = .status(status)
    case "owner": self = .owner(value)
    case "remark": self = .remark(value)
    case "due": self = .due(value)
    case "acceptance": self = .acceptance(value.flatMap { Acceptance(text: $0) })
    default: return nil
    }
  }
}

package struct FindingChange: Hashable, Sendable {
  package var findingId: String
  package var decision: FindingDecision

  package init(findingId: String, decision: FindingDecision) { (self.findingId, self.decision) = (findingId, decision) }

  static func effective(
    _ changes: [FindingChange], on connection: borrowing BlockingConnection
  ) throws(PostgresError) -> [String] {
    var ids: [String] = []
    for (word, changes) in byWord(changes) {
      ids += try connection.execute(
        "SELECT f.finding_id FROM \(effectiveChanges(of: word))",
        [.textArray(changes.map(\.findingId)), .textArray(changes.map(\.decision.value))]
      ).map { row throws(PostgresError) in try row.text(0) }
    }
    return ids
  }

  /// Applies changes, appends them to the history, and returns the changed IDs. Changes made together share `changeId`.
  package static func apply(
    _ changes: [FindingChange], by actor: String, at now: Instant, changeId: String? = nil,
    undoing undone: String? = nil, on connection: borrowing BlockingConnection
  ) throws(PostgresError) -> [String] {
    var ids: [String] = []
    for (word, changes) in byWord(changes) {
      // Locked in the order of IDs, as a night locks them, because any other order could deadlock.
      ids += try connection.execute(
        """
        WITH wanted AS (
          SELECT f.finding_id, c.value, f.\(word)::text AS before FROM \(effectiveChanges(of: word))
          ORDER BY f.finding_id FOR UPDATE OF f),
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

  /// SQL: the changes `c` of a column that give findings `f` another value.
  private static func effectiveChanges(of word: String) -> String {
    """
    night_audit.findings f JOIN unnest($1::text[], $2::text[]) c (finding_id, value) USING (finding_id)
      WHERE f.\(word)::text IS DISTINCT FROM c.value
    """
  }

  /// Safe in SQL, because the words are constants of this program.
  private static func byWord(_ changes: [FindingChange]) -> [(String, [FindingChange])] {
    Dictionary(grouping: changes, by: \.decision.word).sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
  }
}
