import AuditStore
import Foundation
import Postgres
import Reconciliation
import Reporting
import Run
import Spreadsheet
import Streams

/// Merges the rows of a returned workbook with the database, in batches.
struct RowMerge {
  private struct Row: Hashable {
    var sheet: String
    /// The wanted columns that the sheet has; columns that it lacks are left alone.
    var columns: Set<String>
    var number: Int
    var findingId: String
    var orderId: String?
    var kind: String?
    var severity: String?
    /// As the sheet shows them; nil for an empty cell.
    var amount: String?
    var atStake: String?
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
    var status = FindingStatus.open.rawValue
    var owner: String?
    var remark: String?
    var due: String?

    init() {}

    init(_ row: PostgresRow) throws(PostgresError) {
      (status, owner) = (try row.text(1), try row.optionalText(2))
      (remark, due) = (try row.optionalText(3), try row.optionalText(4))
    }
  }

  private struct Known {
    var now: People
    /// The states that the workbook may show: one for each candidate run. Without a run, all since its as-of.
    var before: [People] = []
    var orderId: String?
    var closedAt: Instant?
    var amount: String?
    var atStake: String?
    var currency: String?

    init(_ row: PostgresRow) throws(PostgresError) {
      now = try People(row)
      (orderId, closedAt) = (try row.optionalText(5), try row.optionalInstant(6))
      (amount, atStake, currency) = (try row.optionalText(7), try row.optionalText(8), try row.optionalText(9))
    }
  }

  var outcome = WorkbookImport.Outcome()
  private(set) var changes: [FindingChange] = []
  private let runs: [WorkbookOrigin.Run]
  private let asOf: Instant
  private let owners: FindingOwners
  private let today: String?
  private var batch: [Row] = []
  private var batchBytes = 0
  private var seen: [String: Place] = [:]

  private static let batchSize = 5_000
  private static let batchLimit = 16 << 20
  /// Longest accepted ID or status, with surrounding blanks.
  private static let longestCellText = 200

