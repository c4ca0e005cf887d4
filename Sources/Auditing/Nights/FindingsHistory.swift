import AuditStore
import Postgres
import Publishing
import Reconciliation
import Reporting
import Run
import Streams

/// Compares tonight's findings with the known ones: new, still open, closed. Openness depends on as-of instants, never
/// on clocks: an audit made twice counts the same.
struct FindingsHistory {
  private struct Known {
    var id: Identifier
    var firstSeen: Instant
    var wasOpen: Bool
    var isListed: Bool
    var status: String
    var owner: String?
    var remark: String?
    var due: String?
    var acceptance: Acceptance?
    var finding: Finding
    var statusBefore: String?
    var atStake: Money?
    /// True if a night between the base night and tonight had it open, with its amount at risk then.
    var wasOpenInBetween: Bool
    var atStakeBetween: Money?
    /// True if the base night or an earlier one reported it, open or closed. A finding that only manual runs met is
    /// new.
    var wasReported: Bool
    /// True if a run of an earlier as-of has closed it, such as an incomplete night since the base night.
    var wasClosedEarlier: Bool
  }

  private let plan: AuditPlan
  private let owners: FindingOwners
  private let changes: NightChanges
  private let today: String

  init(plan: AuditPlan, owners: FindingOwners, changes: NightChanges, today: String) {
    (self.today, self.plan, self.owners, self.changes) = (today, plan, owners, changes)
  }

  private static let batch = 2_000

  /// Compares tonight's findings, sorted by ID, with those of earlier nights.
  /// - Parameter unlisted: findings that the filters leave out, and that may share an amount at risk.
  func compare(
    _ sorter: SpillSorter, unlisted: SpillSorter, on connection: borrowing BlockingConnection,
    figures: inout NightFigures, each: (ReportedFinding) throws -> Void
  ) throws -> FindingsSummary {
    var summary = FindingsSummary()
    var last: [UInt8]?
    var batch: [ReportedFinding] = []
    let carried = try carriedPayments(sorter, unlisted)
    while let record = try sorter.next() {
      let digest = [UInt8](record.key)
      // Two rows with the same kind and subject are one finding.
      if digest == last { continue }
      last = digest
      var reader = RecordReader(record.content)
      var finding = try Finding(from: &reader)
      if !carried.isEmpty, carried.contains(finding.identity) { finding.atStake = nil }
      var reported = ReportedFinding(finding, findingId: Finding.id(ofDigest: digest), firstSeen: plan.asOf)
      reported.explanation = try reader.list { (reader) throws(RecordReader.Mismatch) in try reader.text() }
      batch.append(reported)
      if batch.count == Self.batch {
        try compare(batch, &summary, &figures, on: connection, each)
        batch.removeAll(keepingCapacity: true)
      }
    }
    try compare(batch, &summary, &figures, on: connection, each)
    try countEndedFindings(sorter, &summary, &figures, on: connection)
    return summary
  }

  /// The orphan payments whose amount at risk an accused order carries. Leaves the sorters at their start.
  private func carriedPayments(_ sorters: SpillSorter...) throws -> Set<String> {
    var stakes = SharedStakes(rules: plan.rules)
    func forEach(_ kinds: (UInt8?) -> Bool, _ body: (Finding) -> Void) throws {
      for sorter in sorters {
        try sorter.restart()
        while let record = try sorter.next() {
          // A finding begins with its kind.
          guard kinds(record.content.first) else { continue }
          var reader = RecordReader(record.content)
          body(try Finding(from: &reader))
        }
      }
    }
    let orphan = UInt8(clamping: FindingKind.orphanPayment.index)
    try forEach({ $0 == orphan }) { stakes.add(payment: $0) }
    if !stakes.isEmpty { try forEach({ $0 != orphan }) { stakes.add(order: $0) } }
    for sorter in sorters { try sorter.restart() }
    return stakes.carriedPayments()
  }

