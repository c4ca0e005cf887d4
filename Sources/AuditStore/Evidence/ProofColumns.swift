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
  /// Of `receipt_checks` under the alias `c`. Only the newest attempt is stored; one after the as-of has no date.
  package static func columns(
    hiding isHidden: (_ date: String) throws(PostgresError) -> String
  ) throws(PostgresError) -> String {
    try VisibleColumns.list(
      ColumnContents(of: ProofState.blank).columns.map(\.name), of: "c", hiding: isHidden,
      in: ["answered_at", "last_attempt"])
  }
}

/// The columns of a relation, with NULL in place of hidden dates.
enum VisibleColumns {
  /// - Parameters:
  ///   - isHidden: SQL that is true for a date after the as-of.
  ///   - dates: the columns that may be hidden.
  static func list(
    _ names: [String], of alias: String, hiding isHidden: (_ date: String) throws(PostgresError) -> String,
    in dates: Set<String>
  ) throws(PostgresError) -> String {
    var columns = names.map { "\(alias).\($0)" }
    for place in names.indices where dates.contains(names[place]) {
      let isLater = try isHidden(columns[place])
      columns[place] = "CASE WHEN (\(isLater)) IS NOT TRUE THEN \(columns[place]) END"
    }
    return columns.joined(separator: ", ")
  }
}
