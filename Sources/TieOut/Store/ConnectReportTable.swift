import AuditStore
import Crypto
import Gzip
import Postgres
import Reconciliation
import Run

package struct ConnectReport: Hashable, Sendable {
  package enum Source: String, Hashable, Sendable {
    case api
    case folder
  }

  package var vendor: String
  package var kind: ReportKind
  package var frequency = ""
  package var name: String
  package var version: String?
  package var source: Source
  package var fileName: String?
  package var httpStatus: Int?
  package var detail: String?

  /// The report's identity as the first four parameters of a statement: vendor, kind, frequency and name.
  fileprivate var key: [PostgresValue] { [.text(vendor), .text(kind.rawValue), .text(frequency), .text(name)] }
}

package enum ConnectReportTable {
  /// The newest state of reports, by name and vendor.
  package typealias KnownReports = [String: [String: Known]]

  package struct Known: Hashable, Sendable {
    package var state: DownloadState
    package var source: ConnectReport.Source

    package init(_ state: DownloadState, _ source: ConnectReport.Source) { (self.state, self.source) = (state, source) }

    /// True unless its vendor was removed from the configuration. Without configured vendors, all known ones are
    /// awaited.
    func isAwaited(of vendor: String, among vendors: [String]) -> Bool {
      vendors.isEmpty || vendors.contains(vendor) || source == .folder
    }
  }

  /// SQL: the download of each report that counts at an as-of. It is the last one stored by then.
  ///
  /// An absence never replaces a report. A doubtful zero replaces a zero without a file, which was believed because no
  /// units of that day were known here.
  static func current(_ asOf: Instant) throws(PostgresError) -> String {
    """
    (SELECT DISTINCT ON (kind, frequency, name, vendor)
        report_id, vendor, kind, frequency, name, source, file_name, state, digest, detail
      FROM night_audit.connect_reports
      WHERE as_of <= \(try PostgresLiteral.timestamp(asOf.microseconds))
      ORDER BY kind, frequency, name, vendor,
        (state IN ('reported', 'unreadable') OR state = 'zero' AND (digest IS NOT NULL OR report_id > coalesce(
          max(report_id) FILTER (WHERE state = 'doubtful_zero') OVER (PARTITION BY kind, frequency, name, vendor), 0)))
        DESC, report_id DESC)
    """
  }

  /// The as-of under which a run stores reports. Earlier nights that are made again do not use them.
  package static func storedAsOf(
    _ asOf: Instant, on connection: borrowing BlockingConnection
  ) throws(PostgresError) -> Instant {
    let noted = try connection.execute(
      "SELECT \(PublishedReport.noted("$1::timestamptz"))", [.timestamp(asOf.microseconds)]
    ).single().timestamp(0)
    return Instant(microseconds: noted)
  }

  package static func known(
    _ kind: ReportKind, frequency: String, asOf: Instant, on connection: borrowing BlockingConnection
  ) throws(PostgresError) -> KnownReports {
    let rows = try connection.execute(
      """
      SELECT name, vendor, state, source FROM \(try current(asOf)) r WHERE kind = $1 AND frequency = $2
      """, [.text(kind.rawValue), .text(frequency)])
    var known: KnownReports = [:]
    for row in rows {
      guard let state = DownloadState(rawValue: try row.text(2)),
        let source = ConnectReport.Source(rawValue: try row.text(3))
      else { continue }
      known[try row.text(0), default: [:]][try row.text(1)] = Known(state, source)
    }
    return known
  }

  /// Days with a daily report that is unreadable at the as-of. Their earlier rows do not count.
  package static func unreadableDays(
    asOf: Instant, on connection: borrowing BlockingConnection
  ) throws(PostgresError) -> Set<ReportDay> {
    let rows = try connection.execute(
      """
      SELECT DISTINCT name FROM \(try current(asOf)) r
      WHERE kind = 'SALES' AND frequency = 'DAILY' AND state = 'unreadable'
      """)
    return Set(try rows.map { (row) throws(PostgresError) in ReportDay(try row.text(0)) }.compactMap(\.self))
  }

  /// Sentences about unreadable reports: daily ones of `days`, and finance reports of `periods`.
  static func unreadable(
    _ days: ClosedRange<ReportDay>, _ periods: [String], asOf: Instant, on connection: borrowing BlockingConnection
  ) throws(PostgresError) -> [String] {
    let rows = try connection.execute(
      """
      SELECT coalesce(file_name, kind || ' ' || name || ' of vendor ' || vendor), detail
      FROM \(try current(asOf)) r
      WHERE state = 'unreadable' AND detail IS NOT NULL
        AND (frequency = 'DAILY' AND name BETWEEN $1 AND $2 OR kind <> 'SALES' AND name = ANY ($3::text[]))
      ORDER BY kind COLLATE "C", name COLLATE "C", vendor COLLATE "C"
      """, [.text(days.lowerBound.description), .text(days.upperBound.description), .textArray(periods)])
    return try rows.map { (row) throws(PostgresError) in "\(try row.text(0)): \(try row.text(1))" }
  }

  /// The files of the folder already read for one report, compared with a file there now.
  struct FolderFileState: Hashable {
    var newestFile: String?
    var isNewest: Bool
    var isKnown: Bool

    /// True if the file must be read. A file is read once; one superseded by another file counts again only if that is
    /// gone.
    func isNews(_ name: String, among names: Set<String>) -> Bool {
      if isNewest { return false }
      guard isKnown, let newestFile, newestFile != name else { return true }
      return !names.contains(newestFile)
    }
  }

  /// nil: none was read. Compared by report, because reports of days without sales have equal bytes.
  static func folderFileState(
    _ bytes: [UInt8], as report: ConnectReport, asOf: Instant, on connection: borrowing BlockingConnection
  ) throws(PostgresError) -> FolderFileState? {
    let rows = try connection.execute(
      """
      SELECT file_name, digest IS NOT DISTINCT FROM $6, bool_or(digest IS NOT DISTINCT FROM $6) OVER ()
      FROM night_audit.connect_reports
      WHERE vendor = $1 AND kind = $2 AND frequency = $3 AND name = $4 AND source = $5
        AND as_of <= $7
      ORDER BY report_id DESC LIMIT 1
      """, report.key + [.text(report.source.rawValue), .text(digest(bytes)), .timestamp(asOf.microseconds)])
    for row in rows {
      return FolderFileState(newestFile: try row.optionalText(0), isNewest: try row.bool(1), isKnown: try row.bool(2))
    }
    return nil
  }

  /// Stores Apple's answer that nothing was sold, weighed against earlier reports. `hasOwnUnits`: we know of units that
  /// Apple should count on those days.
  package static func storeNoSales(
    _ report: ConnectReport, hasOwnUnits: Bool, asOf: Instant, on connection: borrowing BlockingConnection
  ) throws(PostgresError) {
    let before = try connection.execute(
      """
      SELECT coalesce(bool_or(state = 'reported'), false), min(as_of) FILTER (WHERE state = 'doubtful_zero')
      FROM night_audit.connect_reports WHERE vendor = $1 AND kind = $2 AND frequency = $3 AND name = $4
      """, report.key
    ).single()
    let first = try before.optionalTimestamp(1).map { Instant(microseconds: $0) }
    let state = DownloadState.noSales(
      hasRows: try before.bool(0), hasOwnUnits: hasOwnUnits, daysSinceFirst: first.map { Int((asOf - $0).wholeDays) })
    try store(report, state: state, asOf: asOf, on: connection)
  }

  package static func store(
    _ report: ConnectReport, state: DownloadState, asOf: Instant, on connection: borrowing BlockingConnection
  ) throws(PostgresError) {
    _ = try insert(report, state: state, digest: nil, raw: nil, asOf: asOf, on: connection)
  }

  /// Stores a file with its rows, or the file alone if it is unreadable. Returns the state, and why it is unreadable.
  package static func store(
    _ bytes: [UInt8], as report: ConnectReport, asOf: Instant, on connection: borrowing BlockingConnection
  ) throws -> (state: DownloadState, problem: String?, notes: [String]) {
    let digest = Self.digest(bytes)
    if let known = try unchanged(report, digest, asOf: asOf, on: connection) { return (known, nil, []) }
    do {
      return try connection.transaction { connection in
        let id = try insert(report, state: .reported, digest: digest, raw: bytes, asOf: asOf, on: connection)
        let (rows, notes) = try read(bytes, of: report, reportId: id, on: connection)
        if rows > 0 { return (.reported, nil, notes) }
        try connection.execute("UPDATE night_audit.connect_reports SET state = 'zero' WHERE report_id = $1", [.int(id)])
        return (.zero, nil, notes)
      }
    } catch let problem where problem is ReportProblem || problem is GunzipError {
      var report = report
      report.detail = "\(problem)"
      _ = try insert(report, state: .unreadable, digest: digest, raw: bytes, asOf: asOf, on: connection)
      return (.unreadable, report.detail, [])
    }
  }

  /// Drops raw files; their rows stay.
  package static func dropRaw(before: Instant, on connection: borrowing BlockingConnection) throws(PostgresError) {
    try connection.execute(
      "UPDATE night_audit.connect_reports SET raw = NULL WHERE raw IS NOT NULL AND as_of < $1",
      [.timestamp(before.microseconds)])
  }

  private static func digest(_ bytes: [UInt8]) -> String { Digest.hexadecimal(SHA256.hash(data: bytes)) }

  /// The state of the current file if it equals the new one, which is then not stored again.
  private static func unchanged(
    _ report: ConnectReport, _ digest: String, asOf: Instant, on connection: borrowing BlockingConnection
  ) throws(PostgresError) -> DownloadState? {
    let rows = try connection.execute(
      """
      SELECT state FROM \(try current(asOf)) r
      WHERE vendor = $1 AND kind = $2 AND frequency = $3 AND name = $4 AND digest = $5
      """, report.key + [.text(digest)])
    for row in rows { return DownloadState(rawValue: try row.text(0)) }
    return nil
  }

  private static func insert(
    _ report: ConnectReport, state: DownloadState, digest: String?, raw: [UInt8]?, asOf: Instant,
    on connection: borrowing BlockingConnection
  ) throws(PostgresError) -> Int64 {
    try connection.execute(
      """
      INSERT INTO night_audit.connect_reports
        (vendor, kind, frequency, name, version, source, file_name, as_of, state, http_status, digest, detail, raw)
      VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10::int, $11, $12, $13) RETURNING report_id
      """,
      report.key + [
        .text(report.version), .text(report.source.rawValue), .text(report.fileName), .timestamp(asOf.microseconds),
        .text(state.rawValue), .int(report.httpStatus.map(Int64.init)), .text(digest), .text(report.detail),
        .bytes(raw),
      ]
    ).single().int64(0)
  }

  private static func read(
    _ bytes: [UInt8], of report: ConnectReport, reportId: Int64, on connection: borrowing BlockingConnection
  ) throws -> (rows: Int, notes: [String]) {
    switch report.kind {
    case .sales: try ConnectSalesRows.read(bytes, of: report, reportId: reportId, on: connection)
    case .financial, .detail: try ConnectSettlementRows.read(bytes, of: report, reportId: reportId, on: connection)
    }
  }
}

