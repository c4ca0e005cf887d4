import Foundation

package enum MachineText {
  package static func json(_ value: some Encodable) throws -> String {
    String(decoding: try encoder().encode(value), as: UTF8.self)
  }

  /// Keys in snake case. The keys of dictionaries are data, and stay as they are.
  private static func encoder() -> JSONEncoder {
    let encoder = JSONEncoder()
    encoder.keyEncodingStrategy = .convertToSnakeCase
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
    return encoder
  }

  /// An object with one list, printed element by element, byte for byte as `json` prints the whole object.
  package struct List<Element: Encodable> {
    private let encoder = MachineText.encoder()
    private let name: String
    private var isEmpty = true

    package init(named name: String) { self.name = name }

    package mutating func add(_ element: Element) throws -> String {
      let text = String(decoding: try encoder.encode(element), as: UTF8.self)
      defer { isEmpty = false }
      return (isEmpty ? "{\n  \"\(name)\" : [\n    " : ",\n    ") + text.replacing("\n", with: "\n    ")
    }

    package func end() throws -> String { isEmpty ? try MachineText.json([name: [Element]()]) : "\n  ]\n}" }
  }
}
