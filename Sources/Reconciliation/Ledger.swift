/// Lines of sums by user or by price point.
///
/// The lines lie beside the table of keys: they are large, and a table that grows moves everything in it.
package struct Ledger<Key: Hashable & Sendable>: Sequence, Sendable {
  private var places: [Key: Int32] = [:]
  private var lines: [Totals.Line] = []

  package var count: Int { lines.count }
  package var isEmpty: Bool { lines.isEmpty }

  /// The keys in no order.
  package var keys: some Collection<Key> { places.keys }

  /// The line of a key; one without orders for a key that has none.
  package subscript(key: Key) -> Totals.Line { places[key].map { lines[Int($0)] } ?? Totals.Line() }

  mutating func add(_ minorUnits: Int64, _ disposition: Disposition, to key: Key) {
    if let place = places[key] {
      lines[Int(place)].add(minorUnits, disposition)
    } else {
      places[key] = Int32(lines.count)
      var line = Totals.Line()
      line.add(minorUnits, disposition)
      lines.append(line)
    }
  }

  package func makeIterator() -> some IteratorProtocol<(key: Key, value: Totals.Line)> {
    places.lazy.map { (key: $0.key, value: lines[Int($0.value)]) }.makeIterator()
  }

  /// What a closure makes of every line, by key.
  package func mapValues<Value>(_ transform: (Totals.Line) -> Value) -> [Key: Value] {
    places.mapValues { transform(lines[Int($0)]) }
  }
}
