import AuditStore
import Foundation
import Postgres
import Reconciliation
import Reporting
import Run
import Spreadsheet

/// Merges the rows of a returned workbook with the database, in batches.
struct RowMerge {
  private struct Row: Hashable {
    var sheet: String
    /// The wanted columns that the sheet has; columns that it lacks are left alone.
    var columns: Set<String>
    var number: Int
    var findingId: String
    var orderId: String?
    var status: String?
    var owner: ReadCell?
    var remark: ReadCell?
    var due: ReadCell?

    var size: Int {
      [owner, remark, due].reduce(findingId.utf8.count + (orderId?.utf8.count ?? 0) + (status?.utf8.count ?? 0)) {
        sum, cell in
        if case .text(let text) = cell { sum + text.utf8.count } else { sum }
      }
    }
  }

  /// First row of a finding, with a hash of its entries, because a million rows may share one long text.
  private struct Place {
    var sheet: String
    var number: Int
    var entries: Int

    init(_ row: Row) {
      (sheet, number) = (row.sheet, row.number)
      entries = [row.status.map { ReadCell.text($0) }, row.owner, row.remark, row.due].hashValue
    }
  }

  private struct People {
    var status: String
    var owner: String?
    var remark: String?
    var due: String?

    init(_ row: PostgresRow) throws(PostgresError) {
      (status, owner) = (try row.text(1), try row.optionalText(2))
      (remark, due) = (try row.optionalText(3), try row.optionalText(4))
    }
  }

  var outcome = WorkbookImport.Outcome()
  private(set) var changes: [FindingChange] = []
  private let runs: [WorkbookOrigin.Run]
  private var batch: [Row] = []
  private var batchBytes = 0
  private var seen: [String: Place] = [:]

  private static let batchSize = 5_000
  private static let batchLimit = 16 << 20
  /// Longest accepted ID or status, with surrounding blanks.
  private static let longestCellText = 200

  /// - Parameter runs: the runs that may have written the workbook.
  init(runs: [WorkbookOrigin.Run]) { self.runs = runs }

  // MARK: - Rows

  mutating func add(
    _ read: ReadRow, of columns: Set<String>, sheet: String, _ connection: borrowing BlockingConnection
  ) throws {
    let owner = read.cells[FindingsSheet.owner]
    let remark = read.cells[FindingsSheet.remark]
    let status = read.cells[FindingsSheet.status]
    let due = read.cells[FindingsSheet.due]
    func refuse(_ reason: String) { outcome.refusals.append(.init(sheet: sheet, row: read.number, reason: reason)) }
    guard let key = read.cells[FindingsSheet.key] else {
      // Rows that people added below the table, for notes or sums, have no finding.
      if status != nil || owner != nil { refuse("the row has no finding ID; restore it from the report") }
      return
    }
    guard case .text(let text) = key else {
      return refuse("the finding ID is not text; restore it from the report")
    }
    guard text.utf8.count <= RowMerge.longestCellText else { return refuse(RowMerge.unknown(text)) }
    let findingId = text.trimmingCharacters(in: .whitespacesAndNewlines).lowercased()
    var row = Row(
      sheet: sheet, columns: columns, number: read.number, findingId: findingId, owner: owner, remark: remark, due: due)
    if case .text(let text) = read.cells[FindingsSheet.order] { row.orderId = text }
    switch status {
    case .none: break
    // A longer text is no status and is not parsed.
    case .text(let text) where text.utf8.count > RowMerge.longestCellText: row.status = ""
    case .text(let text):
      let word = text.trimmingCharacters(in: .whitespacesAndNewlines).lowercased()
      row.status = word.isEmpty ? nil : word
    case .number, .boolean, .error, .formula: row.status = ""
    }
    let place = Place(row)
    if let first = seen[findingId] {
      if first.entries != place.entries {
        let place = "row \(first.number) of \(first.sheet)"
        refuse("finding \(findingId.prefix(40)) is also on \(place), with other entries; keep one of them")
      }
      return
    }
    seen[findingId] = place
    outcome.rows += 1
    batch.append(row)
    batchBytes += row.size
    if batch.count >= RowMerge.batchSize || batchBytes >= RowMerge.batchLimit { try mergeBatch(connection) }
  }

