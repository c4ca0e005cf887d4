/// Places by key, then by time. Removed places are skipped in nearly constant time.
struct TightArcIndex {
  private var places: [Int] = []
  private var times: [Int64] = []
  private var ranges: [Int64: Range<Int>] = [:]
  private var positions: [Int]
  /// The next position that was not removed, or one on the way to it.
  private var next: [Int]
  private var removed: [Int] = []

  init(_ entries: [(key: Int64, time: Int64)]) {
    places = entries.indices.sorted {
      (entries[$0].key, entries[$0].time, $0) < (entries[$1].key, entries[$1].time, $1)
    }
    times = places.map { entries[$0].time }
    positions = Array(repeating: 0, count: entries.count)
    next = Array(0...entries.count)
    var start = 0
    for (position, place) in places.enumerated() {
      positions[place] = position
      let key = entries[place].key
      if position + 1 == places.count || entries[places[position + 1]].key != key {
        ranges[key] = start..<(position + 1)
        start = position + 1
      }
    }
  }

  mutating func remove(_ place: Int) {
    next[positions[place]] = positions[place] + 1
    removed.append(positions[place])
  }

  mutating func restore() {
    for position in removed { next[position] = position }
    removed.removeAll(keepingCapacity: true)
  }

  mutating func forEach(_ key: Int64, from: Int64, to: Int64, _ body: (Int) -> Void) {
    guard let range = ranges[key] else { return }
    var (low, high) = (range.lowerBound, range.upperBound)
    while low < high {
      let middle = (low + high) / 2
      if times[middle] < from { low = middle + 1 } else { high = middle }
    }
    var position = firstRemaining(from: low)
    while position < range.upperBound, times[position] <= to {
      body(places[position])
      position = firstRemaining(from: position + 1)
    }
  }

  private mutating func firstRemaining(from start: Int) -> Int {
    var end = start
    while next[end] != end { end = next[end] }
    var position = start
    while next[position] != end, position != end { (next[position], position) = (end, next[position]) }
    return end
  }
}
