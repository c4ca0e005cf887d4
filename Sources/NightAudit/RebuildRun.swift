import Asking
import AuditStore
import Postgres
import Reconciliation
import Run
import SalesStore
import Settings

/// `rebuild`: compares the derived tables with the evidence and the shop's dates, and repairs them.
package enum RebuildRun {
  private static let application = "night-audit rebuild"

  package struct Outcome: Sendable, Encodable {
    var derived: Rebuild.Outcome
    var queue: QueueRebuild.Outcome

    package var agrees: Bool { derived.agrees && queue.agrees }
    package var isMended: Bool { derived.isMended }
    /// False if a part is left that only the next night or re-check restores.
    package var isMendedWhole: Bool { isMended && !derived.isNightNeeded }

    private enum Key: CodingKey { case queue }

    package func encode(to encoder: any Encoder) throws {
      try derived.encode(to: encoder)
      var container = encoder.container(keyedBy: Key.self)
      try container.encode(queue, forKey: .queue)
    }
  }

  /// Compares, and repairs if `isRepairing`. Repairing needs the run lock.
  package static func rebuild(_ settings: Settings, isRepairing: Bool) async throws -> Outcome {
    try await settings.withStore(application) { session in
      if isRepairing { _ = try await RunLock.acquire(session) }
      let shopDates = try await shopDates(settings, session)
      return try await session.withConnection { connection in
        var derived = try Rebuild.run(isRepairing: isRepairing, on: connection)
        let queue = try QueueRebuild.run(isRepairing: isRepairing, shopDates: shopDates, on: connection)
        derived.isMended = isRepairing && !(derived.agrees && queue.agrees)
        return Outcome(derived: derived, queue: queue)
      }
    }
  }

  private static func shopDates(
    _ settings: Settings, _ store: PostgresSession
  ) async throws -> [CheckSubject: Instant] {
    let sales = OpenSession {
      try await PostgresSession.connect(
        settings.salesURL ?? settings.databaseURL, applicationName: application, profile: .salesReader)
    }
    return try await finally({ await sales.close() }) {
      try await sales.withConnection { try SalesExamination(settings).require($0) }
      return try await QueueRebuild.shopDates(ofEarlierChecks: settings, store: store, sales: sales)
    }
  }
}

extension RebuildRun.Outcome {
  package var text: String {
    let warning = derived.uncounted.map { "\nReported: \($0)." } ?? ""
    if agrees {
      return """
        All \(derived.transactions) transactions, and their links to proofs, agree with the evidence. All \(queue.proofs) \
        proofs have their last stored answer, and the due date that the rule gives.\(warning)
        """
    }
    var lines: [String] = []
    func add(_ count: Int64, _ what: String) { if count > 0 { lines.append("\(count) \(what)") } }
    add(derived.missingTransactions, "transactions are missing")
    add(derived.surplusTransactions, "transactions have no evidence")
    add(derived.differentTransactions, "transactions differ from their evidence")
    add(derived.missingLinks, "links from a proof to a transaction are missing")
    add(derived.surplusLinks, "links from a proof to a transaction have no evidence")
    add(Int64(queue.missingProofs), "proofs that Apple was asked about are missing from the queue")
    add(Int64(queue.differentOutcomes), "proofs have another answer than the last stored one")
    add(Int64(queue.differentDueness), "proofs have another due date than the rule and the shop's date give")
    add(Int64(queue.differentBrought), "proofs have a wrong mark of whether they contain transactions")
    let examples = derived.examples + queue.examples
    if !examples.isEmpty { lines.append("for example \(examples.joined(separator: ", "))") }
    lines += derived.steering
    lines.append(
      !isMended
        ? "To mend it: night-audit rebuild --write"
        : derived.isNightNeeded
          ? "All differences are mended, except for what only a night or a re-check restores."
          : "All differences are mended.")
    return lines.joined(separator: "\n") + warning
  }
}
