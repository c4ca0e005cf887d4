/// SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014): the same seed draws the same on
/// every machine and with every version of Swift, which the standard library's own generators do not promise.
struct SeededGenerator: RandomNumberGenerator {
  private var state: UInt64

  /// The text is taken in by FNV-1a, which is the same on every machine and in every run.
  init(seed: UInt64, text: String, count: UInt64) {
    var hash: UInt64 = 0xCBF2_9CE4_8422_2325
    for byte in text.utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
    state = seed &* 0x9E37_79B9_7F4A_7C15 ^ hash &+ count &* 0xD134_2543_DE82_EF95
  }

  init(seed: UInt64) { state = seed }

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ mixed >> 30) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ mixed >> 27) &* 0x94D0_49BB_1331_11EB
    return mixed ^ mixed >> 31
  }
}
