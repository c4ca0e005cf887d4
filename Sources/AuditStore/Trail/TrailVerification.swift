import Crypto
import Foundation
import Postgres
import Run

/// Verifies that everything the trail covers is unchanged. All digests are computed in this process.
package struct TrailVerification: Sendable {
  /// One line of `verify`.
  package struct Check: Hashable, Sendable, Encodable {
    package var subject: String
    /// The first mismatch; nil if there is none.
    package var problem: String?

    package init(_ subject: String, problem: String? = nil) { (self.subject, self.problem) = (subject, problem) }
  }

  package private(set) var checks: [Check] = []
  package private(set) var entries: [TrailEntry] = []

  /// Tables covered by ranges of IDs.
  static let tables = [
    (name: "evidence", key: "evidence_id"), (name: "answers", key: "answer_id"),
    (name: "finding_events", key: "event_id"), (name: "run_events", key: "event_id"),
  ]

  package static func whole(on connection: borrowing BlockingConnection) throws -> TrailVerification {
    var verification = try TrailVerification(entriesOn: connection)
    guard verification.isProven else { return verification }
    for table in tables {
      verification.checks.append(try verification.prove(table.name, key: table.key, on: connection))
    }
    verification.checks.append(try verification.proveRuns(on: connection))
    let contents = verification.entries.map(\.content)
    verification.checks.append(try FindingsTrail.prove(by: contents, on: connection))
    let differences = try NightsTrail.differences(by: contents, on: connection)
    verification.checks.append(
      Check("tables that later nights read", problem: differences.first.map { "\($0)" }))
    verification.checks.append(try verification.proveTables(on: connection))
    // Reported without failing, because an append-only fact cannot be removed.
    let uncounted = try EvidenceTable.firstUncounted(on: connection)
    verification.checks.append(
      Check("facts of runs\(uncounted.map { ", except for those that do not count: \($0)" } ?? "")"))
    let state = try InterNightState.problems(on: connection)
    verification.checks.append(
      Check(
        "state between nights", problem: state.first.map { "\($0); to mend it: night-audit rebuild --write" }))
    return verification
  }

  package var isProven: Bool { checks.allSatisfy { $0.problem == nil } }

  /// Verifies only the chain of entries.
  package init(entriesOn connection: borrowing BlockingConnection) throws {
    try connection.executeScript(
      """
      DECLARE entries NO SCROLL CURSOR FOR
      SELECT entry_id, previous, content, hash FROM night_audit.trail ORDER BY entry_id
      """)
    var problem: String?
    do {
      while true {
        let rows = try connection.execute("FETCH 1000 FROM entries")
        if rows.isEmpty { break }
        for row in rows { entries.append(try TrailEntry(row, after: entries.last)) }
      }
      problem =
        entries.first?.content.kind == .start
        ? TrailVerification.problem(ofReleases: entries.map(\.content))
          ?? TrailVerification.problem(ofReports: entries.map(\.content)) : "its beginning is missing"
    } catch let broken as TrailEntry.Broken { problem = broken.problem }
    try connection.executeScript("CLOSE entries")
    let newest = entries.last.map { ", the newest of \($0.content.at) with hash \($0.hash)" } ?? ""
    checks = [Check("trail (\(entries.count) entries\(newest))", problem: problem)]
  }

  /// The first entry about released months that the program cannot have written; nil if there is none. Only past months
  /// are released, and the entry before must cover all released rows.
  static func problem(ofReleases entries: [TrailEntry.Content]) -> String? {
    var last: Trail.Kind?
    for entry in entries {
      defer { last = entry.kind }
      guard entry.kind == .released else { continue }
      if last != .beforeRelease { return "entry \(entry.entry) deletes rows that the entry before it does not cover" }
      guard let before = entry.before, before.wholeMatch(of: /\d{4}-\d{2}-\d{2}/) != nil,
        before <= "\(entry.at.prefix(7))-01"
      else { return "entry \(entry.entry) deletes a month that had not ended" }
    }
    return nil
  }

  /// The first contradiction between entries about one run, oldest first; nil if there is none. A run has one report.
  static func problem(ofReports entries: [TrailEntry.Content]) -> String? {
    var made: [String: (entry: Int64, report: String)] = [:]
    for entry in entries {
      guard let run = entry.run, let report = entry.report else { continue }
      if let first = made[run], first.report != report {
        return "entry \(entry.entry) names another report of run \(run) than entry \(first.entry) does"
      }
      if made[run] == nil { made[run] = (entry.entry, report) }
    }
    return nil
  }

  func problem(of table: String, on connection: borrowing BlockingConnection) throws -> String? {
    if let problem = checks.first(where: { $0.problem != nil })?.problem { return problem }
    for covered in TrailVerification.tables where covered.name == table {
      return try prove(table, key: covered.key, on: connection).problem
    }
    return nil
  }

  /// A covered range of a table, with the columns of its digests.
  private struct Piece {
    var condition: String
    var columns: String
    var segments: [(entry: Int64, segment: TrailEntry.Segment)]
    /// Describes the rows of a problem.
    var note = ""
  }

  /// Verifies that a table has exactly the appended rows, except released ones.
  func prove(_ table: String, key: String, on connection: borrowing BlockingConnection) throws -> Check {
    let released = entries.last { $0.content.kind == .released && $0.content.table == table }
    let before = released?.content.before
    let gone = before.map { before in
      "recorded_at < '\(before)'::timestamp AT TIME ZONE 'UTC' AND \(key) <= \(released?.content.marks[table] ?? .min)"
    }
    // IDs before the first mark are covered by no entry.
    let made = try connection.execute("SELECT min(\(key)) FROM night_audit.\(table) WHERE \(key) < 1").single()
    if let made = try made.optionalInt64(0) {
      return Check(table, problem: "row \(made) has an ID that the table never assigns")
    }
    var pieces = pieces(of: table, key: key, released, gone: gone ?? "false")
    if let released, let before, let gone {
      let kept = released.content.kept.map { [(entry: released.id, segment: $0)] } ?? []
      pieces.append(
        Piece(
          condition: gone, columns: released.content.keyColumns ?? key, segments: kept,
          note: "among the rows kept from before \(before): "))
    }
    var rows: Int64 = 0
    for piece in pieces {
      var reader = SegmentReader(segments: piece.segments)
      let image = try TrailVerification.image(of: table, piece.columns, on: connection)
      var found = try connection.copyOut(
        "SELECT \(key), \(image) FROM night_audit.\(table) WHERE \(piece.condition) ORDER BY \(key)")
      while try found.advance() { reader.take(try found.int64(0), try found.bytes(1).map { [UInt8]($0) } ?? []) }
      if let problem = reader.end() { return Check(table, problem: piece.note + problem) }
      rows += reader.rows
    }
    let mark = entries.last?.content.marks[table] ?? .min
    let new = try connection.execute("SELECT count(*) FROM night_audit.\(table) WHERE \(key) > $1", [.int(mark)])
      .single().int64(0)
    let removalNote = before.map { "; expired rows before \($0) were deleted" } ?? ""
    let newer = new > 0 ? ", and \(new) that the next entry covers" : ""
    return Check("\(table) (\(rows) rows\(newer)\(removalNote))")
  }

  /// The ranges that consecutive entries cover with the same columns.
  private func pieces(of table: String, key: String, _ released: TrailEntry?, gone: String) -> [Piece] {
    var pieces: [Piece] = []
    var (start, mark) = (Int64.min, Int64.min)
    for entry in entries {
      let content = entry.content
      guard let through = content.marks[table], through > mark, let columns = content.columns[table] else { continue }
      let months = entry.id < released?.id ?? .min ? released?.content.before?.prefix(7) ?? "" : ""
      let segments = content.appended.filter { $0.table == table && $0.month >= months }
        .map { (entry: entry.id, segment: $0) }
      if pieces.last?.columns != columns {
        pieces.append(Piece(condition: "", columns: columns, segments: []))
        start = mark
      }
      pieces[pieces.count - 1].condition = "\(key) > \(start) AND \(key) <= \(through) AND NOT (\(gone))"
      pieces[pieces.count - 1].segments += segments
      mark = through
    }
    return pieces
  }

  /// SQL for the SHA-256 of a row over these columns; empty if a later column has a value.
  private static func image(
    of table: String, _ columns: String, on connection: borrowing BlockingConnection
  ) throws -> String {
    let names = columns.components(separatedBy: ", ")
    guard names.allSatisfy({ $0.wholeMatch(of: /"?[a-z0-9_]+"?/) != nil }) else {
      throw PostgresError(.usage, "the trail names columns that \(table) does not have")
    }
    let later = try connection.execute(
      """
      SELECT quote_ident(attname) FROM pg_attribute WHERE attrelid = ('night_audit.' || $1)::regclass AND attnum > 0
        AND NOT attisdropped AND attname NOT LIKE 'heartbeat%' AND quote_ident(attname) <> ALL ($2)
      """, [.text(table), .textArray(names.map { $0 })]
    ).texts()
    let image = "sha256(record_send(ROW(\(columns))))"
    if later.isEmpty { return image }
    return "CASE WHEN num_nonnulls(\(later.joined(separator: ", "))) = 0 THEN \(image) ELSE '' END"
  }

  /// Compares tables with the newest entry that covers each of them.
  private func proveTables(on connection: borrowing BlockingConnection) throws -> Check {
    var newest: [String: (entry: Int64, digest: String)] = [:]
    for entry in entries {
      for (table, digest) in entry.content.tables ?? [:] { newest[table] = (entry.id, digest) }
    }
    let tables = newest.keys.sorted()
    let found = try connection.execute("SELECT night_audit.table_digests($1)::text", [.textArray(tables.map { $0 })])
      .single().text(0)
    let digests = try JSONDecoder().decode([String: String].self, from: Data(found.utf8))
    let odd = tables.first { digests[$0] != newest[$0]?.digest }
    let problem = odd.map { table in
      """
      night_audit.\(table) is not as entry \(newest[table]?.entry ?? 0) left it; to write it again: night-audit \
      \(table == "claims" ? "run" : "tie-out")
      """
    }
    return Check("claims and results of tie-outs", problem: problem)
  }

  /// Entries about a run's row, oldest first.
  package func entries(ofRun runId: String) -> [TrailEntry.Content] {
    entries.map(\.content).filter { $0.run == runId && $0.row != nil }
  }

  private func newest(ofRun runId: String) -> TrailEntry? {
    entries.last { $0.content.run == runId && $0.content.row != nil }
  }

  private func proveRuns(on connection: borrowing BlockingConnection) throws -> Check {
    var newest: [String: TrailEntry] = [:]
    for entry in entries where entry.content.row != nil {
      if let run = entry.content.run { newest[run] = entry }
    }
    let runs = try connection.execute("SELECT run_id::text FROM night_audit.runs ORDER BY started_at, run_id").texts()
    if let run = runs.first(where: { newest[$0] == nil }) {
      return Check("runs", problem: "run \(run) is in no entry; night-audit did not record it")
    }
    let present = Set(runs)
    if let (run, entry) = newest.filter({ !present.contains($0.key) }).min(by: { $0.value.id < $1.value.id }) {
      return Check("runs", problem: "run \(run) of entry \(entry.id) is missing")
    }
    for (columns, entries) in Dictionary(grouping: newest.values, by: { $0.content.columns["runs"] ?? "" }) {
      let problem = try TrailVerification.problem(ofRuns: entries.sorted { $0.id < $1.id }, columns, on: connection)
      if let problem { return Check("runs", problem: problem) }
    }
    // Reported without failing, because a run cannot be removed.
    let odd = try connection.execute(
      "SELECT run_id::text FROM night_audit.runs r WHERE \(InterNightState.isOfTheFuture("r")) ORDER BY 1 LIMIT 1")
    let note = try odd.first.map { row throws(PostgresError) in
      ", of which run \(try row.text(0)) has an as-of in the future; to undo it: night-audit runs forget RUN"
    }
    return Check("runs (\(newest.count) rows)\(note ?? "")")
  }

  package func prove(run runId: String, on connection: borrowing BlockingConnection) throws -> Check {
    guard let entry = newest(ofRun: runId) else {
      return Check("run \(runId)", problem: "is in no entry of the trail; night-audit did not record it")
    }
    let problem = try TrailVerification.problem(ofRuns: [entry], entry.content.columns["runs"] ?? "", on: connection)
    return Check(
      "run \(runId) (entry \(entry.id) of the trail, \(entry.content.kind.rawValue))", problem: problem)
  }

  private static func problem(
    ofRuns entries: [TrailEntry], _ columns: String, on connection: borrowing BlockingConnection
  ) throws -> String? {
    let image = try image(of: "runs", columns, on: connection)
    let rows = try connection.execute(
      "SELECT run_id::text, encode(\(image), 'hex') FROM night_audit.runs WHERE run_id::text = ANY ($1)",
      [.textArray(entries.map(\.content.run))])
    var found: [String: String] = [:]
    for row in rows { found[try row.text(0)] = try row.text(1) }
    let odd = entries.first { found[$0.content.run ?? ""] != $0.content.row }
    return odd.map { "run \($0.content.run ?? "") is not as entry \($0.id) left it" }
  }
}

