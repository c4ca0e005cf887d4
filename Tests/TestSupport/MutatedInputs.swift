import Foundation

/// Genuine inputs of a reader, each changed in a few places: what others may hand us, and may have broken.
///
/// An input follows from the seed and its number, so that a failure names what makes it again. `TEST_EFFORT=n` tries n times
/// as many, `TEST_SEED=s` others.
package struct MutatedInputs {
  package static let seed = ProcessInfo.processInfo.environment["TEST_SEED"].flatMap { UInt64($0) } ?? 1

  private let genuine: [[UInt8]]
  private let tokens: [[UInt8]]

  /// - Parameters:
  ///   - genuine: at least one.
  ///   - tokens: pieces that mean something to the reader.
  package init(_ genuine: [[UInt8]], tokens: [String] = []) {
    self.genuine = genuine
    self.tokens = (tokens + ["", "0", "-1", "9223372036854775808", "1e999", "\0", "\u{FEFF}", "\r\n"]).map {
      Array($0.utf8)
    }
  }

  /// So many numbers of inputs as the effort of this run asks for.
  ///
  /// - Parameter count: of a run that takes seconds.
  package static func numbers(_ count: Int) -> Range<Int> {
    0..<count * (ProcessInfo.processInfo.environment["TEST_EFFORT"].flatMap { Int($0) } ?? 1)
  }

  /// The input of a number; every thirtieth is a genuine one.
  package func input(_ number: Int) -> [UInt8] {
    var random = SeededGenerator(seed: Self.seed &* 0xD134_2543_DE82_EF95 &+ UInt64(number))
    var bytes = genuine[random.number(0...(genuine.count - 1))]
    if random.oneIn(30) { return bytes }
    for _ in 0...random.number(0...3) { change(&bytes, &random) }
    return bytes
  }

  private func change(_ bytes: inout [UInt8], _ random: inout SeededGenerator) {
    guard !bytes.isEmpty else { return bytes = tokens[random.number(0...(tokens.count - 1))] }
    let place = random.number(0...(bytes.count - 1))
    let end = min(bytes.count, place + random.number(1...(random.oneIn(2) ? 8 : 200)))
    let token = tokens[random.number(0...(tokens.count - 1))]
    switch random.number(0...9) {
    case 0: bytes[place] ^= 1 << UInt8(random.number(0...7))
    case 1: bytes[place] = UInt8(random.number(0...255))
    case 2: bytes[place] = random.pick(0, 0x7F, 0x80, 0xC3, 0xED, 0xFF)
    case 3: bytes.removeSubrange(place..<end)
    case 4: bytes.insert(contentsOf: bytes[place..<end], at: random.number(0...bytes.count))
    case 5: bytes.swapAt(place, random.number(0...(bytes.count - 1)))
    case 6: bytes.removeSubrange(place...)
    case 7: bytes.replaceSubrange(place..<end, with: token)
    case 8: bytes.insert(contentsOf: token, at: place)
    default:
      // The beginning of this one and the end of another.
      let other = genuine[random.number(0...(genuine.count - 1))]
      bytes.replaceSubrange(place..., with: other.suffix(random.number(0...other.count)))
    }
  }
}
