import Foundation
import TestSupport
import Testing

/// Searches every file of two nights, and each part of the workbook, for user IDs.
@Suite struct PseudonymTests {
  @Test func noFileOfAReportNamesAUser() async throws {
    let shop = try await Rehearsal.sampleShop(formats: "csv, xlsx")
    let key = shop.directory.file("pseudonyms")
    var nights: [[String: String]] = []
    for (secret, asOf, day) in [
      ("a key of the tests", Rehearsal.asOf, "2026-11-19"),
      ("a key of the tests", "2026-11-21T03:00:00Z", "2026-11-20"),
      ("another key of them", "2026-11-22T03:00:00Z", "2026-11-21"),
    ] {
      try shop.directory.write(secret, "pseudonyms")
      try await shop.nightAudit(
        "run", "--as-of", asOf, environment: ["NIGHT_AUDIT_REPORT_PSEUDONYMISE": key], exits: [0, 3])
      nights.append(try await Program.runScript("report_texts", "\(shop.reports)/\(day)").document())
    }
    // Long numeric IDs only, because others also occur as words.
    let users = try await shop.value(
      """
      SELECT string_agg(DISTINCT user_id::text, ' ') FROM (SELECT user_id FROM sales.orders
        UNION SELECT user_id FROM sales.receipts UNION SELECT user_id FROM sales.deliveries) u
      WHERE user_id::text ~ '^[0-9]{12,}$'
      """
    ).split(separator: " ").map(String.init)
    #expect(users.count > 100)
    for files in nights {
      #expect(files.count > 10 && files.keys.contains { $0.contains("worksheet") }, "\(files.keys.sorted())")
      for (name, text) in files {
        let words = Set(text.split { !$0.isNumber || !$0.isASCII }.map(String.init))
        #expect(words.isDisjoint(with: users), "\(name): \(words.intersection(users).prefix(3))")
      }
    }
    let reasons = rows(Data((nights[0]["findings.csv"] ?? "").utf8)).compactMap { $0["reason"] }
    #expect(reasons.contains { $0.hasPrefix("The user has goods of an order that is not paid: its proof") })
    #expect(reasons.contains { $0.contains(" ordered, user u-") })
    let names = nights.map { files in Set(rows(Data((files["findings.csv"] ?? "").utf8)).compactMap { $0["user_id"] }) }
    #expect(names[0].count > 20 && names[0].intersection(names[1]).count > names[0].count / 2)
    #expect(names[0].isDisjoint(with: names[2]))
  }
}
