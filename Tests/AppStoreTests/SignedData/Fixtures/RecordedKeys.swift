import CryptoExtras
import Foundation

@testable import AppStore

/// RSA test keys, recorded so that a seed gives the same bytes in every run.
enum RecordedKeys {
  /// Two keys of 2,048 bits, and one of 3,072 bits with the public exponent 3.
  static let rsa = Result {
    let file = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "rsa-keys.txt")
    return try String(contentsOf: file, encoding: .utf8).split(separator: "\n\n").map {
      try _RSA.Signing.PrivateKey(derRepresentation: Data(Base64Text.decodeReceipt($0.utf8) ?? []))
    }
  }
}