/// Compares rows with the digests of entries, one row at a time.
private struct SegmentReader {
  let segments: [(entry: Int64, segment: TrailEntry.Segment)]
  private(set) var rows: Int64 = 0
  private var position = 0
  private var rowsOfSegment: Int64 = 0
  private var digest: [UInt8] = []
  private var problem: String?

  init(segments: [(entry: Int64, segment: TrailEntry.Segment)]) { self.segments = segments }

  /// - Parameter image: empty if a column has a value that was added after the row was covered.
  mutating func take(_ id: Int64, _ image: [UInt8]) {
    if problem != nil { return }
    while position < segments.count, segments[position].segment.last < id { close() }
    if problem != nil { return }
    guard position < segments.count, segments[position].segment.first <= id else {
      problem = "row \(id) was not there when the trail covered the rows around it"
      return
    }
    if image.isEmpty {
      problem = "row \(id) is not as it was appended"
      return
    }
    rows += 1
    rowsOfSegment += 1
    digest = Array(SHA256.hash(data: digest + image))
  }

  /// - Returns: the first mismatch.
  mutating func end() -> String? {
    while problem == nil, position < segments.count { close() }
    return problem
  }

  private mutating func close() {
    let (entry, segment) = segments[position]
    let place = "rows \(segment.first) to \(segment.last), which entry \(entry) covers"
    if rowsOfSegment != segment.rows {
      problem = "of \(place), \(rowsOfSegment) rows exist instead of \(segment.rows)"
    } else if Digest.hexadecimal(digest) != segment.digest {
      problem = "\(place), are not as they were appended"
    }
    position += 1
    rowsOfSegment = 0
    digest = []
  }
}
