import Foundation
import Testing

@Suite struct RebuildCommandTests {
  @Test func rebuildAgreesAfterANight() async throws {
    let shop = try await Rehearsal.auditedShop()
    try await shop.nightAudit("rebuild", exits: [0], says: "the due date that the rule gives")
    for command in ["verify", "rebuild"] {
      let quiet = try await shop.nightAudit(command, "--quiet", exits: [0])
      #expect(quiet.output == "", "\(command): \(quiet)")
    }
    let dueness =
      "SELECT encode(sha256(convert_to(string_agg(c::text, ',' ORDER BY subject_id), 'UTF8')), 'hex') FROM night_audit.receipt_checks c"
    let before = try await shop.value(dueness)

    try await shop.execute(
      """
      UPDATE night_audit.receipt_checks SET due_from = due_from + interval '1 day' WHERE subject_id = (
        SELECT min(subject_id) FROM night_audit.receipt_checks WHERE due_from IS NOT NULL);
      UPDATE night_audit.receipt_checks SET due_rank = due_rank + 1 WHERE subject_id = (
        SELECT max(subject_id) FROM night_audit.receipt_checks WHERE due_from IS NOT NULL);
      UPDATE night_audit.receipt_checks SET brought_count = 0 WHERE subject_id = (
        SELECT min(subject_id) FROM night_audit.receipt_checks WHERE brought_count > 0);
      UPDATE night_audit.receipt_checks SET outcome = 'rejected', reason = 'signature_invalid' WHERE subject_id = (
        SELECT subject_id FROM night_audit.receipt_checks WHERE outcome = 'verified' ORDER BY 1 OFFSET 9 LIMIT 1);
      UPDATE night_audit.receipt_checks SET outcome = 'verified', reason = NULL WHERE subject_id = (
        SELECT min(subject_id) FROM night_audit.receipt_checks WHERE outcome = 'rejected' AND reason = 'malformed')
      """)
    let found = try await shop.nightAudit("rebuild", "--json", exits: [70])
    let document = try found.json()
    let queue = try #require(document["queue"] as? [String: Any])
    #expect(queue["different_outcomes"] as? Int == 2, "\(queue)")
    #expect(queue["different_dueness"] as? Int == 2 && queue["different_brought"] as? Int == 1, "\(queue)")
    try await shop.nightAudit("rebuild", "--write", exits: [0])
    try await shop.nightAudit("rebuild", exits: [0])
    #expect(try await shop.value(dueness) == before)
  }
}
