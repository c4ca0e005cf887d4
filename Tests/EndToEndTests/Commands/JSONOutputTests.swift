import Foundation
import TestSupport
import Testing

/// Validates the output of `--json`, errors and `actions.json` against the published schemas.
@Suite struct JSONOutputTests {
  private static let schemas =
    Repository.root.appending(path: "Sources/night-audit/Documentation.docc/Schemas").path

  private func judge(_ documents: [(String, String)], in directory: TemporaryDirectory) async throws -> String {
    let lines = try documents.map { String(decoding: try JSONEncoder().encode([$0.0, $0.1]), as: UTF8.self) }
    let file = directory.file("documents")
    try (lines.joined(separator: "\n") + "\n").write(toFile: file, atomically: true, encoding: .utf8)
    let judged = try await Program(path: TestTools.python).run([Program.script("judge_documents"), Self.schemas, file])
    return judged.output + (judged.status == 0 ? "" : judged.errors)
  }

  @Test(.enabled(if: TestTools.areInstalled)) func everyCommandsOutputMatchesItsSchema() async throws {
    let shop = try await Rehearsal.sampleShop(formats: "csv, xlsx")
    var documents: [(String, String)] = []
    func note(_ schema: String, _ statuses: [Int32], _ arguments: String...) async throws {
      let role = arguments[0] == "init" ? DatabaseRole.superuser : .writer
      let result = try await shop.nightAudit(
        more: arguments + ["--json"], environment: role.environment(shop.conninfo))
      #expect(statuses.contains(result.status), "\(arguments): \(result.status) \(result.errors)")
      documents.append((schema, result.output))
    }
    try await note("init", [0], "init", "--with-sales-schema")
    try await note("status", [0], "status")
    try await note("recheck", [0, 3], "recheck", "--as-of", "2026-11-19T03:00:00Z")
    try await note("run", [0, 3], "run", "--as-of", Rehearsal.asOf)
    try await note("run", [0, 3, 4], "run", "--as-of", "2026-11-21T03:00:00Z")
    try await note("run", [0, 3], "reconcile", "--as-of", "2026-11-21T03:00:00Z")
    for order in ["1", "2"] {
      let id = try await shop.value("SELECT order_id FROM sales.orders ORDER BY order_id OFFSET \(order) LIMIT 1")
      try await note("explain", [0], "explain", id, "--as-of", "2026-11-21T03:00:00Z")
    }
    let finding = try await shop.value("SELECT finding_id FROM night_audit.findings WHERE closed_at IS NULL LIMIT 1")
    try await note("findings-list", [0], "findings", "list", "--state", "any")
    try await note("findings-change", [0], "findings", "acknowledge", finding, "--by", "ops")
    try await note("findings-change", [0], "findings", "assign", finding, "--to", "anna", "--dry-run")
    try await note("findings-change", [0], "findings", "remark", finding, "--text", "seen")
    try await note("findings-change", [0], "findings", "close", "--all", "--kind", "paid_not_delivered", "--by", "ops")
    try await note("findings-change", [0], "findings", "undo")
    let workbook = shop.reports + "/2026-11-19/night-audit-2026-11-19.xlsx"
    let actions = try Data(contentsOf: URL(filePath: shop.reports + "/2026-11-19/actions.json"))
    documents.append(("actions", String(decoding: actions, as: UTF8.self)))
    try await note("findings-import", [0], "findings", "import", workbook, "--by", "finance")
    try await note("runs-list", [0], "runs", "list")
    try await note("runs-diff", [0], "runs", "diff", "2026-11-19", "latest")
    try await note("doctor", [0], "doctor")
    try await note("config-show", [0], "config", "show")
    try await note("status", [0], "status")
    try await note("verify", [0], "verify", shop.reports + "/2026-11-19")
    try await note("verify", [0], "verify", "--run", "latest")
    try await note("rebuild", [0], "rebuild")
    try await note("runs-forget", [0], "runs", "forget", "latest")
    try await note("error", [1], "explain", "no-such-order")
    try await note("error", [64], "run", "--as-of", "yesterday")
    try await note("error", [64], "run", "--no-such-option")
    try await note("error", [64], "run", "--app", "other")
    try await note("error", [64], "nonsense")
    try await note("error", [64], "run", "--as-of", "2126-01-01T03:00:00Z")
    try await note("error", [78], "tie-out")
    let gone = try await shop.nightAudit(
      "status", "--json", environment: ["NIGHT_AUDIT_DATABASE_URL": "host=/nonexistent"], exits: [69])
    documents.append(("error", gone.output))
    let unread = try await Program.nightAudit.run(["run", "--json", "--config", "/nonexistent.yaml"])
    #expect(unread.status == 78)
    documents.append(("error", unread.output))
    let difference = try await judge(documents, in: shop.directory)
    #expect(difference == "")
  }

  @Test(.enabled(if: TestTools.areInstalled)) func theTieOutOutputMatchesItsSchema() async throws {
    let shop = try await TieOutNightTests.shop()
    var documents: [(String, String)] = []
    for arguments in [[], ["--year", "2026"], ["--offline"]] {
      let result = try await shop.nightAudit(
        "tie-out", more: ["--as-of", Rehearsal.asOf, "--json"] + arguments, exits: [0, 3])
      documents.append(("tie-out", result.output))
    }
    let night = try await shop.nightAudit("run", "--as-of", Rehearsal.asOf, "--json", exits: [0, 2, 3])
    documents.append(("run", night.output))
    let difference = try await judge(documents, in: shop.directory)
    #expect(difference == "")
  }
}
