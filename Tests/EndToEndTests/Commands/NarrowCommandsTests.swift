import TestSupport
import Testing

@Suite struct NarrowCommandsTests {
  /// The number of rows that sequential scans have read, by table.
  private static let scanned = """
    SELECT string_agg(schemaname || '.' || relname || ' ' || seq_tup_read, ', ' ORDER BY schemaname, relname)
    FROM pg_stat_user_tables WHERE schemaname = 'sales' OR schemaname = 'night_audit'
      AND relname ~ '^(transactions|receipt_checks|receipt_transactions|evidence.*|answers.*|claims|order_nights)$'
    """
  private static let otherSessions = """
    SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
      AND application_name LIKE 'night-audit%' AND application_name NOT LIKE '%tests%'
    """

  /// A setting makes the server avoid sequential scans, so it uses one only without a usable index. In a large shop it
  /// avoids them by itself.
  @Test func commandsAboutOneOrderOrUserReadNoTableWhole() async throws {
    let shop = try await Rehearsal.auditedShop()
    let sold = """
      FROM sales.orders WHERE status = 'verified' AND transaction_id IS NOT NULL AND app_account_token IS NOT NULL
        AND created_at < '2026-11-15' ORDER BY order_id LIMIT 1
      """
    let order = try await shop.value("SELECT order_id \(sold)")
    let user = try await shop.value("SELECT user_id \(sold)")
    let asOf = ["--as-of", Rehearsal.asOf]
    for command in [
      ["explain", order] + asOf, ["reconcile", "--order", order] + asOf, ["reconcile", "--user", user] + asOf,
      ["recheck", "--order", order] + asOf,
    ] {
      let before = try await shop.value(Self.scanned)
      try await shop.nightAudit(
        more: command, environment: ["PGOPTIONS": "-c enable_seqscan=off"],
        exits: [0, 3])
      // A session reports its counts when it ends.
      while try await shop.value(Self.otherSessions) != "0" {}
      #expect(try await shop.value(Self.scanned) == before, "\(command)")
    }
  }
}
