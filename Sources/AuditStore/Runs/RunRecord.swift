import Foundation
import Postgres
import Reconciliation
import Reporting
import Run

/// A row of `night_audit.runs`, and the totals of that night.
package struct RunRecord: Sendable {
  package var runId: String
  package var command: String
  package var asOf: Instant
  package var period: Period
  package var timeZone: String
  package var configuration: String
  package var isNightly: Bool
  package var host: String
  /// Required for publishing; nil in a run that does not publish.
  package var lock: RunLock?
  /// The hash of the run's first entry in the trail; nil if the run is not recorded.
  package var trail: String?
  package var isAccepted = false

  package init(
    runId: String, command: String, asOf: Instant, period: Period, timeZone: String, configuration: String,
    isNightly: Bool, host: String
  ) {
    (self.runId, self.command, self.asOf, self.period) = (runId, command, asOf, period)
    (self.timeZone, self.configuration, self.isNightly, self.host) = (timeZone, configuration, isNightly, host)
  }

  /// Records the start of the run. Returns the hash of its entry in the trail, which the report prints.
  @discardableResult
  package func begin(_ session: PostgresSession) async throws -> String {
    try await session.transaction { connection in
      try connection.execute(
        """
        INSERT INTO night_audit.runs
          (run_id, command, as_of, period_since, period_until, time_zone, configuration, is_nightly, host, version,
          process_id)
        VALUES ($1::uuid, $2, $3, $4::date, $5::date, $6, $7, $8, $9, $10, $11::int)
        """,
        [
          .text(runId), .text(command), .timestamp(asOf.microseconds), .text(period.since), .text(period.until),
          .text(timeZone), .text(configuration), .bool(isNightly), .text(host), .text(Version.current),
          .int(Int64(ProcessInfo.processInfo.processIdentifier)),
        ])
      let newest = "SELECT hash FROM night_audit.trail ORDER BY entry_id DESC LIMIT 1"
      return try connection.execute(newest).single().text(0)
    }
  }

  package static func isThere(asOf: Instant, on connection: borrowing BlockingConnection) throws(PostgresError) -> Bool
  {
    try connection.execute(
      "SELECT EXISTS (SELECT 1 FROM night_audit.runs WHERE as_of = $1)", [.timestamp(asOf.microseconds)]
    ).single().bool(0)
  }

  /// Records that the report is in place; until then the run does not count as complete.
  package func published(as directory: String, on connection: borrowing BlockingConnection) throws(PostgresError) {
    try connection.execute(RunPublication.publishedStatement, [.text(runId), .text(directory)])
  }

  /// Records that the night is held, with the causes. `content` is the SHA-256 of the report's `SHA256SUMS`.
  package func held(
    because causes: [String], mark: ReportMark, directory: String, content: String, exitStatus: Int32,
    on connection: borrowing BlockingConnection
  ) throws(PostgresError) {
    try connection.execute(
      """
      SELECT night_audit.write_run($1::uuid, jsonb_build_object('finished_at', clock_timestamp(),
        'publication', 'held', 'held_because', $2::text[], 'directory', $3::text, 'exit_status', $4::int,
        'newest_event', $5::bigint, 'summary', $6::text, 'content', $7::text))
      """,
      [
        .text(runId), .textArray(causes.map { $0 }), .text(directory), .int(Int64(exitStatus)), .int(mark.newestEvent),
        .text(mark.summary), .text(content),
      ])
  }

  /// Records the end of a run without a report.
  package func end(_ session: PostgresSession, exitStatus: Int32) async throws {
    try await session.execute(
      """
      SELECT night_audit.write_run(
        $1::uuid, jsonb_build_object('finished_at', clock_timestamp(), 'exit_status', $2::int))
      """, [.text(runId), .int(Int64(exitStatus))])
  }

  /// Records results and the future folder; part of the transaction that updates findings. `lookback` has the counts
  /// that the next night is compared with; nil if the run is not nightly. `journalSince` is the journal's first day.
  package func complete(
    totals: Totals, summary: SummaryFacts, directory: String, content: String, mark: ReportMark, exitStatus: Int32,
    lookback: (orders: Int, deliveries: Int)?, journalSince: String?, on connection: borrowing BlockingConnection
  ) throws(PostgresError) {
    var lines: [(currency: Currency, word: String, orders: Int, minorUnits: Int128)] = []
    for disposition in Disposition.inMoneyTotals {
      for sum in totals.amountByDisposition[disposition.index].sorted {
        let orders = totals.ordersByCurrency[disposition.index][sum.currency, default: 0]
        lines.append((sum.currency, disposition.rawValue, orders, sum.minorUnits))
      }
    }
    for sum in summary.findings.atStake.sorted { lines.append((sum.currency, "at_stake", 0, sum.minorUnits)) }
    try NightTable.insert(
      lines,
      [
        .text("currency") { $0.currency.code }, .text("disposition") { $0.word },
        .bigint("orders") { Int64($0.orders) },
        .text("amount", as: "numeric") { Money.decimalText($0.minorUnits, digits: $0.currency.digits) },
      ], into: "run_totals", of: self, on: connection)
    // Last, because its entry in the trail covers all rows above.
    try connection.execute(
      """
      SELECT night_audit.write_run($1::uuid, jsonb_build_object(
        'publication', 'publishing', 'content', $2::text, 'incomplete_reasons', $3::text[], 'orders_read', $4::bigint,
        'findings_opening', $5::bigint, 'findings_new', $6::bigint, 'findings_closed', $7::bigint,
        'findings_closing', $8::bigint, 'directory', $9::text, 'exit_status', $10::int,
        'lookback_orders', $11::bigint, 'lookback_deliveries', $12::bigint, 'newest_event', $13::bigint,
        'summary', $14::text, 'feed_coverage', $15::jsonb, 'journal_since', $16::date))
      """,
      [
        .text(runId), .text(content), .textArray(summary.incompleteReasons.map { $0 }),
        .int(Int64(totals.ordersRead)), .int(Int64(summary.findings.opening)), .int(Int64(summary.findings.new)),
        .int(Int64(summary.findings.closed)), .int(Int64(summary.findings.closing)), .text(directory),
        .int(Int64(exitStatus)), .int(lookback.map { Int64($0.orders) }), .int(lookback.map { Int64($0.deliveries) }),
        .int(mark.newestEvent), .text(mark.summary), FeedCoverage.stored(summary.feedCoverage), .text(journalSince),
      ])
  }

  package func save(_ findings: FindingsSummary, on connection: borrowing BlockingConnection) throws(PostgresError) {
    try NightTable.insert(
      findings.lines,
      [
        .text("kind") { $0.kind.rawValue }, .text("severity") { $0.severity.rawValue },
        .text("currency") { $0.currency?.code ?? "" }, .bigint("findings") { Int64($0.findings) },
        .text("at_stake", as: "numeric") { line in
          line.currency.map { Money.decimalText(line.minorUnits, digits: $0.digits) } ?? "0"
        }, .bigint("at_stake_unknown") { Int64($0.unknown) },
      ], into: "run_findings", of: self, on: connection)
  }

  /// Saves the number of orders of the period with a finding of each kind, and the number of refunds.
  package func save(_ totals: Totals, on connection: borrowing BlockingConnection) throws(PostgresError) {
    var counts = FindingKind.allCases.map { (code: $0.rawValue, orders: totals.ordersByKind[$0.index]) }
    counts.append((UnusualShare.Subject.refunds.code, totals.refunds))
    counts.removeAll { $0.orders == 0 }
    try NightTable.insert(
      counts, [.text("kind") { $0.code }, .bigint("orders") { Int64($0.orders) }], into: "run_kinds", of: self,
      on: connection)
  }

  /// The sums of up to 28 nights before this one.
  package static func precedent(
    before asOf: Instant, day: String, on connection: borrowing BlockingConnection
  ) throws(PostgresError) -> UnusualShare.EarlierNights {
    let rows = try connection.execute(
      """
      WITH nights AS (
        SELECT DISTINCT ON (period_until) run_id, period_until, orders_read FROM night_audit.runs
        WHERE is_nightly AND complete IS NOT NULL AND as_of < $1 AND period_until < $2::text::date
        ORDER BY period_until DESC, as_of DESC, started_at DESC LIMIT 28)
      SELECT NULL, count(*), coalesce(sum(orders_read), 0)::bigint FROM nights
      UNION ALL
      SELECT k.kind, 0, sum(k.orders)::bigint FROM nights JOIN night_audit.run_kinds k USING (run_id) GROUP BY 1
      """, [.timestamp(asOf.microseconds), .text(day)])
    var precedent = UnusualShare.EarlierNights(nights: 0, orders: 0, counts: [:])
    for row in rows {
      let count = Int(try row.int64(2))
      if let code = try row.optionalText(0) {
        precedent.counts[code] = count
      } else {
        (precedent.nights, precedent.orders) = (Int(try row.int64(1)), count)
      }
    }
    return precedent
  }

  /// The nights up to a report of this as-of and last day, oldest first, for the history chart.
  /// - Parameter isNight: the report is one of a night, which its caller adds in place of its earlier reports.
  package static func history(
    upTo asOf: Instant, day: String, isNight: Bool, on connection: borrowing BlockingConnection
  ) throws(PostgresError) -> [Night] {
    let rows = try connection.execute(
      """
      SELECT r.period_until::text, t.currency, t.disposition, t.amount FROM (
        -- A night that was made again counts with its newest report.
        SELECT DISTINCT ON (period_until) run_id, period_until FROM night_audit.runs
        WHERE is_nightly AND complete IS NOT NULL AND CASE WHEN $3 THEN as_of < $1 AND period_until < $2::text::date
          ELSE as_of <= $1 AND period_until <= $2::text::date END
        ORDER BY period_until DESC, as_of DESC, started_at DESC LIMIT 29) r
      -- A night without orders and without an amount at risk has no totals, and is a night all the same.
      LEFT JOIN night_audit.run_totals t USING (run_id)
      ORDER BY r.period_until
      """, [.timestamp(asOf.microseconds), .text(day), .bool(isNight)])
    var nights: [Night] = []
    for row in rows {
      let date = try row.text(0)
      if nights.last?.date != date {
        nights.append(
          Night(date: date, paid: MoneyByCurrency(), delivered: MoneyByCurrency(), atStake: MoneyByCurrency()))
      }
      guard let currency = try row.optionalText(1).flatMap({ Currency(code: $0) }),
        let minorUnits = try? row.numeric(3).scaledInt64(decimals: Int(currency.digits))
      else { continue }
      nights[nights.count - 1].add(Money(minorUnits: minorUnits, currency: currency), under: try row.text(2))
    }
    return nights
  }
}

extension Night {
  package mutating func add(_ money: Money, under word: String) {
    if word == "at_stake" {
      atStake.add(money)
      return
    }
    guard let disposition = Disposition(rawValue: word) else { return }
    switch disposition {
    case .settled, .partlyDelivered:
      paid.add(money)
      delivered.add(money)
    case .paidNotDelivered, .inFlight: paid.add(money)
    case .deliveredNotPaid, .refundedStillDelivered: delivered.add(money)
    case .refunded, .unconfirmed, .void, .sandbox, .badRow: break
    }
  }

  package init(date: String, totals: Totals, atStake: MoneyByCurrency) {
    self.init(date: date, paid: MoneyByCurrency(), delivered: MoneyByCurrency(), atStake: atStake)
    for disposition in Disposition.inMoneyTotals {
      for sum in totals.amountByDisposition[disposition.index].sorted {
        add(Money(minorUnits: Int64(clamping: sum.minorUnits), currency: sum.currency), under: disposition.rawValue)
      }
    }
  }
}
