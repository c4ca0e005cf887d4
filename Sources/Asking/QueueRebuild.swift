import AuditStore
import Postgres
import Reconciliation
import Streams

/// Derives anew what the queue keeps for speed, and compares: when each proof is due, by the one rule of it, and whether it
/// has brought anything.
package enum QueueRebuild {
  /// What was found, and mended where that was asked for.
  package struct Outcome: Hashable, Sendable, Encodable {
    package var proofs = 0
    /// Proofs that are due at another time, or before others, than the rule says.
    package var differentDueness = 0
    /// Proofs that are said to have brought transactions and have not, or the other way round.
    package var differentBrought = 0
    /// Some of the proofs, at most twenty.
    package var examples: [String] = []

    package var agrees: Bool { differentDueness + differentBrought == 0 }
  }

  /// Compares, and mends if asked to.
  ///
  /// Dueness is reckoned by the policy of the newest run: what the configuration says now is adopted by the next one.
  package static func run(isMending: Bool, on connection: borrowing BlockingConnection) throws -> Outcome {
    var outcome = Outcome()
    let rows = try connection.execute("SELECT value FROM night_audit.asking_state WHERE key = 'times'")
    // Where no run has asked yet, none has reckoned.
    guard let row = rows.first, let policy = Dueness.Policy(try row.text(0)) else { return outcome }
    let linked = try broughtAnything(connection)
    var doubtful: [CheckSubject] = []
    try CheckTable(policy: policy).change(where: "TRUE", on: connection) { row in
      outcome.proofs += 1
      let isDifferent = row.due != Dueness(of: row.history, policy: policy)
      let isBrought = (row.broughtCount > 0) == linked.contains(row.subject)
      if isDifferent { outcome.differentDueness += 1 }
      if !isBrought {
        outcome.differentBrought += 1
        doubtful.append(row.subject)
      }
      if isDifferent || !isBrought, outcome.examples.count < 20 { outcome.examples.append(row.subject.id.text) }
      return isDifferent && isMending
    }
    if isMending { try count(doubtful, on: connection) }
    return outcome
  }

  /// Proofs of which a transaction is known to have come. As many as there are proofs: a rebuild is made once in a while.
  private static func broughtAnything(_ connection: borrowing BlockingConnection) throws -> Set<CheckSubject> {
    var found: Set<CheckSubject> = []
    var links = try connection.copyOut("SELECT DISTINCT subject_id, subject_kind FROM night_audit.receipt_transactions")
    while try links.advance() {
      found.insert(CheckSubject(kind: CheckSubject.Kind(rawValue: try links.text(1)) ?? .receipt, id: try links.id(0)))
    }
    return found
  }

  private static func count(_ subjects: [CheckSubject], on connection: borrowing BlockingConnection) throws {
    try connection.execute(
      """
      UPDATE night_audit.receipt_checks c SET brought_count = (
        SELECT count(*) FROM night_audit.receipt_transactions l
        WHERE l.subject_kind = c.subject_kind AND l.subject_id = c.subject_id)
      WHERE (c.subject_kind, c.subject_id) IN (SELECT * FROM unnest($1::text[], $2::text[]))
      """, [.textArray(subjects.map(\.kind.rawValue)), .textArray(subjects.map(\.id.text))])
  }
}

extension Dueness.Policy {
  /// As `night_audit.asking_state` holds it.
  init?(_ text: String) {
    let times = text.split(separator: " ").compactMap { Int64($0) }
    guard times.count == 3 else { return nil }
    self.init(
      staleAfter: Span(microseconds: times[0]), refundWindow: Span(microseconds: times[1]),
      lookback: Span(microseconds: times[2]))
  }
}
