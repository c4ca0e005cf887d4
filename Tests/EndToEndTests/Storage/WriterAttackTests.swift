import Foundation
import Testing

/// Attacks by a member of `night_audit_writer`. Each is refused, or reported by `verify` until the next night.
@Suite struct WriterAttackTests {
  private func auditedShop() async throws -> Rehearsal {
    let shop = try await Rehearsal.sampleShop()
    #expect(try await shop.nightAudit("run", "--as-of", Rehearsal.asOf).status == 3)
    return shop
  }

  private func expectRefused(_ statements: [String], in shop: Rehearsal) async {
    for statement in statements {
      await #expect(throws: (any Error).self, "\(statement)") { try await shop.execute(statement, as: .writer) }
    }
  }

  /// `verify`, `rebuild` and `doctor` have no problem.
  private func expectSound(_ shop: Rehearsal) async throws {
    for command in ["verify", "rebuild", "doctor"] {
      let result = try await shop.nightAudit(command)
      #expect(result.status == 0, "\(command): \(result)")
    }
  }

  @Test func theEncodingAndQuotingOfASessionChangeNoDigest() async throws {
    let shop = try await auditedShop()
    try await shop.execute(
      """
      SET client_encoding = 'LATIN1'; SET quote_all_identifiers = on;
      INSERT INTO night_audit.answers (run_id, as_of, subject_kind, subject_id, channel, outcome, facts)
      SELECT run_id, as_of, 'receipt', chr(233), 'serverApi', 'unanswered', 0 FROM night_audit.runs;
      SELECT night_audit.cover_answers(run_id) FROM night_audit.runs
      """, as: .writer)
    #expect(
      try await shop.value(
        "SELECT count(*) FROM night_audit.trail WHERE content::jsonb ->> 'kind' = 'asked' AND content LIKE '%answers%'")
        != "0")
    let verified = try await shop.nightAudit("verify")
    #expect(verified.status == 0, "\(verified)")
  }
}
