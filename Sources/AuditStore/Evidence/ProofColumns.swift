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
