import Reconciliation
import Run

/// What Apple is asked about.
package struct CheckSubject: Hashable, Sendable {
  package enum Kind: String, Hashable, Sendable {
    /// A receipt of the shop, by its receipt id.
    case receipt
    /// A transaction id that an order names without a receipt.
    case lookup
  }

  package var kind: Kind
  package var id: Identifier

  package init(kind: Kind, id: Identifier) {
    self.kind = kind
    self.id = id
  }
}

// How the id of a look-up is spelled. A bundle id has no slash.
extension CheckSubject {
  /// In bytes. Longer ids are none of Apple's. They share a question with those that begin alike, and get the same answer;
  /// an index could not hold them.
  private static let longestId = 64

  /// The question about a transaction id that an order of an app names.
  package static func lookup(_ transactionId: String, of bundleId: String) -> CheckSubject {
    // A character may be of any length.
    let id =
      transactionId.utf8.count <= longestId
      ? transactionId : String(decoding: transactionId.utf8.prefix(longestId), as: UTF8.self) + "…"
    return CheckSubject(kind: .lookup, id: Identifier("\(bundleId)/\(id)"))
  }

  /// The app and the id that a look-up is about.
  package var lookedUp: (bundleId: String, transactionId: String) {
    let parts = id.bytes.split(separator: UInt8(ascii: "/"), maxSplits: 1, omittingEmptySubsequences: false)
      .map { String(decoding: $0, as: UTF8.self) }
    return (parts[0], parts.count > 1 ? parts[1] : "")
  }
}
