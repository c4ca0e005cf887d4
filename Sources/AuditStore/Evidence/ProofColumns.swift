import Postgres
import Reconciliation
import Streams

/// The orders that receipts had before the shop moved them to others.
package enum FormerOrder {
  /// SQL: the order of a receipt in the last complete night, of `receipt_checks` under an alias; NULL for none.
  package static func inLastNight(_ checks: String) -> String {
    """
    nullif(coalesce(CASE WHEN \(checks).moved_since > (
      SELECT max(r.as_of) FROM night_audit.runs r WHERE r.is_nightly AND r.complete) THEN \(checks).order_before END,
      \(checks).order_id), '')
    """
  }
}

extension ProofState {
  /// Of `receipt_checks` under the alias `c`.
  package static var columns: String {
    ColumnContents(of: ProofState.blank).columns.map { "c.\($0.name)" }.joined(separator: ", ")
  }
}

extension ProofStateFields {
  /// Reads the state from the column `first` on; nil if there is no check.
  package init?(_ row: borrowing CopyReader, from first: Int) throws(PostgresError) {
    if try row.isNull(first) { return nil }
    var state = Self.blank
    try row.read(from: first) { (reader) throws(PostgresError) in try state.code(with: &reader) }
    self = state
  }
}
