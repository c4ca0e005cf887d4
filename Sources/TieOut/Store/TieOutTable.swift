import Postgres
import Reconciliation
import Streams

package enum TieOutTable {
  private static let keyColumns = ["level", "app", "product_id", "day", "country", "currency", "class"]
  private static let amountColumns =
    ["apple", "ours", "shop", "difference"] + TieOutExplanation.allCases.map(\.rawValue) + ["unexplained", "awaited"]

  /// SQL for the as-of of the rows that count at `asOf`. It is the newest that is not later, else the next one.
  private static func believed(_ asOf: Instant) throws(PostgresError) -> String {
    "coalesce(max(as_of) FILTER (WHERE as_of <= \(try PostgresLiteral.timestamp(asOf.microseconds))), min(as_of))"
  }

  /// Replaces rows of these days by this or an earlier as-of. Requires a transaction.
  static func replace(
    _ days: ClosedRange<ReportDay>, asOf: Instant, on connection: borrowing BlockingConnection,
    _ body: (_ append: (TieOutRow) throws -> Void) throws -> Void
  ) throws {
    // Locked because two concurrent calls would each delete the other's rows.
    try connection.execute("SELECT pg_advisory_xact_lock(hashtext('night_audit.tie_out_rows'))")
    try connection.execute(
      "DELETE FROM night_audit.tie_out_rows WHERE day BETWEEN $1 AND $2 AND as_of <= $3",
      [
        .text(days.lowerBound.description), .text(days.upperBound.description), .timestamp(asOf.microseconds),
      ])
    try connection.copyIn(
      into: try PostgresIdentifier("night_audit", "tie_out_rows"), columns: keyColumns + amountColumns + ["as_of"]
    ) { writer in
      try body { try append($0, asOf: asOf, to: &writer) }
    }
  }

  private static func append(_ row: TieOutRow, asOf: Instant, to writer: inout CopyWriter) throws {
    let numerics = (row.figures + [row.awaited]).map { amount in amount.flatMap { PostgresNumeric($0) } }
    try writer.row { (writer) throws(PostgresError) in
      for text in [
        row.level.rawValue, row.app, row.productId.text, row.day.description, row.country.text, row.currency.text,
        row.kind.rawValue,
      ] {
        try writer.text(text)
      }
      for numeric in numerics { try writer.numeric(numeric) }
      try writer.timestamp(asOf.microseconds)
    }
  }

  /// The rows of these days at an as-of, in the byte order of their keys.
  package static func forEach(
    _ days: ClosedRange<ReportDay>, asOf: Instant, on connection: borrowing BlockingConnection,
    _ body: (TieOutRow) throws -> Void
  ) throws {
    var reader = try connection.copyOut(
      """
      SELECT \((keyColumns + amountColumns).joined(separator: ", ")) FROM night_audit.tie_out_rows
      JOIN (
        SELECT day, \(try believed(asOf)) AS as_of FROM night_audit.tie_out_rows
        WHERE day BETWEEN \(try PostgresLiteral.text(days.lowerBound.description))
          AND \(try PostgresLiteral.text(days.upperBound.description))
        GROUP BY day) believed USING (day, as_of)
      ORDER BY level, app, product_id, day, country, currency, class
      """)
    while try reader.advance() {
      if let row = try row(reader) { try body(row) }
    }
  }

  private static func row(_ reader: borrowing CopyReader) throws(PostgresError) -> TieOutRow? {
    func amount(_ column: Int) throws(PostgresError) -> Millionths? {
      guard let numeric = try reader.optionalNumeric(column) else { return nil }
      return try Millionths(numeric)
    }
    guard let level = TieOutLevel(rawValue: try reader.text(0)), let day = ReportDay(try reader.text(3)),
      let kind = TieOutClass(rawValue: try reader.text(6))
    else { return nil }
    var comparison: TieOutRow.Comparison?
    let first = keyColumns.count + 4
    if let unexplained = try amount(first + TieOutExplanation.allCases.count) {
      var explained = Explained()
      for (index, explanation) in TieOutExplanation.allCases.enumerated() {
        explained[explanation] = try amount(first + index) ?? .zero
      }
      comparison = .init(explained: explained, unexplained: unexplained)
    }
    return TieOutRow(
      level: level, app: try reader.text(1), productId: try reader.id(2), day: day, country: try reader.id(4),
      currency: try reader.id(5), kind: kind, apple: try amount(7), ours: try amount(8), shop: try amount(9),
      comparison: comparison, awaited: try amount(first + TieOutExplanation.allCases.count + 1) ?? .zero)
  }

  // MARK: - Periods

  package struct Period: Hashable, Sendable {
    package var name: String
    package var currency: Identifier
    package var line: ProceedsSettlement.Line
    package var hasSales: Bool

    /// Sales proceeds, open at the end, settled from before, never collected, settled, difference, gross, commission,
    /// tax; nil: unknown.
    package var figures: [Millionths?] {
      func ofSales(_ value: Millionths, ifKnown isKnown: Bool = true) -> Millionths? {
        hasSales && isKnown ? value : nil
      }
      return [
        ofSales(line.salesProceeds), ofSales(line.openAtEnd), line.settledFromBefore, ofSales(line.neverCollected),
        line.settled, ofSales(line.difference), ofSales(line.gross, ifKnown: line.isGrossKnown),
        commission, ofSales(.zero, ifKnown: line.isTaxKnown),
      ]
    }

    /// The amounts that the journal posts; nil: unknown.
    package var payout: Millionths? { line.settled }
    package var commission: Millionths? { hasSales && line.isTaxKnown ? line.commission : nil }

    /// nil: no whole number of minor units, or no currency.
    package func money(_ amount: Millionths) -> Money? { Currency(currency).flatMap { amount.money(in: $0) } }
  }

  /// Replaces rows of these periods by this or an earlier as-of. Requires a transaction.
  static func replace(
    _ rows: [Period], of names: [String], asOf: Instant, on connection: borrowing BlockingConnection
  ) throws {
    try connection.execute(
      "DELETE FROM night_audit.tie_out_periods WHERE fiscal_period = ANY ($1::text[]) AND as_of <= $2",
      [.textArray(names), .timestamp(asOf.microseconds)])
    for row in rows {
      let figures = row.figures.map { PostgresValue.numeric($0.flatMap { PostgresNumeric($0) }) }
      try connection.execute(
        "INSERT INTO night_audit.tie_out_periods VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)",
        [.text(row.name), .text(row.currency.text)] + figures + [.timestamp(asOf.microseconds)])
    }
  }

  /// Periods that ended by `day`, at an as-of, oldest first, currencies in byte order.
  package static func periods(
    endedBy day: ReportDay, asOf: Instant, on connection: borrowing BlockingConnection
  ) throws(PostgresError) -> [Period] {
    let rows = try connection.execute(
      """
      SELECT fiscal_period, currency, sales_proceeds, open_at_end, settled_from_before, never_collected, settled,
        gross, tax
      FROM night_audit.tie_out_periods JOIN (
        SELECT fiscal_period, \(try believed(asOf)) AS as_of FROM night_audit.tie_out_periods
        GROUP BY fiscal_period) believed USING (fiscal_period, as_of)
      ORDER BY fiscal_period, currency
      """)
    var periods: [Period] = []
    for row in rows {
      guard let ended = FiscalCalendar.period(named: try row.text(0))?.last, ended <= day else { continue }
      var line = ProceedsSettlement.Line()
      func amount(_ column: Int) throws(PostgresError) -> Millionths {
        guard let numeric = try row.optionalNumeric(column) else { return .zero }
        return try Millionths(numeric)
      }
      line.salesProceeds = try amount(2)
      line.openAtEnd = try amount(3)
      line.settledFromBefore = try amount(4)
      line.neverCollected = try amount(5)
      line.settled = try amount(6)
      line.gross = try amount(7)
      (line.isGrossKnown, line.isTaxKnown) = (try !row.isNull(7), try !row.isNull(8))
      periods.append(
        Period(name: try row.text(0), currency: Identifier(try row.text(1)), line: line, hasSales: try !row.isNull(2)))
    }
    return periods
  }

  // MARK: - Tie-outs

  package struct Record: Hashable, Sendable {
    package var asOf: Instant
    package var days: ClosedRange<ReportDay>
    package var incompleteReasons: [String]
    package var notes: [String]

    package var isComplete: Bool { incompleteReasons.isEmpty }
  }

  static func insert(_ record: Record, on connection: borrowing BlockingConnection) throws(PostgresError) {
    try connection.execute(
      """
      INSERT INTO night_audit.tie_outs (as_of, first_day, last_day, complete, incomplete_reasons, notes)
      VALUES ($1, $2, $3, $4, $5::text[], $6::text[])
      """,
      [
        .timestamp(record.asOf.microseconds), .text(record.days.lowerBound.description),
        .text(record.days.upperBound.description), .bool(record.isComplete),
        .textArray(record.incompleteReasons), .textArray(record.notes),
      ])
  }

  package static func newest(
    asOf: Instant, on connection: borrowing BlockingConnection
  ) throws(PostgresError) -> Record? {
    let rows = try connection.execute(
      """
      SELECT as_of, first_day, last_day, incomplete_reasons, notes FROM night_audit.tie_outs
      WHERE as_of <= $1 ORDER BY as_of DESC, tie_out_id DESC LIMIT 1
      """, [.timestamp(asOf.microseconds)])
    for row in rows {
      guard let first = ReportDay(try row.text(1)), let last = ReportDay(try row.text(2)), first <= last else {
        continue
      }
      return Record(
        asOf: Instant(microseconds: try row.timestamp(0)), days: first...last,
        incompleteReasons: try row.textArray(3).compactMap(\.self), notes: try row.textArray(4).compactMap(\.self))
    }
    return nil
  }
}
