import OrderedCollections

/// Sums by user, price point or product.
/// The lines are outside the hash table, because they are large and a growing table moves its content.
public struct TotalLines<Key: Hashable & Sendable>: Sequence, Sendable {
  private var lines: OrderedDictionary<Key, Totals.Line> = [:]

  public var count: Int { lines.count }
  public var isEmpty: Bool { lines.isEmpty }

  public var keys: [Key] { lines.keys.elements }

  public subscript(key: Key) -> Totals.Line { lines[key] ?? Totals.Line() }

  mutating func add(_ minorUnits: Int64, _ disposition: Disposition, to key: Key) {
    lines[key, default: Totals.Line()].add(minorUnits, disposition)
  }

  mutating func add(_ line: Totals.Line, to key: Key) { lines[key, default: Totals.Line()].add(line) }

  public func makeIterator() -> some IteratorProtocol<(key: Key, value: Totals.Line)> { lines.makeIterator() }

  public func mapValues<Value>(_ transform: (Totals.Line) -> Value) -> [Key: Value] {
    Dictionary(uniqueKeysWithValues: lines.map { ($0.key, transform($0.value)) })
  }
}
