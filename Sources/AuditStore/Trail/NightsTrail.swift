import Foundation
import Postgres
import Reconciliation
import Reporting
import Streams

/// The rows that runs leave for later nights: findings met, earlier dispositions, totals, owed reports. They decide
/// which changes a report lists. Each run's entry in the trail has digests of them.
package struct NightsTrail {
  struct Night: Hashable {
    var run: String
    var asOf: Instant
    var isNightly: Bool
    var isForgotten: Bool
    /// By table, from the run's entry.
    var recorded: [String: String] = [:]
    /// The first day of the stored orders when the run completed.
    var from: String?
    var found: [String: String] = [:]
  }

  /// A table whose rows are not as the run left them.
  package struct Difference: Hashable, Sendable, CustomStringConvertible {
    package var run: String
    package var asOf: Instant
    package var table: String

    package var description: String {
      "\(table) of run \(run) differs from what the run recorded; "
        + (table == NightsTrail.findingsMet
          ? "to mend it: night-audit rebuild --write" : "make that night again: night-audit run --as-of \(asOf.text)")
    }
  }

  static let findingsMet = "findings_met"
  private static let orders = "order_nights "
  /// Tables whose rows are replaced when a night is made again for the same as-of.
  private static let replaced = ["finding_nights", "journal_entries", "refund_nights", orders]

  package static func differences(
    by entries: [TrailEntry.Content], on connection: borrowing BlockingConnection
  ) throws -> [Difference] {
    var recorded: [String: (place: Int, entry: TrailEntry.Content)] = [:]
    for (place, entry) in entries.enumerated() where entry.kind == .completed || entry.kind == .found {
      // The first entry counts, as for reports.
      if let run = entry.run, recorded[run] == nil { recorded[run] = (place, entry) }
    }
    let rows = try connection.execute(
      """
      SELECT run_id::text, as_of, is_nightly, publication IS NOT DISTINCT FROM 'forgotten',
        night_audit.night_digests(run_id)::text
      FROM night_audit.runs ORDER BY started_at, run_id
      """)
    var nights: [(place: Int, night: Night)] = []
    for row in rows {
      var night = Night(
        run: try row.text(0), asOf: try row.instant(1), isNightly: try row.bool(2), isForgotten: try row.bool(3))
      night.found = try JSONDecoder().decode([String: String].self, from: Data(try row.text(4).utf8))
      let own = recorded[night.run]
      if let own {
        // Nothing was recorded for runs from before the trail.
        guard let digests = own.entry.nights else { continue }
        (night.recorded, night.from) = (digests, own.entry.nightsFrom)
      }
      nights.append((own?.place ?? .max, night))
    }
    return differences(of: nights.sorted { $0.place < $1.place }.map(\.night))
  }

  /// - Parameter nights: in the order of completion; incomplete ones last.
  static func differences(of nights: [Night]) -> [Difference] {
    var differences: [Difference] = []
    for (place, night) in nights.enumerated() where !night.isForgotten {
      let later = nights[(place + 1)...]
      let hasLaterNight = later.contains {
        $0.isNightly && $0.asOf == night.asOf && !$0.recorded.isEmpty || $0.isForgotten && $0.asOf == night.asOf
      }
      // Part of the first stored day may have left the lookback.
      let boundary = nights[place...].compactMap(\.from).max()
      for table in Set(night.recorded.keys).union(night.found.keys).sorted()
      where night.recorded[table] != night.found[table] {
        if hasLaterNight, replaced.contains(where: { table.hasPrefix($0) }) { continue }
        if table.hasPrefix(orders), let boundary, table.dropFirst(orders.count) <= boundary { continue }
        differences.append(Difference(run: night.run, asOf: night.asOf, table: table))
      }
    }
    return differences
  }

  static func mend(_ differences: [Difference], on connection: borrowing BlockingConnection) throws(PostgresError) {
    let runs: [PostgresValue] = [.textArray(differences.filter { $0.table == findingsMet }.map(\.run))]
    try connection.execute("DELETE FROM night_audit.findings_met WHERE run_id::text = ANY ($1)", runs)
    try connection.execute(
      """
      INSERT INTO night_audit.findings_met (run_id, as_of)
      SELECT r.run_id, r.as_of FROM night_audit.runs r JOIN night_audit.trail t ON t.content::jsonb ->> 'run' = r.run_id::text
      WHERE r.run_id::text = ANY ($1) AND t.content::jsonb ->> 'kind' = 'completed'
        AND t.content::jsonb -> 'nights' ? 'findings_met'
      """, runs)
  }
}
