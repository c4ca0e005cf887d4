import Reconciliation
import Reporting
import Testing

@testable import Auditing

struct ReportSupplementTests {
  private func finding(_ product: Identifier, _ week: String, _ reason: String) -> Finding {
    var finding = Finding(kind: .unreportedByShop, subject: .product(product, weekOf: week), reason: Reason(reason))
    finding.productId = product
    return finding
  }

  private func supplement(
    _ findings: [Finding], isUndecided: @escaping @Sendable (Finding) -> Bool
  ) -> ReportSupplement {
    let facts = TieOutFacts(
      incompleteReasons: [], firstDay: "", lastDay: "", appleUnits: .zero, ourUnits: .zero, explained: [],
      unexplained: .zero)
    return ReportSupplement(facts: facts, findings: findings, isUndecided: isUndecided) { _ in }
  }

  @Test func findingsOutsideTheComparedWeekStayOpen() {
    let open = [
      finding("gems60", "2026-11-02", "12 units"), finding("gems60", "2026-11-09", "12 units"),
      finding("hero", "2026-11-09", "2 units"),
    ]
    let tonight = [finding("gems60", "2026-11-09", "3 units"), finding("coins", "2026-11-09", "1 unit")]
    let ofOneWeek = supplement(tonight) { $0.subject.id.text.hasSuffix("2026-11-09") }
    let ofAll = supplement([]) { _ in true }
    let ofNone = supplement(tonight) { _ in false }
    #expect(ofOneWeek.findings(beside: open) == [open[1], open[2], tonight[1]])
    #expect(ofAll.findings(beside: open) == open && ofNone.findings(beside: open) == tonight)
  }
}
