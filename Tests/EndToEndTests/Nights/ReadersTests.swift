import Foundation
import TestSupport
import Testing

@Suite struct ReadersTests {
  /// `PartsTests` compares the workbooks of more readers, too.
  @Test func theReaderCountDoesNotChangeTheReport() async throws {
    let shop = try await Rehearsal.auditedShop()
    try await shop.execute("ANALYZE")
    func report(_ readers: Int, says text: String = "") async throws -> [String: Data] {
      let folder = shop.directory.file("readers-\(readers)")
      let night = try await shop.nightAudit(
        "reconcile", "--as-of", Rehearsal.asOf, "--since", "2026-09-20", "--until", "2026-11-20", "--out", folder,
        "--readers", "\(readers)", exits: [3])
      #expect(text.isEmpty || night.errors.contains(text), "\(night.errors)")
      return try shop.report(folder)
    }
    let one = try await report(1)
    #expect(one["orders.csv"].map { rows($0).count } == 500)
    let five = try await report(5)
    #expect(five.keys.sorted() == one.keys.sorted())
    for (name, content) in one { #expect(five[name] == content, "\(name) with five readers") }
    // A server without connections for all readers.
    let database = try await shop.value("current_database()")
    try await shop.execute("ALTER DATABASE \(database) CONNECTION LIMIT 12")
    #expect(try await report(6, says: "--readers 6 needs 18 connections")["orders.csv"] == one["orders.csv"])
    try await shop.execute("ALTER DATABASE \(database) CONNECTION LIMIT -1")
    try await shop.nightAudit("reconcile", "--readers", "0", exits: [64], says: "from 1 to 64")
  }
}
