import AuditStore
import Foundation
import Postgres
import Run

/// `rebuild`: whether what is kept for speed is what follows from the evidence.
package struct RebuildRun: Sendable {
  private let settings: Settings

  package init(settings: Settings) { self.settings = settings }

  /// Compares, and mends if asked to. While a run holds the lock nothing is mended.
  package func rebuild(isMending: Bool) async throws -> Rebuild.Outcome {
    let session = try await PostgresSession.connect(settings.databaseURL, applicationName: "night-audit rebuild")
    try await session.withConnection { try Migrator.requireCurrent($0) }
    if isMending { _ = try await RunLock.acquire(session) }
    let outcome = try await session.withConnection { try Rebuild.run(isMending: isMending, on: $0) }
    await session.close()
    return outcome
  }
}

extension Rebuild.Outcome {
  /// What was found, for people.
  package var text: String {
    if agrees { return "All \(transactions) transactions, and what brought them, are what follows from the evidence." }
    var lines: [String] = []
    func add(_ count: Int64, _ what: String) { if count > 0 { lines.append("\(count) \(what)") } }
    add(missingTransactions, "transactions are missing")
    add(surplusTransactions, "transactions have no evidence")
    add(differentTransactions, "transactions are not what follows from their evidence")
    add(missingLinks, "times it is missing which proof brought a transaction")
    add(surplusLinks, "times a proof is said to have brought what it did not")
    if !examples.isEmpty { lines.append("for example \(examples.joined(separator: ", "))") }
    lines.append(isMended ? "All of it was mended." : "To mend it: night-audit rebuild --write")
    return lines.joined(separator: "\n")
  }

  /// The same for machines.
  package var json: String {
    get throws {
      let encoder = JSONEncoder()
      encoder.keyEncodingStrategy = .convertToSnakeCase
      encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
      return String(decoding: try encoder.encode(self), as: UTF8.self)
    }
  }
}