  private func compare(
    _ batch: [ReportedFinding], _ summary: inout FindingsSummary, _ figures: inout NightFigures,
    on connection: borrowing BlockingConnection, _ each: (ReportedFinding) throws -> Void
  ) throws {
    if batch.isEmpty { return }
    var known: [Identifier: Known] = [:]
    var rows = try connection.copyOut(
      query("WHERE f.finding_id IN (SELECT id FROM ids)"), ids: batch.lazy.map { Identifier($0.findingId) })
    while try rows.advance() {
      let row = try Self.known(rows, asOf: plan.asOf, selection: plan.selection)
      known[row.id] = row
    }
    for var reported in batch {
      let finding = reported.finding
      if let head = known[Identifier(reported.findingId)] {
        reported.firstSeen = min(head.firstSeen, plan.asOf)
        (reported.status, reported.owner, reported.remark) = (head.status, head.owner, head.remark)
        reported.due = head.due
        if let acceptance = head.acceptance, acceptance.isExceeded(by: finding, today: today) {
          (reported.status, reported.endedAcceptance) = ("open", acceptance.text)
        }
        summary.count(finding, openBefore: head.wasOpen, atStakeBefore: head.atStake)
        figures.add(finding, wasOpen: head.wasOpen)
        try note(reported, head)
      } else {
        reported.owner = owners.owner(of: finding)
        summary.count(finding, openBefore: false, atStakeBefore: nil)
        figures.add(finding, wasOpen: false)
        try changes.add(ChangeRow(.new, finding: finding, findingId: reported.findingId, before: nil, after: "open"))
      }
      summary.add(reported, asOf: plan.asOf, today: today)
      try each(reported)
    }
  }

  /// Counts findings that were open since the base night and do not occur tonight.
  private func countEndedFindings(
    _ tonight: SpillSorter, _ summary: inout FindingsSummary, _ figures: inout NightFigures,
    on connection: borrowing BlockingConnection
  ) throws {
    if changes.base == nil, !isRange { return }
    // A finding that a night met is open or was closed later.
    var conditions = [
      "(f.closed_at IS NULL OR f.closed_at > \(baseInstant))", "(n.is_open OR p.finding_id IS NOT NULL)",
    ]
    for (column, id) in [("order_id", plan.selection.orderId), ("user_id", plan.selection.userId)] {
      if let id { conditions.append("f.\(column) = \(try PostgresLiteral.text(id.text))") }
    }
    var open = try OrderedStream(
      connection.copyOut(query("WHERE \(conditions.joined(separator: " AND ")) ORDER BY f.finding_id"))
    ) { [plan] in try FindingsHistory.known($0, asOf: plan.asOf, selection: plan.selection) }
    try tonight.restart()
    var met = try SpillCursor(tonight) { Identifier(Finding.id(ofDigest: [UInt8]($0.key))) }
    while let head = try open.next() {
      while let id = met.head, id < head.id { try met.advance() }
      if met.head != head.id { try count(gone: head, &summary, &figures) }
    }
  }

  /// A period of several days lies over nights between base and tonight.
  private var isRange: Bool { plan.period.since != plan.period.until }
  private var baseInstant: String { changes.base?.asOf.sqlText ?? "'-infinity'::timestamptz" }

  private func query(_ condition: String) -> String {
    """
    SELECT f.finding_id, f.first_seen, f.closed_at, f.status, f.owner, f.remark, f.order_id, f.user_id, f.product_id,
      f.bundle_id, f.due::text, f.kind, f.severity, n.is_open, n.status, n.currency, n.at_stake,
      p.finding_id IS NOT NULL, p.currency, p.at_stake, f.currency, f.amount, f.occurred_at,
      CASE f.status WHEN 'accepted' THEN f.acceptance END, f.subject_kind, f.subject
    FROM night_audit.findings f LEFT JOIN LATERAL (
      SELECT b.is_open, b.status, b.currency, b.at_stake FROM night_audit.finding_nights b
      WHERE b.finding_id = f.finding_id AND b.as_of <= \(baseInstant) ORDER BY b.as_of DESC LIMIT 1) n ON true
    LEFT JOIN LATERAL (
      SELECT b.finding_id, b.currency, b.at_stake FROM night_audit.finding_nights b
      WHERE \(isRange) AND b.finding_id = f.finding_id AND b.is_open AND b.as_of > \(baseInstant)
        AND b.as_of < \(plan.asOf.sqlText) ORDER BY b.as_of DESC LIMIT 1) p ON true
    \(condition)
    """
  }