  mutating func mergeBatch(_ connection: borrowing BlockingConnection) throws {
    let rows = batch
    batch.removeAll(keepingCapacity: true)
    batchBytes = 0
    if rows.isEmpty { return }
    let known = try people(of: rows.map(\.findingId), connection)
    for row in rows {
      guard let (now, before, orderId) = known[row.findingId] else {
        refuse(row, RowMerge.unknown(row.findingId))
        continue
      }
      if let shown = row.orderId, let orderId, RowMerge.differ(shown, orderId) {
        refuse(
          row,
          "finding \(row.findingId.prefix(40)) is about order \(orderId.prefix(40)), and this row shows another one. Was one "
            + "column sorted by itself? Restore the rows from the report")
        continue
      }
      let (refused, changed, listed) = (outcome.refusals.count, changes.count, outcome.changes.count)
      mergeStatus(row, now: now, before: before)
      if row.columns.contains(FindingsSheet.owner) {
        merge(row, "owner", cell: row.owner, now: now.owner, before: before.map(\.owner), PeopleText.owner) {
          .owner($0)
        }
      }
      if row.columns.contains(FindingsSheet.remark), row.remark != ReadCell.text(ReportedFinding.withheldRemark) {
        merge(row, "remark", cell: row.remark, now: now.remark, before: before.map(\.remark), PeopleText.remark) {
          .remark($0)
        }
      }
      if row.columns.contains(FindingsSheet.due) {
        merge(row, "due day", cell: row.due?.asDay, now: now.due, before: before.map(\.due), PeopleText.due) {
          .due($0)
        }
      }
      // A row is refused as a whole, because a part of it would be another decision than the person made.
      if outcome.refusals.count > refused {
        changes.removeLast(changes.count - changed)
        outcome.changes.removeLast(outcome.changes.count - listed)
      }
    }
  }

  private static func unknown(_ findingId: String) -> String {
    "no finding has the ID \(findingId.prefix(40)); restore it from the report"
  }

  /// True if two different orders are meant. Spreadsheets trim blanks, and cells contain no control characters
  /// unescaped.
  private static func differ(_ shown: String, _ orderId: String) -> Bool {
    func plain(_ text: String) -> String { text.trimmingCharacters(in: .whitespacesAndNewlines) }
    return orderId.unicodeScalars.allSatisfy { $0.properties.generalCategory != .control }
      && plain(shown) != plain(orderId)
  }

  private mutating func refuse(_ row: Row, _ reason: String) {
    outcome.refusals.append(.init(sheet: row.sheet, row: row.number, reason: reason))
  }

  // MARK: - Cells

  /// The merge on which all candidate runs agree; `conflict` where they differ.
  private static func merged(sheet: String?, now: String?, before: [String?]) -> PeopleColumnMerge<String?> {
    let befores: [String??] = before.isEmpty ? [nil] : before.map(Optional<String?>.some)
    let merged = befores.map { PeopleColumnMerge(sheet: sheet, now: now, before: $0, isEmpty: sheet == nil) }
    return merged.allSatisfy { $0 == merged[0] } ? merged[0] : .conflict
  }

  private mutating func mergeStatus(_ row: Row, now: People, before: [People]) {
    // An empty status cell changes nothing, because a status cannot be cleared.
    guard let word = row.status else { return }
    guard let status = FindingStatus(rawValue: word) else {
      let known = FindingStatus.allCases.map(\.rawValue).joined(separator: ", ")
      return refuse(row, "the status is not one of \(known); choose one from the list")
    }
    if status == .accepted, now.status != FindingStatus.accepted.rawValue {
      return refuse(row, "an acceptance needs a limit; use night-audit findings accept --until DATE or --amount AMOUNT")
    }
    let merged = RowMerge.merged(sheet: status.rawValue, now: now.status, before: before.map { $0.status })
    apply(merged, row, "status", now: now.status) { _ in .status(status) }
  }

