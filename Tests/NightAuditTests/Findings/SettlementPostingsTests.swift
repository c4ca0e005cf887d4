import Auditing
import Reconciliation
import Testing

@testable import NightAudit
@testable import TieOut

/// Apple's amounts by fiscal period, as the journal of a night receives them.
struct SettlementPostingsTests {
  /// The period 2026-02 from 2025-11-02 to 2025-11-29, which Apple pays on Thursday 2026-01-01.
  private func postings(
    hasSales: Bool = true, currency: Identifier = "USD", _ change: (inout ProceedsSettlement.Line) -> Void = { _ in }
  ) throws -> [String] {
    var line = ProceedsSettlement.Line()
    line.gross = try #require(Millionths("10"))
    line.salesProceeds = try #require(Millionths("7"))
    line.settled = try #require(Millionths("6.5"))
    change(&line)
    var report = TieOutReport(problem: "")
    report.periods = [TieOutTable.Period(name: "2026-02", currency: currency, line: line, hasSales: hasSales)]
    return report.supplement(databaseURL: "").postings.map { event, posting in
      "\(event.kind.rawValue) of \(event.subject): \(posting.amount.text) on \(posting.day)"
    }
  }

  @Test("Commission is posted for the last day of the period, the payout for Apple's payment day")
  func amountsAndDays() throws {
    #expect(
      try postings() == [
        "commission of 2026-02 USD: 3.00 USD on 2025-11-29", "payout of 2026-02 USD: 6.50 USD on 2026-01-01",
      ])
  }

  @Test("An amount that Apple's reports do not state is not posted")
  func unknownAmounts() throws {
    let payout = "payout of 2026-02 USD: 6.50 USD on 2026-01-01"
    #expect(try postings(hasSales: false) == [payout] && postings { $0.isTaxKnown = false } == [payout])
    #expect(try postings { $0.gross = Millionths(count: 10_000_001) } == [payout])
    #expect(try postings(currency: "XYZ").isEmpty)
  }
}
