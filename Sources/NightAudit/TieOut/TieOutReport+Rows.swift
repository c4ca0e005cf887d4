import Auditing
import Postgres
import Reconciliation
import Reporting
import TieOut

extension TieOutReport {
  /// Rows are read while they are written, so that memory does not grow with them.
  func supplement(databaseURL: String) -> ReportSupplement {
    let (record, periods, undecided) = (record, periods, undecidedWeeks)
    var supplement = ReportSupplement(facts: facts, findings: findings) { finding in
      guard let undecided, let product = finding.productId else { return true }
      return undecided.contains { Subject.product(product, weekOf: $0.description) == finding.subject }
    } write: { report in
      if let record {
        let connection = try BlockingConnection.connect(databaseURL, applicationName: "night-audit tie-out")
        try TieOutTable.forEach(record.days, asOf: record.asOf, on: connection) {
          try report.write(tieOut: TieOutLine($0))
        }
        // The sheet lists units before amounts; the file is sorted by key.
        for level in report.hasBook ? [TieOutLevel.units, .amount] : [] {
          try TieOutTable.forEach(record.days, asOf: record.asOf, on: connection) { row in
            if row.level == level { try report.writeToSheet(tieOut: TieOutLine(row)) }
          }
        }
      }
      for period in periods { try report.write(settlement: SettlementLine(period)) }
    }
    supplement.postings = periods.flatMap(\.postings)
    return supplement
  }
}

extension TieOutTable.Period {
  /// Apple's known amounts for the journal. A note of the tie-out lists those that are no whole number of minor units.
  fileprivate var postings: [(JournalEvent, JournalPosting)] {
    guard let period = FiscalCalendar.period(named: name) else { return [] }
    let subject = Identifier("\(name) \(currency)")
    func posting(
      _ kind: JournalEvent.Kind, _ amount: Millionths?, _ day: ReportDay
    ) -> (JournalEvent, JournalPosting)? {
      guard let amount, let posted = money(amount) else { return nil }
      return (JournalEvent(kind, subject), JournalPosting(amount: posted, day: day.description))
    }
    return [
      posting(.commission, commission, period.last), posting(.payout, payout, period.paymentDay),
    ].compactMap(\.self)
  }
}

extension TieOutLine {
  fileprivate init(_ row: TieOutRow) {
    self.init(
      level: row.level.rawValue, app: row.app, productId: row.productId, day: row.day.description,
      country: row.country.text, currency: row.currency.text, kind: row.kind.rawValue, figures: row.figures)
  }
}

extension SettlementLine {
  init(_ period: TieOutTable.Period) {
    self.init(period: period.name, currency: period.currency.text, figures: period.figures)
  }
}
