import Foundation
import Reconciliation
import Testing

@testable import Reporting

@Suite("summary.json")
struct SummaryDocumentTests {
  private func document(_ report: SampleReport) throws -> [String: Any] {
    let text = try report.file("summary.json")
    return try #require(try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any])
  }

  @Test("Has every key, every disposition, and amounts as text with the currency's digits")
  func everything() throws {
    var report = try SampleReport()
    report.add(try OrderStory(amount: money(199, "USD")).judgement("o1"))
    report.add(try OrderStory(amount: money(300, "JPY"), isDelivered: false).judgement("o2"))
    report.add(try OrderStory(userId: "tester", amount: money(1_250, "KWD"), environment: .sandbox).judgement("o3"))
    report.summary.isComplete = false
    report.summary.incompleteReasons = ["3 receipts were not answered."]
    report.summary.findings.opening = 4
    report.summary.findings.closed = 4
    let document = try document(report)
    #expect(
      Set(document.keys) == [
        "complete", "incomplete_reasons", "as_of", "period", "configuration", "orders", "dispositions", "findings",
        "control",
      ])
    #expect(document["complete"] as? Bool == false)
    #expect(document["incomplete_reasons"] as? [String] == ["3 receipts were not answered."])
    #expect(document["as_of"] as? String == "2026-11-20T00:00:00Z")
    #expect(
      document["period"] as? [String: String]
        == ["since": "2026-11-19", "until": "2026-11-19", "time_zone": "Europe/Berlin"])
    #expect(document["configuration"] as? String == "c0ffee")
    #expect(document["orders"] as? [String: Int] == ["read": 3])

    let dispositions = try #require(document["dispositions"] as? [String: [String: Any]])
    #expect(Set(dispositions.keys) == Set(Disposition.allCases.map(\.rawValue)))
    #expect(dispositions["settled"]?["orders"] as? Int == 1)
    #expect(dispositions["settled"]?["amount"] as? [String: String] == ["USD": "1.99"])
    #expect(dispositions["paid_not_delivered"]?["amount"] as? [String: String] == ["JPY": "300"])
    #expect(dispositions["sandbox"]?["amount"] as? [String: String] == ["KWD": "1.250"])
    #expect(dispositions["void"]?["orders"] as? Int == 0)
    #expect((dispositions["void"]?["amount"] as? [String: String])?.isEmpty == true)

    let findings = try #require(document["findings"] as? [String: Any])
    #expect(findings["open"] as? [String: Int] == ["paid_not_delivered": 1])
    #expect(findings["opening"] as? Int == 4)
    #expect(findings["new"] as? Int == 1)
    #expect(findings["closed"] as? Int == 4)
    #expect(findings["closing"] as? Int == 1)
    #expect(findings["at_stake"] as? [String: String] == ["JPY": "300"])

    let control = try #require(document["control"] as? [[String: String]])
    #expect(control.first == ["name": "orders read = sum over dispositions", "left": "3", "right": "3"])
    #expect(control.last == ["name": "findings: opening + new - closed = closing", "left": "1", "right": "1"])
    #expect(control.contains(["name": "ordered USD = sum over users", "left": "1.99", "right": "1.99"]))
    #expect(control.count == 2 + 3 * 2)
  }

  @Test("Keys are sorted and the file ends with a line end")
  func order() throws {
    let text = try SampleReport().file("summary.json")
    let keys = text.split(separator: "\n").filter { $0.hasPrefix("  \"") }.map { String($0.prefix { $0 != ":" }) }
    #expect(keys.count == 9)
    #expect(keys == keys.sorted())
    #expect(text.hasSuffix("}\n"))
  }

  @Test(
    "Ages fall into buckets of whole days",
    arguments: [(0, 0), (23, 0), (24, 1), (71, 1), (72, 2), (167, 2), (168, 3), (1_000, 3), (-5, 0)])
  func ageing(_ hours: Int64, _ bucket: Int) {
    var ageing = Ageing()
    ageing.count(.hours(hours))
    let buckets = [ageing.underOneDay, ageing.oneToThreeDays, ageing.threeToSevenDays, ageing.overSevenDays]
    #expect(buckets.firstIndex(of: 1) == bucket)
    #expect(buckets.reduce(0, +) == 1)
  }
}