  private func note(_ reported: ReportedFinding, _ known: Known) throws {
    let (finding, id) = (reported.finding, reported.findingId)
    if !known.wasOpen {
      try changes.add(
        known.wasReported
          ? ChangeRow(.reopened, finding: finding, findingId: id, before: "closed", after: "open")
          : ChangeRow(.new, finding: finding, findingId: id, before: nil, after: "open"))
    } else if let before = known.statusBefore, before != reported.status {
      try changes.add(
        ChangeRow(
          .status, finding: finding, findingId: id, before: before, after: reported.status,
          because: reported.endedAcceptance.map { "The acceptance has ended: \($0)." }))
    }
  }

  private func count(gone known: Known, _ summary: inout FindingsSummary, _ figures: inout NightFigures) throws {
    guard known.isListed else { return }
    guard known.wasOpen else {
      if known.wasOpenInBetween {
        var finding = known.finding
        finding.atStake = known.atStakeBetween
        summary.count(passing: finding)
      }
      return
    }
    summary.count(closed: known.atStake)
    var finding = known.finding
    finding.atStake = known.atStake
    if !known.wasClosedEarlier { figures.add(closing: finding) }
    try changes.add(
      ChangeRow(
        .closed, finding: finding, findingId: known.id.text, before: known.statusBefore ?? "open", after: "closed"))
  }

  private static func known(
    _ row: borrowing CopyReader, asOf: Instant, selection: Selection
  ) throws(PostgresError) -> Known {
    let firstSeen = Instant(microseconds: try row.timestamp(1))
    let closedAt = try row.optionalTimestamp(2).map { Instant(microseconds: $0) }
    let (orderId, userId, productId) = (try row.optionalId(6), try row.optionalId(7), try row.optionalId(8))
    let isListed = selection.includes(
      orderId: orderId, userId: userId, productId: productId, bundleId: try row.optionalText(9))
    let subject = Subject(Subject.Kind(rawValue: try row.text(24)) ?? .order, try row.id(25))
    // This version does not know the kind; the finding counts as gone.
    var finding = Finding(kind: FindingKind(rawValue: try row.text(11)) ?? .badRow, subject: subject, reason: "")
    finding.severity = Severity(rawValue: try row.text(12)) ?? finding.severity
    (finding.orderId, finding.userId, finding.productId) = (orderId, userId, productId)
    finding.amount = try row.optionalMoney(20)
    finding.occurredAt = try row.optionalInstant(22)
    // A closed finding that reopens loses the decisions of people.
    let wasClosedEarlier = closedAt.map { $0 < asOf } ?? false
    let wasOpen = try row.optionalBool(13)
    return Known(
      id: try row.id(0), firstSeen: firstSeen, wasOpen: wasOpen ?? false, isListed: isListed,
      status: wasClosedEarlier ? "open" : try row.text(3), owner: try row.optionalText(4),
      remark: try row.optionalText(5), due: try row.optionalText(10),
      acceptance: wasClosedEarlier ? nil : try row.optionalText(23).flatMap { Acceptance(text: $0) }, finding: finding,
      statusBefore: try row.optionalText(14), atStake: try row.optionalMoney(15), wasOpenInBetween: try row.bool(17),
      atStakeBetween: try row.optionalMoney(18), wasReported: wasOpen != nil, wasClosedEarlier: wasClosedEarlier)
  }

  private struct Tonight {
    var reported: ReportedFinding
    var app: String?
    var businessDay: String?
    var finding: Finding { reported.finding }
  }

  private static let stored: [TableColumn<Tonight>] = [
    .text("finding_id") { $0.reported.findingId }, .text("kind") { $0.finding.kind.rawValue },
    .text("severity") { $0.finding.severity.rawValue }, .text("subject_kind") { $0.finding.subject.kind.rawValue },
    .text("subject") { $0.finding.subject.id.text }, .text("order_id") { $0.finding.orderId?.text },
    .text("user_id") { $0.finding.userId?.text }, .text("product_id") { $0.finding.productId?.text },
    .text("bundle_id") { $0.finding.bundleId }, .text("transaction_id") { $0.finding.transactionId?.text },
    .text("receipt_id") { $0.finding.receiptId?.text }, .text("delivery_id") { $0.finding.deliveryId?.text },
    .text("environment") { $0.finding.environment?.rawValue }, .text("currency") { $0.finding.currency?.code },
    .money("amount") { $0.finding.amountInRiskCurrency }, .money("at_stake") { $0.finding.atStake },
    .text("reason") { $0.finding.reason.text }, .instant("paid_at") { $0.finding.paidAt },
    .instant("delivered_at") { $0.finding.deliveredAt }, .instant("occurred_at") { $0.finding.occurredAt },
    .bool("at_stake_unknown") { $0.finding.isAmountAtRiskUnknown }, .text("app") { $0.app },
    .text("country") { $0.finding.country?.code }, .text("business_day") { $0.businessDay },
    .text("action") { $0.finding.action.rawValue },
    .instant("subscription_expires_at") { $0.finding.subscriptionExpiresDate }, .text("owner") { $0.reported.owner },
  ]

