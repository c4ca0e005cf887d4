import AuditStore
import Foundation
import Postgres
import Reconciliation
import Reporting
import Run
import Spreadsheet

/// The runs that may have written a workbook. Its bytes name none: repeating an audit gives the same bytes.
struct WorkbookOrigin: Equatable {
  struct Traits: Equatable {
    var digits: String?
    var day: String?
    /// In whole seconds: the time of creation that the workbook carries. nil: a program has removed it.
    var asOf: Instant?
  }

  struct Run: Hashable, Sendable {
    var runId: String
    var asOf: Instant
    /// The newest finding event that its report contains; nil for a run of an earlier version.
    var newestEvent: Int64?
    /// Start by the database's clock. Without `newestEvent`, decisions before it count as contained in the workbook.
    var began: Int64
    /// SHA-256 of `summary.json`; nil for a run of an earlier version.
    var summary: String?
    var day: String
    var isPublished: Bool
    var content: String?
    var incompleteReasons: [String] = []
  }

  /// The reason not to sign a report whose period has not ended at its as-of; nil if the period has ended.
  static func missingDays(of period: Period, in zone: TimeZone, at asOf: Instant) -> String? {
    let days = period.missingDays(at: asOf, in: zone)
    if days == 0 { return nil }
    let missing = days == 1 ? "1 day is missing" : "\(days) days are missing"
    return "\(missing), because the period ends with \(period.until)."
  }

  let runs: [Run]
  let asOf: Instant?
  /// True if the digest of `summary.json` identifies them; false if only as-of and day do.
  private let isExact: Bool

  init(_ traits: Traits, among runs: [Run]) {
    let same = runs.filter { run in traits.digits.map { run.summary?.hasPrefix($0) ?? false } ?? false }
    isExact = !same.isEmpty
    asOf = traits.asOf
    self.runs =
      isExact
      ? same
      : runs.filter { (traits.digits == nil || $0.summary == nil) && (traits.day == nil || traits.day == $0.day) }
  }

  init(of reader: borrowing WorkbookReader, on connection: borrowing BlockingConnection) throws {
    let traits = try Traits(of: reader)
    var runs: [Run] = []
    if let asOf = traits.asOf { runs = try Run.all(asOf: asOf, on: connection) }
    self.init(traits, among: runs)
  }

  /// The run to sign: of several with the same content, the one published last.
  func signed() throws(PeopleText.Refusal) -> Run {
    if runs.isEmpty {
      throw PeopleText.Refusal(
        description: "no run of this database wrote this workbook; make the report with night-audit run, and sign "
          + "that one")
    }
    let published = runs.filter(\.isPublished)
    guard let last = published.last else {
      throw PeopleText.Refusal(
        description: "its report is not published: it is held, or was forgotten; sign the one that is published")
    }
    guard isExact || published.count == 1 || published.allSatisfy({ $0.content != nil && $0.content == last.content })
    else {
      throw PeopleText.Refusal(
        description: "several reports of this as-of differ, and this workbook does not show which one it belongs to; "
          + "make the report again and sign that one")
    }
    return last
  }
}

extension WorkbookOrigin.Traits {
  fileprivate init(of reader: borrowing WorkbookReader) throws {
    var (digits, day): (String?, String?) = (nil, nil)
    _ = try reader.rows(of: SignOff.sheet, columns: [0: "label", 1: "entry"]) { row in
      guard case .text(let label) = row.cells["label"], case .text(let entry) = row.cells["entry"] else { return }
      switch label {
      case ReportIdentity.run: digits = digits ?? ReportIdentity.digits(in: entry)
      case ReportIdentity.day, ReportIdentity.lastDay: day = day ?? entry
      default: break
      }
    }
    (self.digits, self.day) = (digits, day)
    asOf = reader.created.map { Instant(seconds: $0) }
  }
}

extension WorkbookOrigin.Run {
  /// - Parameter asOf: as workbooks carry it, in whole seconds.
  fileprivate static func all(
    asOf: Instant, on connection: borrowing BlockingConnection
  ) throws(PostgresError) -> [WorkbookOrigin.Run] {
    try connection.execute(
      """
      SELECT run_id::text, as_of, newest_event, started_at, summary, period_until::text, publication = 'published', content,
        incomplete_reasons, period_since::text, time_zone
      FROM night_audit.runs
      WHERE publication <> 'not_published' AND as_of >= $1 AND as_of < $1 + interval '1 second' ORDER BY started_at
      """, [.timestamp(asOf.microseconds)]
    ).map { row throws(PostgresError) in
      let (asOf, until) = (Instant(microseconds: try row.timestamp(1)), try row.text(5))
      let zone = TimeZone(identifier: try row.text(10)) ?? .gmt
      let period = try? Period(since: try row.text(9), until: until, in: zone)
      let missing = period.flatMap { WorkbookOrigin.missingDays(of: $0, in: zone, at: asOf) }
      return WorkbookOrigin.Run(
        runId: try row.text(0), asOf: asOf, newestEvent: try row.optionalInt64(2), began: try row.timestamp(3),
        summary: try row.optionalText(4), day: until, isPublished: try row.bool(6), content: try row.optionalText(7),
        incompleteReasons: [missing].compactMap(\.self) + (try row.textArray(8).compactMap { $0 }))
    }
  }
}
