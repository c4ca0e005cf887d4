import Foundation
import Testing

@Suite struct ReadersTests {
  @Test func theReaderCountDoesNotChangeTheReport() async throws {
    let shop = try await Rehearsal.sampleShop()
    let asked = try await shop.nightAudit("recheck", "--as-of", Rehearsal.asOf)
    #expect(asked.status == 3, "\(asked.errors)")
    try await shop.execute("ANALYZE")
    func report(_ readers: Int) async throws -> [String: Data] {
      let folder = shop.directory.file("readers-\(readers)")
      let result = try await shop.nightAudit(
        "reconcile", "--as-of", Rehearsal.asOf, "--since", "2026-09-20", "--until", "2026-11-20", "--out", folder,
        "--readers", "\(readers)")
      #expect(result.status == 3, "\(result.errors)")
      return try shop.files(folder).filter { $0.key != "run.json" }
    }
    let one = try await report(1)
    #expect(one["orders.csv"].map { rows($0).count } == 500)
    for readers in [2, 3, 5] {
      let read = try await report(readers)
      #expect(read.keys.sorted() == one.keys.sorted())
      for (name, content) in one { #expect(read[name] == content, "\(name) with \(readers) readers") }
    }
    // A server without connections for all readers.
    let database = try await shop.value("current_database()")
    try await shop.execute("ALTER DATABASE \(database) CONNECTION LIMIT 12")
    let folder = shop.directory.file("limited")
    let limited = try await shop.nightAudit(
      "reconcile", "--as-of", Rehearsal.asOf, "--since", "2026-09-20", "--until", "2026-11-20", "--out", folder,
      "--readers", "6")
    #expect(limited.status == 3 && limited.errors.contains("--readers 6 needs 18 connections"), "\(limited.errors)")
    #expect(try shop.files(folder)["orders.csv"] == one["orders.csv"])
    try await shop.execute("ALTER DATABASE \(database) CONNECTION LIMIT -1")
    let none = try await shop.nightAudit("reconcile", "--readers", "0")
    #expect(none.status == 64 && none.errors.contains("from 1 to 64"), "\(none.errors)")
  }
}
