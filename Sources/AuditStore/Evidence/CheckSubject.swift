import Postgres
import Reconciliation
import Streams

/// The subject of a question to Apple.
package struct CheckSubject: Hashable, Sendable {
  package enum Kind: String, Hashable, Sendable {
    case receipt
    /// A transaction ID that an order states without a receipt.
    case lookup
  }

  package var kind: Kind
  package var id: Identifier

  package init(kind: Kind, id: Identifier) { (self.kind, self.id) = (kind, id) }

  /// Reads the first two columns of a row.
  package init(of row: PostgresRow) throws(PostgresError) {
    self.init(kind: Kind(rawValue: try row.text(0)) ?? .receipt, id: try row.id(1))
  }
}

extension CheckSubject {
  /// In bytes. Longer IDs are not Apple's. An index could not hold them, so IDs with the same prefix share one check.
  private static let longestId = 64

  /// The look-up of a transaction ID that an order of an app states.
  package static func lookup(_ transactionId: String, of bundleId: String) -> CheckSubject {
    // Shortened by bytes, because a character may have any length.
    let id =
      transactionId.utf8.count <= longestId
      ? transactionId : String(decoding: transactionId.utf8.prefix(longestId), as: UTF8.self) + "…"
    return CheckSubject(kind: .lookup, id: Identifier("\(bundleId)/\(id)"))
  }

  /// The app and transaction ID of a look-up. Bundle IDs contain no slash.
  package var lookedUp: (bundleId: String, transactionId: String) {
    let parts = id.bytes.split(separator: UInt8(ascii: "/"), maxSplits: 1, omittingEmptySubsequences: false)
      .map { String(decoding: $0, as: UTF8.self) }
    return (parts[0], parts.count > 1 ? parts[1] : "")
  }
}

extension Dueness {
  /// Reads `due_from`, `due_until` and `due_rank`, which follow each other; nil if the check is never due.
  package init?(_ row: PostgresRow, from column: Int) throws(PostgresError) {
    guard let from = try row.optionalInstant(column) else { return nil }
    let rank = Rank(rawValue: Int16(clamping: try row.int32(column + 2))) ?? .open
    self.init(from: from, until: try row.optionalInstant(column + 1), rank: rank)
  }
}