  private static let columns: [TableColumn<Tonight>] =
    stored + [
      .text("reported_status") { $0.reported.status }, .text("ended_acceptance") { $0.reported.endedAcceptance },
    ]

  private static let storedColumns = stored.map(\.name).joined(separator: ", ")

  static let tonightColumns = columns.map(\.name)

  /// Holds tonight's findings until the run is published.
  static let tonightTable = """
    CREATE TEMPORARY TABLE tonight ON COMMIT DROP AS
    SELECT \(storedColumns), status AS reported_status, acceptance AS ended_acceptance FROM night_audit.findings WITH NO DATA;
    ALTER TABLE tonight ADD PRIMARY KEY (finding_id)
    """

  static func write(
    _ reported: ReportedFinding, in dimensions: inout ReportDimensions, to writer: inout CopyWriter
  ) throws(PostgresError) {
    let finding = reported.finding
    let row = Tonight(
      reported: reported, app: dimensions.app(finding.bundleId),
      businessDay: finding.occurredAt.map { dimensions.businessDay(of: $0) })
    try writer.row { writer throws(PostgresError) in for column in columns { try column.write(row, to: &writer) } }
  }

  /// SQL: tonight's finding `t` has other values than the stored one `f`.
  private static let isChanged = """
    (\(FindingsTrail.columns.map { "f.\($0)" }.joined(separator: ", ")))
      IS DISTINCT FROM (\(FindingsTrail.columns.map { "t.\($0)" }.joined(separator: ", ")))
    """

  /// Opens, reopens and closes stored findings and writes their history. Unchanged findings are not written.
  static func apply(asOf: Instant, runId: String, on connection: borrowing BlockingConnection) throws(PostgresError) {
    let parameters: [PostgresValue] = [.timestamp(asOf.microseconds), .text(runId)]
    // Findings closed by another run of the same as-of count as never closed, so decisions about them stay valid.
    try connection.execute(
      """
      INSERT INTO night_audit.finding_events (finding_id, as_of, run_id, event, digest)
      SELECT t.finding_id, $1, $2::uuid, CASE WHEN f.finding_id IS NULL THEN 'opened'
        WHEN f.closed_at < $1 THEN 'reopened' WHEN f.closed_at IS NOT NULL THEN 'kept_open' ELSE 'changed' END,
        \(FindingsTrail.digest("t"))
      FROM tonight t LEFT JOIN night_audit.findings f USING (finding_id)
      WHERE f.finding_id IS NULL OR f.closed_at IS NOT NULL OR \(isChanged)
      """, parameters)
    try connection.execute(
      """
      INSERT INTO night_audit.finding_events (finding_id, as_of, run_id, event)
      SELECT f.finding_id, $1, $2::uuid, 'closed' FROM night_audit.findings f
      WHERE f.closed_at IS NULL AND NOT EXISTS (SELECT 1 FROM tonight WHERE tonight.finding_id = f.finding_id)
      """, parameters)
    // Open findings are not updated each night, so `last_seen` is set on closing.
    try connection.execute(
      """
      UPDATE night_audit.findings f SET closed_at = $1, last_seen = greatest(f.last_seen, (
        SELECT max(m.as_of) FROM night_audit.findings_met m WHERE m.as_of <= $1 AND m.run_id <> $2::uuid))
      WHERE f.closed_at IS NULL AND NOT EXISTS (SELECT 1 FROM tonight WHERE tonight.finding_id = f.finding_id)
      """, parameters)
    // An acceptance that a person has renewed since the snapshot stays.
    try connection.execute(
      """
      WITH returned AS (
        UPDATE night_audit.findings f SET status = 'open' FROM tonight t
        WHERE t.finding_id = f.finding_id AND f.closed_at IS NULL AND f.status = 'accepted'
          AND f.acceptance = t.ended_acceptance RETURNING f.finding_id, f.acceptance)
      INSERT INTO night_audit.finding_events (finding_id, as_of, run_id, event, detail)
      SELECT finding_id, $1, $2::uuid, 'returned', acceptance FROM returned ORDER BY finding_id
      """, parameters)
    // The owner of a new finding is an event, like the decisions of people.
    try connection.execute(
      """
      INSERT INTO night_audit.finding_events (finding_id, as_of, run_id, event, detail)
      SELECT tonight.finding_id, $1, $2::uuid, 'owner', tonight.owner
      FROM tonight LEFT JOIN night_audit.findings f USING (finding_id)
      WHERE f.finding_id IS NULL AND tonight.owner IS NOT NULL
      """, parameters)
    try connection.execute(
      """
      UPDATE night_audit.findings f SET \(FindingsTrail.columns.map { "\($0) = t.\($0)" }.joined(separator: ", ")),
        opened_at = CASE WHEN f.closed_at < $1 THEN $1 ELSE f.opened_at END,
        status = CASE WHEN f.closed_at < $1 THEN 'open' ELSE f.status END, closed_at = NULL
      FROM tonight t
      WHERE t.finding_id = f.finding_id AND (f.closed_at IS NOT NULL OR \(isChanged))
      """, [.timestamp(asOf.microseconds)])
    try connection.execute(
      """
      INSERT INTO night_audit.findings (\(storedColumns), first_seen, opened_at, last_seen)
      SELECT \(storedColumns), $1, $1, $1 FROM tonight ON CONFLICT (finding_id) DO NOTHING
      """, [.timestamp(asOf.microseconds)])
    try met(parameters, on: connection)
  }

