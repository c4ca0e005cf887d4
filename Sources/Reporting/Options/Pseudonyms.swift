import Crypto
import Foundation
import Reconciliation

/// Pseudonyms of user IDs: a keyed hash, stable over nights, that cannot be guessed without the key.
package struct Pseudonyms: Sendable {
  private let key: SymmetricKey

  /// - Parameter key: a secret of the shop's; nil below 16 bytes, which could be guessed.
  package init?(key: [UInt8]) {
    guard key.count >= Pseudonyms.shortestKey else { return nil }
    self.key = SymmetricKey(data: key)
  }

  package static let shortestKey = 16

  /// `u-` and the first 32 hexadecimal digits of the ID's HMAC-SHA-256.
  package func pseudonym(of id: Identifier) -> String {
    let code = HMAC<SHA256>.authenticationCode(for: id.bytes, using: key)
    return "u-" + hexadecimal(Array(code.prefix(16)))
  }
}
