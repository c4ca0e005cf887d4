import Postgres
import Testing

struct QuotingTests {
  @Test(
    "identifiers are quoted",
    arguments: [
      (["orders"], #""orders""#), (["night_audit", "Evidence"], #""night_audit"."Evidence""#), ([#"a"b"#], #""a""b""#),
      (["x; DROP TABLE y"], #""x; DROP TABLE y""#), (["\"\u{301}"], "\"\"\"\u{301}\""),
    ])
  func identifiers(_ parts: [String], _ sql: String) throws {
    let identifier = parts.count == 1 ? try PostgresIdentifier(parts[0]) : try PostgresIdentifier(parts[0], parts[1])
    #expect(Array(identifier.sql.utf8) == Array(sql.utf8))
  }

  @Test("an empty name and a name with NUL are rejected", arguments: ["", "a\0b"]) func refused(_ name: String) throws {
    #expect(try postgresError { _ = try PostgresIdentifier("sales", name) }.kind == .usage)
  }

  @Test(
    "text constants are quoted",
    arguments: [("", "''"), ("a", "'a'"), ("it's", "'it''s'"), (#"a\b"#, #" E'a\\b'"#), (#"\'"#, #" E'\\'''"#)])
  func literals(_ text: String, _ sql: String) throws { #expect(try PostgresLiteral.text(text) == sql) }

  @Test("a constant with NUL is rejected") func refusedConstants() throws {
    #expect(try postgresError { _ = try PostgresLiteral.text("a\0") }.kind == .usage)
    #expect(try postgresError { _ = try PostgresLiteral.timestamp(.max) }.kind == .usage)
    #expect(try postgresError { _ = try PostgresLiteral.timestamp(.min) }.kind == .usage)
  }
}
