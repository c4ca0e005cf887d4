import AuditStore
import Postgres
import Reconciliation
import Reporting

extension TieOutFacts.Revision {
  /// Days with a changed report since the last tie-out in a published report, else since the first. A manual tie-out or
  /// a failed night does not count, so the next night reports its days. `day` is the business day of the as-of.
  package static func since(
    lastReportedBefore asOf: Instant, day: String, on connection: borrowing BlockingConnection
  ) throws -> [TieOutFacts.Revision] {
    try connection.execute(
      """
      WITH last AS (
        SELECT coalesce(max(t.as_of) FILTER (WHERE EXISTS (
          SELECT FROM night_audit.runs r WHERE r.as_of = t.as_of AND \(PublishedReport.publishedRunCondition))),
          min(t.as_of)) AS as_of
        FROM night_audit.tie_outs t WHERE t.as_of < $1),
      reports AS (
        SELECT r.report_id, r.vendor, r.name, r.as_of, r.as_of <= last.as_of AS is_compared
        FROM night_audit.connect_reports r, last
        WHERE r.kind = 'SALES' AND r.frequency = 'DAILY' AND r.state IN ('reported', 'zero') AND r.as_of <= $1),
      newest AS (SELECT DISTINCT ON (name, vendor) * FROM reports ORDER BY name, vendor, report_id DESC),
      compared AS (
        SELECT DISTINCT ON (name, vendor) * FROM reports WHERE is_compared ORDER BY name, vendor, report_id DESC)
      SELECT n.name, n.vendor,
        (SELECT coalesce(sum(units), 0) FROM night_audit.connect_sales WHERE report_id = t.report_id AND parent <> ''),
        (SELECT coalesce(sum(units), 0) FROM night_audit.connect_sales WHERE report_id = n.report_id AND parent <> '')
      FROM newest n JOIN compared t USING (name, vendor)
      WHERE NOT n.is_compared AND EXISTS (
        SELECT FROM night_audit.connect_sales s
        WHERE s.report_id IN (n.report_id, t.report_id) AND (s.parent <> '' OR s.developer_proceeds <> 0)
        GROUP BY s.sku, s.parent, s.type, s.country, s.customer_currency, s.proceeds_currency, s.customer_price,
          s.developer_proceeds, s.sign
        HAVING sum(s.units) FILTER (WHERE s.report_id = n.report_id)
          IS DISTINCT FROM sum(s.units) FILTER (WHERE s.report_id = t.report_id))
      ORDER BY n.name, n.vendor
      """, [.timestamp(asOf.microseconds), .text(day)]
    ).map { row in
      TieOutFacts.Revision(
        day: try row.text(0), vendor: try row.text(1), before: try Millionths(row.numeric(2)),
        now: try Millionths(row.numeric(3)))
    }
  }
}
