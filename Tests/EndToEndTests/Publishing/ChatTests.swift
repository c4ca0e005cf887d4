import Foundation
import TestSupport
import Testing

/// The program that posts to a chat, run by `report.deliver`.
@Suite struct ChatTests {
  private static let script = Repository.root.appending(path: "cron/night-audit-chat").path

  private func posted(_ hook: Receiver) throws -> [[String: Any]] {
    try hook.posts().map { post in
      try #require(try JSONSerialization.jsonObject(with: Data(post.body.utf8)) as? [String: Any])
    }
  }

  @Test func onlyNightsWithChangesAreSentToChat() async throws {
    let shop = try await Rehearsal.emptyShop(formats: "csv, xlsx")
    let hook = try await Receiver.http()
    let file = try shop.directory.write("http://127.0.0.1:\(hook.port)/secret-path/200\n", "chat-url")
    try shop.configure(
      """
        deliver: [chat]
      deliver:
        chat:
          command: [\(Self.script), --url-file, \(file), --link, "https://reports.example.com/all/"]
          attempts: 1
      """)
    func night(_ day: Int) async throws {
      let result = try await shop.nightAudit(
        "run", "--as-of", "2026-11-\(day)T03:00:00Z", "--accept", exits: [0], says: "Sent to chat")
      #expect(!(result.output + result.errors).contains("secret-path"))
    }
    try await night(20)
    try await night(21)
    #expect(try posted(hook).isEmpty, "a night without changes posts nothing")
    try await shop.execute(
      """
      INSERT INTO sales.orders (order_id, user_id, product_id, quantity, amount, currency, status, created_at, updated_at)
        VALUES ('<!channel>*1*', 'u', 'gems', 1, 7.77, 'USD', 'verified', '2026-11-21T10:00:00Z', '2026-11-21T10:00:00Z');
      INSERT INTO sales.deliveries VALUES ('d', '<!channel>*1*', 'u', 'gems', 1, '2026-11-21T10:00:10Z', NULL);
      """)
    try await night(22)
    try await night(23)
    let told = try posted(hook)
    #expect(told.count == 1, "\(told)")
    let text = try #require(told.first?["text"] as? String)
    #expect(text.hasPrefix("*Night audit 2026-11-21: complete, 1 open finding*\n"), "\(text)")
    #expect(text.contains("• 1 new, 0 closed; critical: 1 new, 0 closed\n• Amount at risk: 7.77 USD\n"), "\(text)")
    #expect(text.contains("Delivered, not paid, order &lt;!channel&gt;\u{200B}*1\u{200B}*, 7.77 USD"), "\(text)")
    #expect(
      text.hasSuffix("\n<https://reports.example.com/all/2026-11-21/report.html|Open the report>"), "\(text)")

    for (format, arguments) in [("teams", []), ("json", []), ("json", ["--always"])] as [(String, [String])] {
      let folder = shop.reports + (arguments.isEmpty ? "/2026-11-21" : "/2026-11-20")
      let result = try await Program(path: Self.script).run(
        ["--url-file", file, "--format", format] + arguments + [folder])
      #expect(result.status == 0, "\(result.errors)")
    }
    let others = try posted(hook).dropFirst()
    #expect(others.count == 3)
    let card = try #require((others.first?["attachments"] as? [[String: Any]])?.first)
    #expect(card["contentType"] as? String == "application/vnd.microsoft.card.adaptive")
    #expect("\(card)".contains(#"order <!channel>\\*1\\*"#), "\(card)")
    #expect(others.last?["title"] as? String == "Night audit 2026-11-20: complete, 0 open findings")
    #expect((others.last?["summary"] as? [String: Any])?["complete"] as? Bool == true)
  }

  @Test func chatErrorsAreOneLineWithoutTheURL() async throws {
    let directory = try TemporaryDirectory()
    let hook = try await Receiver.http()
    let summary = """
      {"complete": false, "incomplete_reasons": ["x"], "period": {"since": "2026-11-19", "until": "2026-11-19"},
       "findings": {"closing": 0, "new": 0, "closed": 0, "at_stake": {}, "at_stake_unknown": 0},
       "changes": {"counts": {}, "first": []}}
      """
    try directory.write(summary, "summary.json")
    for (url, mode, says) in [
      ("http://127.0.0.1:\(hook.port)/secret/500", 0o600, "the webhook answered with status 500"),
      ("http://127.0.0.1:\(hook.port)/secret/302", 0o600, "the webhook answered with status 302"),
      ("http://127.0.0.1:1/secret", 0o600, "the webhook was not reached"),
      ("http://example.com/secret", 0o600, "has no https address"),
      ("https://[example.com/secret", 0o600, "has no https address"),
      ("http://127.0.0.1:\(hook.port)/secret/200\nhttps://example.com/secret", 0o600, "has more than one address"),
      ("http://127.0.0.1:port/secret", 0o600, "the webhook was not reached"),
      ("https://example.com/secret", 0o644, "can be read by others; chmod 600 it"),
    ] {
      let result = try await Program(path: Self.script).run([
        "--url-file", try directory.write(url, "chat-url", mode: mode), directory.url.path,
      ])
      #expect(result.status == 1 && result.errors.contains(says), "\(url): \(result.errors)")
      #expect(!result.errors.contains("/secret") && result.errors.split(separator: "\n").count == 1, "\(result.errors)")
    }
    #expect(try posted(hook).count == 2)
  }
}
