import Postgres
import Reconciliation
import Run
import Streams

/// The only reader and writer of `night_audit.journal_entries`, to which nights append.
package enum JournalTable {
  private static let columns: [TableColumn<JournalEntry>] = [
    .text("subject") { $0.event.subject.text }, .text("kind") { $0.event.kind.rawValue },
    .integer("version") { $0.version }, .bool("is_reversal") { $0.isReversal },
    .text("posted_for", as: "date") { $0.postedFor }, .text("event_day", as: "date") { $0.posting.day },
    .text("currency") { $0.posting.amount.currency.code }, .money("amount") { $0.posting.amount },
    .text("app") { $0.posting.app }, .text("transaction_id") { $0.posting.transactionId?.text },
    .text("service_from", as: "date") { $0.posting.service?.lowerBound },
    .text("service_until", as: "date") { $0.posting.service?.upperBound },
  ]

  private static let selected = columns.map(\.selection).joined(separator: ", ")

  /// The first business day of the journal; nil: no earlier night had one.
  package static func firstDay(
    before asOf: Instant, on connection: borrowing BlockingConnection
  ) throws(PostgresError) -> String? {
    try connection.execute(
      """
      SELECT min(journal_since)::text FROM night_audit.runs
      WHERE as_of < $1 AND publication IS DISTINCT FROM 'forgotten'
      """, [.timestamp(asOf.microseconds)]
    ).single().optionalText(0)
  }

  /// True if no night up to an as-of is of a later day.
  package static func isNewest(
    _ day: String, until asOf: Instant, on connection: borrowing BlockingConnection
  ) throws(PostgresError) -> Bool {
    try connection.execute(
      """
      SELECT NOT EXISTS (SELECT FROM night_audit.runs
        WHERE is_nightly AND complete IS NOT NULL AND as_of <= $1 AND period_until > $2::text::date)
      """, [.timestamp(asOf.microseconds), .text(day)]
    ).single().bool(0)
  }

  /// The newest entry of each event of the kinds, in the order of events: of the subjects in `ids`, and of all that were
  /// posted for `day` or later.
  package static func newest(
    of kinds: [JournalEvent.Kind], postedSince day: String? = nil, until asOf: Instant
  ) throws(PostgresError) -> String {
    let words = try kinds.map { kind throws(PostgresError) in try PostgresLiteral.text(kind.rawValue) }
    let since = try day.map { day throws(PostgresError) in try PostgresLiteral.text(day) }
    return """
      SELECT DISTINCT ON (subject, kind) \(selected) FROM (
        SELECT * FROM night_audit.journal_entries WHERE posted_for >= \(since ?? "NULL")::date
        UNION ALL SELECT * FROM night_audit.journal_entries WHERE subject IN (SELECT id FROM ids)) entries
      WHERE kind IN (\(words.joined(separator: ", "))) AND as_of <= \(asOf.sqlText)
      ORDER BY subject, kind, version DESC, is_reversal DESC
      """
  }

  /// The entries that are posted for a range of days.
  package static func posted(for days: ClosedRange<String>, until asOf: Instant) throws(PostgresError) -> String {
    """
    SELECT \(selected) FROM night_audit.journal_entries
    WHERE posted_for BETWEEN \(try PostgresLiteral.text(days.lowerBound))::date
        AND \(try PostgresLiteral.text(days.upperBound))::date
      AND as_of <= \(asOf.sqlText)
    ORDER BY subject, kind, version, is_reversal
    """
  }

  /// The entry in a row of these queries; nil for a kind or a currency that this program does not know.
  package static func entry(_ row: borrowing CopyReader) throws(PostgresError) -> JournalEntry? {
    guard let kind = JournalEvent.Kind(rawValue: try row.text(1)), let currency = Currency(code: try row.text(6)),
      let units = try? row.optionalNumeric(7)?.scaledInt64(decimals: Int(currency.digits))
    else { return nil }
    var posting = JournalPosting(
      amount: Money(minorUnits: units, currency: currency), day: try row.text(5), app: try row.optionalText(8),
      transactionId: try row.optionalId(9))
    if let from = try row.optionalText(10), let until = try row.optionalText(11), from <= until {
      posting.service = from...until
    }
    return JournalEntry(
      event: JournalEvent(kind, try row.id(0)), posting: posting, version: try row.int32(2),
      isReversal: try row.bool(3), postedFor: try row.text(4))
  }

  /// Appends the entries of a night. Those of an earlier run of the same as-of stay: they may be in the ledger already.
  package static func append(
    _ record: RunRecord, on connection: borrowing BlockingConnection, next: () throws -> JournalEntry?
  ) throws {
    try NightTable.append("journal_entries", columns, of: record, on: connection, next: next)
  }
}