  private mutating func merge(
    _ row: Row, _ column: String, cell: ReadCell?, now: String?, before: [String?],
    _ plain: (String) throws(PeopleText.Refusal) -> String?, _ decision: (String?) -> FindingDecision
  ) {
    do throws(PeopleText.Refusal) {
      let wanted = try plain(cell?.entry(column) ?? "")
      // Values stored before these rules, or by SQL, are normalised so that they compare equal to the returned cell.
      func same(_ stored: String?) -> String? { stored.flatMap { (try? plain($0)) ?? $0 } }
      let merged = RowMerge.merged(sheet: wanted, now: same(now), before: before.map { same($0) })
      apply(merged, row, column, now: now, decision)
    } catch {
      refuse(row, error.description)
    }
  }

  private mutating func apply(
    _ merged: PeopleColumnMerge<String?>, _ row: Row, _ column: String, now: String?,
    _ decision: (String?) -> FindingDecision
  ) {
    switch merged {
    case .keep: return
    case .take(let value):
      changes.append(FindingChange(findingId: row.findingId, decision: decision(value)))
      outcome.changes.append(
        WorkbookImport.Outcome.Change(
          sheet: row.sheet, row: row.number, findingId: row.findingId, column: column, before: now, after: value))
    case .conflict:
      refuse(
        row,
        "the \(column) was changed elsewhere since this workbook was written, to \(RowMerge.quoted(now)); "
          + "write the right one with night-audit findings")
    }
  }

  private static func quoted(_ text: String?) -> String {
    text.map { "\"\($0.prefix(60))\"" } ?? "nothing"
  }

  // MARK: - The database

  private func people(
    of ids: [String], _ connection: borrowing BlockingConnection
  ) throws(PostgresError) -> [String: (now: People, before: [People], orderId: String?)] {
    var known: [String: (now: People, before: [People], orderId: String?)] = [:]
    for row in try connection.execute(
      """
      SELECT finding_id, status, owner, remark, due::text, order_id FROM night_audit.findings
      WHERE finding_id = ANY ($1)
      """,
      [.textArray(ids)])
    {
      known[try row.text(0)] = (try People(row), [], try row.optionalText(5))
    }
    for run in runs {
      for row in try connection.execute(
        RowMerge.before,
        [
          .textArray(ids), .text(run.runId), .int(run.newestEvent), .timestamp(run.began),
          .timestamp(run.asOf.microseconds),
        ])
      {
        known[try row.text(0)]?.before.append(try People(row))
      }
    }
    return known
  }

  /// Columns as a run's report shows them, from events before it and its own. An opened finding starts over.
  private static let before: String = {
    func newest(_ column: String, or other: [String] = []) -> String {
      let events = ([column] + other + ["opened"]).map { "'\($0)'" }.joined(separator: ", ")
      return """
        (SELECT CASE e.event WHEN '\(column)' THEN e.detail END FROM night_audit.finding_events e
         WHERE e.finding_id = f.finding_id AND e.event IN (\(events))
           AND CASE WHEN $3::bigint IS NULL
             THEN e.recorded_at < $4::timestamptz OR e.run_id IS NOT NULL AND e.as_of <= $5::timestamptz
             ELSE e.event_id <= $3::bigint OR e.run_id = $2::uuid END
         ORDER BY e.event_id DESC LIMIT 1)
        """
    }
    return """
      SELECT f.finding_id, coalesce(\(newest("status", or: ["reopened", "returned"])), 'open'), \(newest("owner")),
        \(newest("remark")), \(newest("due"))
      FROM night_audit.findings f WHERE f.finding_id = ANY ($1)
      """
  }()
}

extension ReadCell {
  fileprivate var asDay: ReadCell {
    guard case .number(let serial) = self, let day = CalendarDay.text(serial: serial) else { return self }
    return .text(day)
  }

  func entry(_ column: String) throws(PeopleText.Refusal) -> String {
    let problem: String
    switch self {
    case .text(let content): return content
    case .number: problem = "is a number or a date; format the cell as text and write it again"
    case .boolean: problem = "is TRUE or FALSE; format the cell as text and write it again"
    case .error: problem = "is an error value; write text"
    case .formula: problem = "is a formula; write text"
    }
    throw PeopleText.Refusal(description: "the \(column) \(problem)")
  }
}