extension ConnectReportTable.KnownReports {
  /// The first and the last place of each vendor's readable reports. `place` is that of a report's name.
  func spans<Place: Comparable>(
    where isCounted: (_ vendor: String, ConnectReportTable.Known) -> Bool = { _, _ in true },
    _ place: (String) -> Place?
  ) -> [String: ClosedRange<Place>] {
    reduce(into: [:]) { spans, report in
      guard let place = place(report.key) else { return }
      for (vendor, known) in report.value where known.state.replacesEarlier && isCounted(vendor, known) {
        let span = spans[vendor] ?? place...place
        spans[vendor] = Swift.min(span.lowerBound, place)...Swift.max(span.upperBound, place)
      }
    }
  }
}

extension Millionths {
  /// A value of one row. More than 64 bits of millionths is no plausible amount.
  func numeric(_ what: String) throws(ReportProblem) -> PostgresNumeric {
    guard let scaled = Int64(exactly: count) else { throw ReportProblem("\(what) is \(self), more than can be kept") }
    return PostgresNumeric(scaled: scaled, decimals: 6)
  }

  init(_ numeric: PostgresNumeric) throws(PostgresError) {
    guard let count = try? numeric.scaledInt128(decimals: 6) else {
      throw PostgresError(.usage, "a number has more than six digits after the point")
    }
    self.init(count: count)
  }
}

extension PostgresNumeric {
  /// A sum, which may exceed 64 bits of millionths; nil if it could not be read back.
  init?(_ sum: Millionths) { self.init(exactly: sum.count, decimals: 6) }
}
