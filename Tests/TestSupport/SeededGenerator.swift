/// SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014). Deterministic on every
/// machine.
package struct SeededGenerator: RandomNumberGenerator {
  private var state: UInt64

  package init(seed: UInt64) { state = seed }

  package mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return mixed ^ (mixed >> 31)
  }

  package mutating func number(_ range: ClosedRange<Int>) -> Int { Int.random(in: range, using: &self) }

  package mutating func oneIn(_ times: Int) -> Bool { number(1...times) == 1 }

  package mutating func pick<Choice>(_ first: Choice, _ others: Choice...) -> Choice {
    let index = number(0...others.count)
    return index == 0 ? first : others[index - 1]
  }
}
