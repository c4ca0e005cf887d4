import Foundation

/// JSON on stdout: pretty, keys sorted, ready for `jq`.
package enum MachineText {
  /// - Parameter keysAsTheyAre: for documents that spell their keys, where keys may be data.
  package static func json(_ value: some Encodable, keysAsTheyAre: Bool = false) throws -> String {
    let encoder = JSONEncoder()
    if !keysAsTheyAre { encoder.keyEncodingStrategy = .convertToSnakeCase }
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
    return String(decoding: try encoder.encode(value), as: UTF8.self)
  }
}