  /// Saves the findings' state where it differs from the previous night. The next night saves later decisions.
  static func saveNight(_ record: RunRecord, on connection: borrowing BlockingConnection) throws(PostgresError) {
    let parameters: [PostgresValue] = [.timestamp(record.asOf.microseconds), .text(record.runId)]
    try saveOwnFindings(record, on: connection)
    // By run because that column is indexed; the table has one row for each change of each finding.
    try connection.execute(
      """
      DELETE FROM night_audit.finding_nights
      WHERE run_id IN (SELECT run_id FROM night_audit.runs WHERE as_of = $1)
      """, [parameters[0]])
    // A separate table, because a plan made for the empty table would read all rows written by the same statement.
    try connection.executeScript(
      "CREATE TEMPORARY TABLE new_nights (LIKE night_audit.finding_nights INCLUDING DEFAULTS) ON COMMIT DROP")
    let columns = "finding_id, as_of, run_id, is_open, status, currency, at_stake"
    try connection.execute(
      """
      INSERT INTO new_nights (\(columns))
      SELECT n.finding_id, $1, $2::uuid, n.is_open, n.status, n.currency, n.at_stake FROM (
        SELECT t.finding_id, true AS is_open, t.reported_status AS status, t.currency, t.at_stake FROM tonight t
        UNION ALL
        SELECT f.finding_id, false, f.status, f.currency, f.at_stake FROM night_audit.findings f
        WHERE (f.closed_at IS NULL OR f.closed_at > coalesce((
            SELECT max(m.as_of) FROM night_audit.findings_met m JOIN night_audit.runs r USING (run_id)
            WHERE r.is_nightly AND m.as_of < $1), '-infinity'))
          AND NOT EXISTS (SELECT FROM tonight t WHERE t.finding_id = f.finding_id)) n
      LEFT JOIN LATERAL (
        SELECT b.is_open, b.status, b.currency, b.at_stake FROM night_audit.finding_nights b
        WHERE b.finding_id = n.finding_id AND b.as_of < $1 ORDER BY b.as_of DESC LIMIT 1) l ON true
      WHERE (n.is_open OR l.is_open) AND (n.is_open, n.status, n.currency, n.at_stake)
        IS DISTINCT FROM (coalesce(l.is_open, false), l.status, l.currency, l.at_stake)
      """, parameters)
    try connection.execute("INSERT INTO night_audit.finding_nights (\(columns)) SELECT \(columns) FROM new_nights")
    try met(parameters, on: connection)
  }

