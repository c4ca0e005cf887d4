import Foundation

/// JSON on stdout: pretty, keys sorted, ready for `jq`.
package enum MachineText {
  /// - Parameter keysAsTheyAre: for documents that spell their keys, where keys may be data.
  package static func json(_ value: some Encodable, keysAsTheyAre: Bool = false) throws -> String {
    String(decoding: try encoder(keysAsTheyAre: keysAsTheyAre).encode(value), as: UTF8.self)
  }

  private static func encoder(keysAsTheyAre: Bool) -> JSONEncoder {
    let encoder = JSONEncoder()
    if !keysAsTheyAre { encoder.keyEncodingStrategy = .convertToSnakeCase }
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
    return encoder
  }

  /// A list that is printed element by element, with the same bytes as `json` of all of them.
  package struct List<Element: Encodable> {
    private let encoder = MachineText.encoder(keysAsTheyAre: false)
    private var isEmpty = true

    package init() {}

    /// The next part of the text: the element with what stands before it.
    package mutating func add(_ element: Element) throws -> String {
      let text = String(decoding: try encoder.encode(element), as: UTF8.self)
      defer { isEmpty = false }
      return (isEmpty ? "[\n  " : ",\n  ") + text.replacing("\n", with: "\n  ")
    }

    /// The last part of the text.
    package func end() throws -> String { isEmpty ? try MachineText.json([Element]()) : "\n]" }
  }
}
