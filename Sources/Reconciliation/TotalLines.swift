import OrderedCollections

/// Lines of sums by user or by price point.
///
/// The lines lie beside the table of keys: they are large, and a table that grows moves everything in it.
public struct TotalLines<Key: Hashable & Sendable>: Sequence, Sendable {
  private var lines: OrderedDictionary<Key, Totals.Line> = [:]

  public var count: Int { lines.count }
  public var isEmpty: Bool { lines.isEmpty }

  /// The keys, in the order in which they came.
  public var keys: [Key] { lines.keys.elements }

  /// The line of a key; one without orders for a key that has none.
  public subscript(key: Key) -> Totals.Line { lines[key] ?? Totals.Line() }

  mutating func add(_ minorUnits: Int64, _ disposition: Disposition, to key: Key) {
    lines[key, default: Totals.Line()].add(minorUnits, disposition)
  }

  mutating func add(_ line: Totals.Line, to key: Key) { lines[key, default: Totals.Line()].add(line) }

  public func makeIterator() -> some IteratorProtocol<(key: Key, value: Totals.Line)> { lines.makeIterator() }

  /// What a closure makes of every line, by key.
  public func mapValues<Value>(_ transform: (Totals.Line) -> Value) -> [Key: Value] {
    Dictionary(uniqueKeysWithValues: lines.map { ($0.key, transform($0.value)) })
  }
}
