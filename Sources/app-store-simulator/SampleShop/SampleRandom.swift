/// SplitMix64 (Steele, Lea and Flood, 2014): the same seed draws the same shop on every machine and with every version of
/// Swift, which the standard library's own generators do not promise.
struct SampleRandom {
  private var state: UInt64

  init(seed: UInt64) { state = seed }

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var value = state
    value = (value ^ (value >> 30)) &* 0xBF58_476D_1CE4_E5B9
    value = (value ^ (value >> 27)) &* 0x94D0_49BB_1331_11EB
    return value ^ (value >> 31)
  }

  /// A whole number of the range, all equally likely but for a bias that no sample shows.
  mutating func whole(_ range: ClosedRange<Int64>) -> Int64 {
    range.lowerBound + Int64(next() % UInt64(range.upperBound - range.lowerBound + 1))
  }

  /// 0 up to 1, 1 excluded.
  mutating func fraction() -> Double { Double(next() >> 11) / Double(1 << 53) }

  /// True with this probability.
  mutating func chance(_ probability: Double) -> Bool { fraction() < probability }

  /// One of the elements. The collection is not empty.
  mutating func pick<Elements: RandomAccessCollection>(_ elements: Elements) -> Elements.Element {
    elements[elements.index(elements.startIndex, offsetBy: Int(next() % UInt64(elements.count)))]
  }

  mutating func bytes(_ count: Int) -> [UInt8] { (0..<count).map { _ in UInt8(truncatingIfNeeded: next()) } }
}
