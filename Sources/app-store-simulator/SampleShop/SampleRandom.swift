import SampleShops

/// What a sample shop is drawn with.
struct SampleRandom {
  private var generator: SampleShops.SampleRandom

  init(seed: UInt64) { generator = SampleShops.SampleRandom(seed: seed) }

  mutating func next() -> UInt64 { generator.next() }

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
