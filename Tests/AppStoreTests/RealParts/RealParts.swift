import Foundation
import TestSupport

/// Third-party programs from PyPI for comparison (Tests/requirements.txt). Without them their tests are skipped.
enum RealParts {
  private static let python = Repository.tool("python3")

  static let areInstalled =
    (try? Command.run([python, "-c", "import appstoreserverlibrary, apple_purchase_receipt_verifier"])) != nil

  static func run(_ script: String, _ input: Any) throws -> [String: Any] {
    let file = URL(filePath: #filePath).deletingLastPathComponent().appending(path: script).path
    let input = String(decoding: try JSONSerialization.data(withJSONObject: input), as: UTF8.self)
    let output = try Command.run([python, file], input: input)
    return try JSONSerialization.jsonObject(with: output) as? [String: Any] ?? [:]
  }

  static func text(_ value: Any?) throws -> String {
    guard let value else { return "nothing" }
    let data = try JSONSerialization.data(
      withJSONObject: value, options: [.sortedKeys, .fragmentsAllowed, .prettyPrinted])
    return String(decoding: data, as: UTF8.self)
  }
}
