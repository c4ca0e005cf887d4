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
