import Foundation
import TestSupport

/// Programs of others from PyPI that our own are compared with: Tests/requirements.txt. Without a network they are not there,
/// and their tests are left out.
enum RealParts {
  private static let repository = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent().deletingLastPathComponent()
  private static let python = repository.appending(path: ".build/test-tools/bin/python3").path

  /// Whether Apple's server library and the public verifier are there.
  static let areInstalled =
    (try? Command.run([python, "-c", "import appstoreserverlibrary, apple_purchase_receipt_verifier"])) != nil

  /// Runs one of the scripts beside this file.
  ///
  /// - Returns: what it printed, as JSON.
  static func run(_ script: String, _ input: Any) throws -> [String: Any] {
    let file = URL(filePath: #filePath).deletingLastPathComponent().appending(path: script).path
    let input = String(decoding: try JSONSerialization.data(withJSONObject: input), as: UTF8.self)
    let output = try Command.run([python, file], input: input)
    return try JSONSerialization.jsonObject(with: output) as? [String: Any] ?? [:]
  }

  /// JSON in one spelling, to be compared.
  static func text(_ value: Any?) throws -> String {
    guard let value else { return "nothing" }
    let data = try JSONSerialization.data(
      withJSONObject: value, options: [.sortedKeys, .fragmentsAllowed, .prettyPrinted])
    return String(decoding: data, as: UTF8.self)
  }
}
