/// Sums by user, price point or product.
/// The lines are outside the hash table, because they are large and a growing table moves its content.
public struct TotalLines<Key: Hashable & Sendable>: Sequence, Sendable {
  private var places: [Key: Int] = [:]
  private var lines: [Totals.Line] = []

  public var count: Int { lines.count }
  public var isEmpty: Bool { lines.isEmpty }

  public var keys: [Key] { Array(places.keys) }

  public subscript(key: Key) -> Totals.Line { places[key].map { lines[$0] } ?? Totals.Line() }

  mutating func add(_ minorUnits: Int64, _ disposition: Disposition, to key: Key) {
    lines[place(of: key)].add(minorUnits, disposition)
  }

  mutating func add(_ line: Totals.Line, to key: Key) { lines[place(of: key)].add(line) }

  private mutating func place(of key: Key) -> Int {
    if let known = places[key] { return known }
    places[key] = lines.count
    lines.append(Totals.Line())
    return lines.count - 1
  }

  mutating func removeAll() {
    places.removeAll(keepingCapacity: true)
    lines.removeAll(keepingCapacity: true)
  }

  public func makeIterator() -> some IteratorProtocol<(key: Key, value: Totals.Line)> {
    places.lazy.map { (key: $0.key, value: lines[$0.value]) }.makeIterator()
  }

  public func mapValues<Value>(_ transform: (Totals.Line) -> Value) -> [Key: Value] {
    places.mapValues { transform(lines[$0]) }
  }
}
