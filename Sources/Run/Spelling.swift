package enum Spelling {
  /// Insertions, deletions, replacements and swaps between two words (restricted Damerau-Levenshtein).
  package static func distance(_ left: String, _ right: String) -> Int {
    let (left, right) = (Array(left.utf8), Array(right.utf8))
    var (before, last) = ([Int](), Array(0...right.count))
    for row in left.indices {
      var next = [row + 1]
      for column in right.indices {
        let isSame = left[row] == right[column]
        var cost = min(last[column + 1] + 1, next[column] + 1, last[column] + (isSame ? 0 : 1))
        if row > 0, column > 0, left[row] == right[column - 1], left[row - 1] == right[column] {
          cost = min(cost, before[column - 1] + 1)
        }
        next.append(cost)
      }
      (before, last) = (last, next)
    }
    return last[right.count]
  }

  /// The most similar word; nil if none is similar.
  package static func nearest(to word: String, among words: some Sequence<String>) -> String? {
    let near = words.map { (distance: distance(word, $0), word: $0) }.min { $0 < $1 }
    return near.flatMap { $0.distance <= max(1, word.count / 3) ? $0.word : nil }
  }
}
