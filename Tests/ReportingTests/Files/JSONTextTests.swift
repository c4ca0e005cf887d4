import Foundation
import Testing

@testable import Reporting

@Suite struct JSONTextTests {
  @Test func everyCharacterIsEscapedAsByFoundationsEncoder() throws {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    let further: [UInt32] = [0x7FF, 0x2028, 0x2029, 0xFEFF, 0xFFFD, 0x1F600, 0x10FFFF]
    for scalar in (Array(0..<0x180) + further).compactMap(Unicode.Scalar.init) {
      let text = "a\(Character(scalar))/b"
      var json = JSONText()
      json.open()
      json.put("absent", String?.none)
      json.put("key", text)
      json.open("nothing")
      json.close()
      json.open("object")
      json.put(text, "1")
      json.put("z", "2")
      json.close()
      json.close()
      let members = try [["key": text]].map { String(decoding: try encoder.encode($0).dropLast(), as: UTF8.self) }
      let inner = String(decoding: try encoder.encode([text: "1"]).dropLast(), as: UTF8.self)
      #expect(
        String(decoding: json.bytes, as: UTF8.self) == "\(members[0]),\"nothing\":{},\"object\":\(inner),\"z\":\"2\"}}")
    }
  }
}
