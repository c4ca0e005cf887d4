import Foundation

package enum MachineText {
  /// - Parameter keysAsTheyAre: true to keep keys unchanged, for documents whose keys may be data.
  package static func json(_ value: some Encodable, keysAsTheyAre: Bool = false) throws -> String {
    String(decoding: try encoder(keysAsTheyAre: keysAsTheyAre).encode(value), as: UTF8.self)
  }

  private static func encoder(keysAsTheyAre: Bool) -> JSONEncoder {
    let encoder = JSONEncoder()
    if !keysAsTheyAre { encoder.keyEncodingStrategy = .convertToSnakeCase }
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
    return encoder
  }

  /// A list printed element by element, byte for byte as `json` prints the whole list.
  package struct List<Element: Encodable> {
    private let encoder = MachineText.encoder(keysAsTheyAre: false)
    private var isEmpty = true

    package init() {}

    package mutating func add(_ element: Element) throws -> String {
      let text = String(decoding: try encoder.encode(element), as: UTF8.self)
      defer { isEmpty = false }
      return (isEmpty ? "[\n  " : ",\n  ") + text.replacing("\n", with: "\n  ")
    }

    package func end() throws -> String { isEmpty ? try MachineText.json([Element]()) : "\n]" }
  }
}
