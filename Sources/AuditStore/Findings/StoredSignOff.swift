import Postgres

/// A sign-off of a run's report: the lines that one import recorded.
package struct StoredSignOff: Hashable, Sendable {
  package enum Line: String, Sendable, CaseIterable {
    case preparedBy = "prepared_by"
    case reviewedBy = "reviewed_by"
    case date = "signed_on"
    case remark
  }

  package var lines: [Line: String]

  package init(lines: [Line: String]) { self.lines = lines }

  /// The sign-offs of a run that were not undone, oldest first.
  package static func current(
    ofRun runId: String, on connection: borrowing BlockingConnection
  ) throws(PostgresError) -> [StoredSignOff] {
    let rows = try connection.execute(
      """
      SELECT coalesce(e.change_id::text, e.event_id::text), e.event, e.detail FROM night_audit.run_events e
      WHERE e.run_id = $1::uuid AND e.detail IS NOT NULL AND \(currentSignOffCondition) ORDER BY e.event_id
      """, [.text(runId)])
    var found: [StoredSignOff] = []
    var last: String?
    for row in rows {
      let change = try row.text(0)
      if change != last { found.append(StoredSignOff(lines: [:])) }
      last = change
      if let line = Line(rawValue: try row.text(1)) { found[found.count - 1].lines[line] = try row.text(2) }
    }
    return found
  }

  /// - Parameter changeId: a UUID for `findings undo`.
  package func record(
    ofRun runId: String, by actor: String, changeId: String, on connection: borrowing BlockingConnection
  ) throws(PostgresError) {
    for line in Line.allCases {
      guard let text = lines[line] else { continue }
      try connection.execute(
        """
        INSERT INTO night_audit.run_events (run_id, event, actor, detail, change_id)
        VALUES ($1::uuid, $2, $3, $4, $5::uuid)
        """, [.text(runId), .text(line.rawValue), .text(actor), .text(text), .text(changeId)])
    }
  }

  /// Undoes a sign-off and returns its runs. Its lines stay in the history.
  static func undo(
    _ changeId: String, by actor: String, isDryRun: Bool, on connection: borrowing BlockingConnection
  ) throws(PostgresError) -> [String] {
    let runs = try connection.execute(
      "SELECT DISTINCT e.run_id::text FROM night_audit.run_events e WHERE e.change_id = $1::uuid AND \(currentSignOffCondition)",
      [.text(changeId)]
    ).texts()
    if !isDryRun {
      try connection.execute(
        """
        INSERT INTO night_audit.run_events (run_id, event, actor, undoes)
        SELECT unnest($1::text[])::uuid, 'undone', $2, $3::uuid
        """, [.textArray(runs.map { $0 }), .text(actor), .text(changeId)])
    }
    return runs
  }

  private static let currentSignOffCondition = """
    e.event IN ('prepared_by', 'reviewed_by', 'signed_on', 'remark')
      AND NOT EXISTS (SELECT FROM night_audit.run_events u WHERE u.undoes = e.change_id)
    """

  /// SQL for an array of a run's sign-offs: signer, and who recorded it when.
  package static func texts(ofRun run: String) -> String {
    """
    coalesce((SELECT array_agg(s.words ORDER BY s.first) FROM (
      SELECT min(e.event_id) AS first, concat_ws(', ',
          'prepared by ' || max(e.detail) FILTER (WHERE e.event = 'prepared_by'),
          'reviewed by ' || max(e.detail) FILTER (WHERE e.event = 'reviewed_by'),
          'dated ' || max(e.detail) FILTER (WHERE e.event = 'signed_on'))
        || format(' (recorded %s by %s)', to_char(max(e.recorded_at) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'),
          max(e.actor)) AS words
      FROM night_audit.run_events e WHERE e.run_id = \(run) AND \(currentSignOffCondition)
      GROUP BY coalesce(e.change_id::text, e.event_id::text)
      HAVING bool_or(e.event IN ('prepared_by', 'reviewed_by'))) s), '{}')
    """
  }
}