  /// SQL: the first run after `$1` that determined open findings.
  private static let laterRun = """
    SELECT m.run_id, m.as_of FROM night_audit.findings_met m JOIN night_audit.runs r USING (run_id)
    WHERE m.as_of > $1 ORDER BY m.as_of, r.started_at LIMIT 1
    """

  /// Saves findings of a night made after a run of a later as-of that met them later or not at all. People can decide
  /// about them even if that run is undone, and the next night reports the findings that have gone.
  static func saveOwnFindings(_ record: RunRecord, on connection: borrowing BlockingConnection) throws(PostgresError) {
    let run: [PostgresValue] = [.timestamp(record.asOf.microseconds), .text(record.runId)]
    try connection.execute(
      """
      WITH later AS (\(laterRun)), passing AS (
        INSERT INTO night_audit.findings AS f (\(storedColumns), first_seen, opened_at, last_seen, closed_at)
        SELECT \(storedColumns), $1, $1, $1, later.as_of FROM tonight CROSS JOIN later ON CONFLICT (finding_id) DO NOTHING
        RETURNING f.finding_id, f.owner, \(FindingsTrail.digest("f")) AS digest)
      INSERT INTO night_audit.finding_events (finding_id, as_of, run_id, event, detail, digest)
      SELECT p.finding_id, e.as_of, e.run_id, e.event, e.detail, e.digest
      FROM passing p CROSS JOIN later CROSS JOIN LATERAL (
        VALUES (1, $1, $2::uuid, 'opened', NULL, p.digest), (2, $1, $2::uuid, 'owner', p.owner, NULL),
          (3, later.as_of, later.run_id, 'closed', NULL, NULL)) e (place, as_of, run_id, event, detail, digest)
      WHERE e.event <> 'owner' OR e.detail IS NOT NULL ORDER BY e.place, p.finding_id
      """, run)
    // A finding closed before this night and unknown to the later run was open in between.
    try connection.execute(
      """
      WITH later AS (\(laterRun)), passing AS (
        UPDATE night_audit.findings f SET opened_at = $1, closed_at = later.as_of, status = 'open',
          last_seen = greatest(f.last_seen, $1)
        FROM tonight t CROSS JOIN later WHERE t.finding_id = f.finding_id AND f.closed_at < $1
        RETURNING f.finding_id)
      INSERT INTO night_audit.finding_events (finding_id, as_of, run_id, event)
      SELECT p.finding_id, e.as_of, e.run_id, e.event FROM passing p CROSS JOIN later CROSS JOIN LATERAL (
        VALUES (1, $1, $2::uuid, 'reopened'), (2, later.as_of, later.run_id, 'closed')) e (place, as_of, run_id, event)
      ORDER BY e.place, p.finding_id
      """, run)
    try connection.execute(
      """
      WITH earlier AS (
        UPDATE night_audit.findings f SET first_seen = $1, opened_at = least(f.opened_at, $1) FROM tonight t
        WHERE t.finding_id = f.finding_id AND f.first_seen > $1 RETURNING f.finding_id)
      INSERT INTO night_audit.finding_events (finding_id, as_of, run_id, event)
      SELECT finding_id, $1, $2::uuid, 'opened' FROM earlier ORDER BY finding_id
      """, run)
  }

  private static func met(_ run: [PostgresValue], on connection: borrowing BlockingConnection) throws(PostgresError) {
    try connection.execute(
      "INSERT INTO night_audit.findings_met (run_id, as_of) VALUES ($2::uuid, $1) ON CONFLICT DO NOTHING", run)
  }
}

extension CopyReader {
  /// An amount behind its currency.
  func optionalMoney(_ column: Int) throws(PostgresError) -> Money? { try optionalMoney(column + 1, currency: column) }

  func optionalMoney(_ column: Int, currency: Int) throws(PostgresError) -> Money? {
    guard let currency = try optionalText(currency).flatMap({ Currency(code: $0) }),
      let units = try optionalNumeric(column).flatMap({ try? $0.scaledInt64(decimals: Int(currency.digits)) })
    else { return nil }
    return Money(minorUnits: units, currency: currency)
  }
}
