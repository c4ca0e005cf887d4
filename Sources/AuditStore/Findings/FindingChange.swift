import Foundation
import Postgres
import Reconciliation
import Reporting
import Run

/// A decision of a person about a finding: the new value of a column; nil clears it.
package struct FindingDecision: Hashable, Sendable {
  /// The event in `finding_events`, and the name of the column.
  package enum Column: String, Sendable {
    case status, owner, remark, due, acceptance
  }

  package let column: Column
  package let value: String?

  package static func status(_ status: FindingStatus) -> Self { Self(column: .status, value: status.rawValue) }
  package static func owner(_ name: String?) -> Self { Self(column: .owner, value: name) }
  package static func remark(_ text: String?) -> Self { Self(column: .remark, value: text) }
  package static func due(_ day: String?) -> Self { Self(column: .due, value: day) }
  package static func acceptance(_ limit: Acceptance?) -> Self { Self(column: .acceptance, value: limit?.text) }
}

extension FindingDecision {
  /// nil for an event of a night.
  init?(event: String, value: String?) {
    guard let column = Column(rawValue: event) else { return nil }
    switch column {
    case .status:
      guard let status = FindingStatus(rawValue: value ?? "open") else { return nil }
      self = .status(status)
    case .acceptance: self = .acceptance(value.flatMap { Acceptance(text: $0) })
    case .owner, .remark, .due: self.init(column: column, value: value)
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
    for (column, changes) in byColumn(changes) {
      ids += try connection.execute(
        "SELECT f.finding_id FROM \(effectiveChanges(of: column))",
        [.textArray(changes.map(\.findingId)), .textArray(changes.map(\.decision.value))]
      ).texts()
    }
    return ids
  }

  /// Applies changes, appends them to the history, and returns the changed IDs. Changes made together share `changeId`.
  package static func apply(
    _ changes: [FindingChange], by actor: String, at now: Instant, changeId: String? = nil,
    undoing undone: String? = nil, on connection: borrowing BlockingConnection
  ) throws(PostgresError) -> [String] {
    var ids: [String] = []
    for (column, changes) in byColumn(changes) {
      // Locked in the order of IDs, as a night locks them, because any other order could deadlock.
      ids += try connection.execute(
        """
        WITH wanted AS (
          SELECT f.finding_id, c.value, f.\(column)::text AS before FROM \(effectiveChanges(of: column))
          ORDER BY f.finding_id FOR UPDATE OF f),
        changed AS (
          UPDATE night_audit.findings f SET \(column) = w.value\(column == .due ? "::date" : "") FROM wanted w WHERE w.finding_id = f.finding_id
          RETURNING f.finding_id, w.value, w.before)
        INSERT INTO night_audit.finding_events (finding_id, as_of, event, actor, detail, before, change_id, undoes)
        SELECT finding_id, $3, '\(column)', $4, value, before, $5::uuid, $6::uuid FROM changed ORDER BY finding_id RETURNING finding_id
        """,
        [
          .textArray(changes.map(\.findingId)), .textArray(changes.map(\.decision.value)), .timestamp(now.microseconds),
          .text(actor), .text(changeId), .text(undone),
        ]
      ).texts()
    }
    return ids
  }

  /// SQL: the changes `c` of a column that give findings `f` another value.
  private static func effectiveChanges(of column: FindingDecision.Column) -> String {
    """
    night_audit.findings f JOIN unnest($1::text[], $2::text[]) c (finding_id, value) USING (finding_id)
      WHERE f.\(column)::text IS DISTINCT FROM c.value
    """
  }

  private static func byColumn(_ changes: [FindingChange]) -> [(FindingDecision.Column, [FindingChange])] {
    Dictionary(grouping: changes, by: \.decision.column).sorted { $0.key.rawValue < $1.key.rawValue }
      .map { ($0.key, $0.value) }
  }
}
