import Foundation
import TestSupport

@testable import AppStore

extension SeededGenerator {
  fileprivate mutating func below(_ bound: Int) -> Int { Int(next() % UInt64(max(bound, 1))) }

  fileprivate mutating func element<Element>(_ list: [Element]) -> Element? {
    list.isEmpty ? nil : list[below(list.count)]
  }
}

/// Generates inputs from a seed and a number alone, so that each can be reproduced.
struct FuzzGenerator {
  let corpus: FuzzCorpus
  let seed: UInt64

  func input(_ number: Int) -> [UInt8] {
    var random = SeededGenerator(seed: seed &* 0xD134_2543_DE82_EF95 &+ UInt64(number))
    let decoder = FuzzDecoder.allCases[random.below(FuzzDecoder.allCases.count)]
    return [decoder.letter] + content(decoder, &random)
  }

  private func content(_ decoder: FuzzDecoder, _ random: inout SeededGenerator) -> [UInt8] {
    let genuine = random.element(corpus[decoder]) ?? []
    switch random.below(32) {
    case 0: return genuine
    case 1: return (0..<random.below(600)).map { _ in UInt8(truncatingIfNeeded: random.next()) }
    default: break
    }
    switch decoder {
    case .signedTransaction, .signedRenewalInfo, .signedNotification:
      // Half of the time within a decoded part, because a change of the text mostly ends in broken base64.
      return random.below(2) == 0 ? mutatedParts(genuine, &random) : mutated(genuine, decoder, &random)
    default: return mutated(genuine, decoder, &random)
    }
  }

  private func mutated(_ genuine: [UInt8], _ decoder: FuzzDecoder, _ random: inout SeededGenerator) -> [UInt8] {
    var bytes = genuine
    for _ in 0...random.below(4) { mutate(&bytes, decoder, &random) }
    return bytes
  }

  /// Decodes, changes and encodes one part of a JWS, or takes it from another genuine one.
  private func mutatedParts(_ genuine: [UInt8], _ random: inout SeededGenerator) -> [UInt8] {
    var parts = genuine.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false).map(Array.init)
    let place = random.below(parts.count)
    let donor = random.element(corpus[.signedTransaction] + corpus[.signedRenewalInfo] + corpus[.signedNotification])
    if random.below(4) == 0, let donor {
      let others = donor.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
      parts[place] = Array(others[min(place, others.count - 1)])
    } else if let decoded = Base64Text.decodeURLSafe(parts[place][...]) {
      parts[place] = Array(Data(mutated(decoded, .signedParts, &random)).base64URL.utf8)
    }
    return Array(parts.joined(separator: [UInt8(ascii: ".")]))
  }

  private func mutate(_ bytes: inout [UInt8], _ decoder: FuzzDecoder, _ random: inout SeededGenerator) {
    guard !bytes.isEmpty else { return bytes = [UInt8(truncatingIfNeeded: random.next())] }
    let place = random.below(bytes.count)
    let end = min(bytes.count, place + 1 + random.below(random.below(2) == 0 ? 8 : 200))
    switch random.below(12) {
    case 0, 1: bytes[place] ^= 1 << UInt8(random.below(8))
    case 2: bytes[place] = UInt8(truncatingIfNeeded: random.next())
    case 3: bytes[place] = random.element(Self.significantBytes) ?? 0
    case 4: bytes.removeSubrange(place..<end)
    case 5: bytes.insert(contentsOf: bytes[place..<end], at: random.below(bytes.count))
    case 6: bytes.swapAt(place, random.below(bytes.count))
    case 7: bytes.removeSubrange(place...)
    case 8: bytes.replaceSubrange(place..<end, with: random.element(Self.tokens) ?? [])
    case 9: bytes.insert(contentsOf: random.element(Self.tokens) ?? [], at: place)
    case 10: bytes[place] = bytes[place] &+ (random.below(2) == 0 ? 1 : 255)
    default:
      let other = random.element(corpus[decoder]) ?? []
      bytes.replaceSubrange(place..., with: other.suffix(random.below(other.count + 1)))
    }
  }

  /// Bytes at which decoders branch.
  private static let significantBytes: [UInt8] = [
    0, 1, 0x02, 0x04, 0x0A, 0x20, 0x22, 0x24, 0x2B, 0x2D, 0x2E, 0x2F, 0x30, 0x31, 0x3D, 0x5C, 0x5F, 0x7B, 0x7D, 0x7F,
    0x80, 0x81, 0x84, 0x88, 0xA0, 0xC3, 0xED, 0xFF,
  ]

  /// Tokens with a meaning to decoders.
  private static let tokens: [[UInt8]] =
    [
      "null", "true", "{}", "[]", "[[[[[[[[", "{\"a\":{\"a\":{\"a\":", "\\u0000", "\\uD800", "\\uDFFF\\uD800", "1e999",
      "-1e-999", "9223372036854775807", "-9223372036854775809", "0.1", "\"environment\":\"Xcode\"",
      "\"environment\":\"Sandbox\"", "\"signedDate\":0,", "\"signedDate\":1e308,", "\"hasMore\":true",
      "\"alg\":\"none\"", "\"crit\":[]", "\"x5c\":[]", "\"revocationDate\":\"x\"", "\"status\":21007",
      "\"errorCode\":4040010", "9999-12-31T23:59:60Z", "+23:59", "=", "==", ".", "\r\n", "\u{FEFF}", "Etc/GMT",
      // Reports.
      "\t", "\t\t\t\t\t\t", "\n", "11/31/2025", "13/01/2025", "0.0000001", "-0.00", "1,5", "R", "IA1-M", "USD",
      "Total_Rows\t99999999999999999999", "Total_Amount", "170141183460469231731687303715884105728",
      // Configurations.
      ": ", "- ", "&a", "*a", "!!binary ", "|", ">", "'", "#", "\n  ", "---", "~", "? ", "<<: *a", "-1d",
      "99999999999999d", "audit.lookback",
      // Workbooks.
      "</row>", "<row>", "<c>", "r=\"A0\"", "r=\"XFE1\"", "r=\"1048577\"", "t=\"s\"", "t=\"d\"", "<v>99999999999</v>",
      "<v>-1</v>", "<!DOCTYPE a [<!ENTITY b \"c\">]>", "&b;", "<![CDATA[", "<?xml version=\"1.1\"?>", "&#0;",
      "&#xD800;", "../../../etc/passwd", "xmlns=\"\"", "PK\u{01}\u{02}",
    ].map { Array($0.utf8) } + [
      [0x30, 0x80], [0x24, 0x80, 0x04, 0x00], [0, 0], [0x02, 0x08, 0x80, 0, 0, 0, 0, 0, 0, 0],
      [0x84, 0xFF, 0xFF, 0xFF, 0xFF], [0x31, 0x00], [0xA0, 0x80], [0x16, 0x00], [0x1F, 0xFF], [0xC0, 0x80],
      [0xF4, 0x90, 0x80, 0x80],
    ]
}

extension Data {
  /// Base64 for URLs, without padding.
  var base64URL: String {
    base64EncodedString().replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
  }
}
