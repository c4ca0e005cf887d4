/// SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014). Deterministic on every
/// machine and Swift version, which the standard library does not promise.
package struct SampleRandom: RandomNumberGenerator, Sendable {
  private var state: UInt64

  package init(seed: UInt64) { state = seed }

  /// Hashes the text by FNV-1a, which is the same on every machine and in every run.
  package init(seed: UInt64, text: String, count: UInt64) {
    var hash: UInt64 = 0xCBF2_9CE4_8422_2325
    for byte in text.utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
    state = seed &* 0x9E37_79B9_7F4A_7C15 ^ hash &+ count &* 0xD134_2543_DE82_EF95
  }

  package mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return mixed ^ (mixed >> 31)
  }

  package mutating func number(_ range: ClosedRange<Int>) -> Int { Int.random(in: range, using: &self) }

  /// From 0 to 1, exclusive.
  package mutating func fraction() -> Double { Double(next() >> 11) / Double(1 << 53) }

  package mutating func oneIn(_ times: Int) -> Bool { number(1...times) == 1 }

  package mutating func pick<Choice>(_ first: Choice, _ others: Choice...) -> Choice {
    let index = number(0...others.count)
    return index == 0 ? first : others[index - 1]
  }

  package mutating func pick<Element>(among elements: [Element]) -> Element {
    elements[number(0...(elements.count - 1))]
  }

  package mutating func bytes(_ count: Int) -> [UInt8] { (0..<count).map { _ in UInt8(truncatingIfNeeded: next()) } }
}