  /// - Parameters:
  ///   - runs: the runs that may have written the workbook.
  ///   - asOf: of the workbook; nil: unknown, so that it may show any earlier state.
  ///   - owners: of findings that the database does not know.
  ///   - today: due days before it are noted; nil notes none.
  init(
    runs: [WorkbookOrigin.Run], asOf: Instant? = nil, owners: FindingOwners = FindingOwners(), today: String? = nil
  ) {
    (self.runs, self.asOf, self.owners, self.today) = (runs, asOf ?? Instant(seconds: 0), owners, today)
  }

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
    row.kind = RowMerge.short(read.cells[FindingsSheet.kind])
    row.severity = RowMerge.short(read.cells[FindingsSheet.severity])
    row.amount = RowMerge.short(read.cells[FindingsSheet.amount])
    row.atStake = RowMerge.short(read.cells[FindingsSheet.atStake])
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
      guard let finding = known[row.findingId] else {
        // A report that no run recorded, and that of a held night, may show findings that no night has met.
        if isDecided(row) { refuse(row, RowMerge.unknown(row.findingId)) }
        continue
      }
      let (now, before, orderId) = (finding.now, finding.before, finding.orderId)
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
        merge(row, "due day", cell: row.due, isDay: true, now: now.due, before: before.map(\.due), PeopleText.due) {
          .due($0)
        }
      }
      // A row is refused as a whole, because a part of it would be another decision than the person made.
      if outcome.refusals.count > refused {
        changes.removeLast(changes.count - changed)
        outcome.changes.removeLast(outcome.changes.count - listed)
      } else if changes.count > changed {
        note(row, finding, changes[changed...].map(\.decision))
      }
    }
  }

  /// The text or number of a cell, if it is short.
  private static func short(_ cell: ReadCell?) -> String? {
    switch cell {
    case .text(let text), .number(let text): text.utf8.count <= longestCellText ? text : nil
    case .boolean, .error, .formula, .none: nil
    }
  }

  private static let kinds = Dictionary(FindingKind.allCases.map { ($0.title, $0) }) { first, _ in first }

  /// True if a person has filled in a row of a finding that the database does not know.
  private func isDecided(_ row: Row) -> Bool {
    func isFilled(_ cell: ReadCell?, besides shown: String? = nil) -> Bool {
      guard case .text(let text) = cell else { return cell != nil }
      let plain = text.trimmingCharacters(in: .whitespacesAndNewlines)
      return !plain.isEmpty && plain != shown
    }
    let owner =
      row.kind.flatMap { RowMerge.kinds[$0] }.flatMap { owners.byKind[$0] }
      ?? row.severity.flatMap { Severity(rawValue: $0) }.flatMap { owners.bySeverity[$0] }
    return row.status.map { $0 != FindingStatus.open.rawValue } ?? false
      || isFilled(row.owner, besides: owner) || isFilled(row.remark, besides: ReportedFinding.withheldRemark)
      || isFilled(row.due)
  }

  /// Notes what the person may not have known about a finding, or may have mistyped.
  private mutating func note(_ row: Row, _ finding: Known, _ decisions: [FindingDecision]) {
    func add(_ note: String) { outcome.notes.append(.init(sheet: row.sheet, row: row.number, note: note)) }
    if let closedAt = finding.closedAt {
      add("the finding has closed by itself at \(closedAt.text), so the entries change no report unless it returns")
    }
    let money = [
      (FindingsSheet.amount, "amount", row.amount, finding.amount),
      (FindingsSheet.atStake, "amount at risk", row.atStake, finding.atStake),
    ].compactMap { column, name, shown, now -> String? in
      guard row.columns.contains(column), RowMerge.differ(amount: shown, now) else { return nil }
      return "\(name) \(shown ?? "none") in the workbook, \(now ?? "none") now"
    }
    if !money.isEmpty {
      let currency = finding.currency.map { " in \($0)" } ?? ""
      add("the money of the finding is another one\(currency): \(money.joined(separator: "; ")). Check the decision")
    }
    if let today, let due = decisions.first(where: { $0.column == .due })?.value, due < today {
      add("the due day \(due) is past; check the year")
    }
  }

  private static func differ(amount shown: String?, _ now: String?) -> Bool {
    guard let shown, let now else { return (shown == nil) != (now == nil) }
    guard let left = Double(shown), let right = Double(now) else { return false }
    return (left - right).magnitude > 0.000_1
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

  /// The merge on which all states agree that the workbook may show; `conflict` where they differ.
  private func merged(sheet: String?, now: String?, before: [String?]) -> PeopleColumnMerge<String?> {
    // Without a run, it is unknown at which time after its as-of the workbook was written.
    if runs.isEmpty, sheet == nil || before.contains(sheet) { return .keep }
    let merged = before.map { PeopleColumnMerge(sheet: sheet, now: now, before: $0) }
    guard let first = merged.first else { return .keep }
    return merged.allSatisfy { $0 == first } ? first : .conflict
  }

  private mutating func mergeStatus(_ row: Row, now: People, before: [People]) {
    // An empty status cell changes nothing, because a status cannot be cleared.
    guard let word = row.status else { return }
    guard let status = FindingStatus(rawValue: word) else {
      let known = FindingStatus.allCases.map(\.rawValue).joined(separator: ", ")
      return refuse(row, "the status is not one of \(known); choose one from the list")
    }
    let merged = self.merged(sheet: status.rawValue, now: now.status, before: before.map { $0.status })
    if status == .accepted, merged != .keep {
      return refuse(row, "an acceptance needs a limit; use night-audit findings accept --until DATE or --amount AMOUNT")
    }
    apply(merged, row, "status", now: now.status) { _ in .status(status) }
  }

  private mutating func merge(
    _ row: Row, _ column: String, cell: ReadCell?, isDay: Bool = false, now: String?, before: [String?],
    _ plain: (String) throws(PeopleText.Refusal) -> String?, _ decision: (String?) -> FindingDecision
  ) {
    do throws(PeopleText.Refusal) {
      let wanted = try plain(cell?.entry(column, isDay: isDay) ?? "")
      // Values stored before these rules, or by SQL, are normalised so that they compare equal to the returned cell.
      func same(_ stored: String?) -> String? { stored.flatMap { (try? plain($0)) ?? $0 } }
      let merged = self.merged(sheet: wanted, now: same(now), before: before.map { same($0) })
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
  ) throws(PostgresError) -> [String: Known] {
    var known: [String: Known] = [:]
    for row in try connection.execute(
      """
      SELECT finding_id, status, owner, remark, due::text, order_id, closed_at, amount::text, at_stake::text, currency
      FROM night_audit.findings WHERE finding_id = ANY ($1)
      """,
      [.textArray(ids)])
    {
      known[try row.text(0)] = try Known(row)
    }
    if runs.isEmpty { try addStates(to: &known, of: ids, connection) }
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

  /// Adds the states of findings at the as-of, and after each change since.
  private func addStates(
    to known: inout [String: Known], of ids: [String], _ connection: borrowing BlockingConnection
  ) throws(PostgresError) {
    let instant = PostgresValue.timestamp(asOf.microseconds)
    for row in try connection.execute(RowMerge.before, [.textArray(ids), .text(nil), .int(nil), instant, instant]) {
      let id = try row.text(0)
      known[id]?.before.append(try People(row))
      // A report shows a finding that had closed earlier, and occurs again, as an open one.
      if let closedAt = known[id]?.closedAt, closedAt < asOf, var state = known[id]?.before.last {
        state.status = FindingStatus.open.rawValue
        known[id]?.before.append(state)
      }
    }
    let events = try connection.execute(
      """
      SELECT finding_id, event, detail, run_id IS NOT NULL FROM night_audit.finding_events
      WHERE finding_id = ANY ($1) AND recorded_at >= $2
        AND event IN ('status', 'owner', 'remark', 'due', 'opened', 'reopened', 'returned')
      ORDER BY event_id
      """, [.textArray(ids), instant])
    for row in events {
      let (id, detail, isOfRun) = (try row.text(0), try row.optionalText(2), try row.bool(3))
      guard var states = known[id]?.before, var state = states.last else { continue }
      switch try row.text(1) {
      case "status": state.status = detail ?? FindingStatus.open.rawValue
      case "owner":
        // The first owner comes with the finding, so no report shows the finding without it.
        if isOfRun { for index in states.indices where states[index].owner == nil { states[index].owner = detail } }
        state.owner = detail
      case "remark": state.remark = detail
      case "due": state.due = detail
      case "opened": state = People()
      default: state.status = FindingStatus.open.rawValue
      }
      known[id]?.before = states + [state]
    }
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
  /// - Parameter isDay: a number is a date, as in a cell that a spreadsheet formats as one.
  func entry(_ column: String, isDay: Bool = false) throws(PeopleText.Refusal) -> String {
    let problem: String
    switch self {
    case .text(let content): return content
    case .number(let serial) where isDay:
      if let day = CalendarDay.text(serial: serial) { return day }
      problem = "is no date from 2000 to 2199; write a date such as 2026-12-01"
    case .number: problem = "is a number or a date; format the cell as text and write it again"
    case .boolean: problem = "is TRUE or FALSE; format the cell as text and write it again"
    case .error: problem = "is an error value; write text"
    case .formula: problem = "is a formula; write text"
    }
    throw PeopleText.Refusal(description: "the \(column) \(problem)")
  }
}
