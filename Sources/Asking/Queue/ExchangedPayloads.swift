import AuditStore
import Postgres
import Reconciliation
import Run
import Settings

/// Receipts of many customers show payloads that were checked as receipts of other customers. The mapping of the shop's
/// receipts is wrong. Answers about them would belong to other orders.
struct ExchangedPayloads: Error, CustomStringConvertible {
  var persons: Int
  var allPersons: Int
  var examples: [String]

  var description: String {
    """
    Receipts of \(persons) of \(allPersons) customers show payloads that were checked as receipts of other customers, so \
    Apple was not asked: check whether each row of the view or table receipts has the payload that was sent for it, and \
    run again; if the view was corrected, run once with --accept. For example \(examples.joined(separator: "; ")).
    """
  }
}

extension QueueIntake {
  /// A verified receipt whose payload was replaced. `userId` is its user when it was verified.
  struct ReplacedReceipt: Sendable {
    var id: Identifier
    var userId: Identifier
    var payload: String
  }

  /// Throws ``ExchangedPayloads`` if more than `audit.holdShare` of `users`, and at least 20, have receipts with payloads
  /// of others. A new payload of the same customer, or of an alias, is no fault.
  func requireOwnPayloads(_ replaced: [ReplacedReceipt], among users: Set<Identifier>) async throws {
    func isFault(_ persons: Int, of all: Int) -> Bool {
      persons >= FirstAnswers.fewest && settings.holdShare != .whole
        && settings.holdShare.isExceeded(by: persons, of: all)
    }
    guard isFault(Set(replaced.map(\.userId)).count, of: users.count) else { return }
    let rows = try await store.execute(
      """
      SELECT now.id, now.user_id, c.user_id, min(c.subject_id)
      FROM unnest($1::text[], $2::text[], $3::text[]) AS now (id, user_id, payload)
      JOIN night_audit.receipt_checks c ON split_part(c.fingerprint, ' ', 2) = now.payload
      WHERE c.subject_kind = 'receipt' AND c.user_id IS NOT NULL
      GROUP BY 1, 2, 3
      """,
      [
        .textArray(replaced.map(\.id.text)), .textArray(replaced.map(\.userId.text)),
        .textArray(replaced.map(\.payload)),
      ])
    let people = try await source.people()
    var own: Set<Identifier> = []
    var others: [Identifier: (person: Identifier, source: Identifier)] = [:]
    for row in rows {
      let id = Identifier(try row.text(0))
      let person = people.person(Identifier(try row.text(1)))
      if people.person(Identifier(try row.text(2))) == person {
        own.insert(id)
      } else {
        let source = Identifier(try row.text(3))
        others[id] = (person, min(source, others[id]?.source ?? source))
      }
    }
    let exchanged = others.filter { !own.contains($0.key) }
    let persons = Set(exchanged.values.map(\.person)).count
    let all = Set(users.map { people.person($0) }).count
    guard isFault(persons, of: all) else { return }
    throw ExchangedPayloads(
      persons: persons, allPersons: all,
      examples: exchanged.sorted { $0.key < $1.key }.prefix(3).map {
        "receipt \($0.key) shows the payload of receipt \($0.value.source)"
      })
  }
}
