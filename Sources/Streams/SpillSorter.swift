import Foundation

/// Sorts any number of records by their keys in bounded memory: what does not fit waits in a nameless temporary file.
///
/// Records come out in the byte order of their keys; equal keys in the byte order of their contents, so that the order of
/// arrival plays no part.
package final class SpillSorter {
  /// A temporary file that cannot be written or read: a full disk, most likely.
  package struct Failure: Error, CustomStringConvertible {
    package var directory: String
    package var code: Int32
    package var description: String {
      "cannot use a temporary file in \(directory): \(String(cString: strerror(code))); free some space or set TMPDIR"
    }
  }

  /// A key and what belongs to it.
  package struct Record {
    package var key: [UInt8]
    package var content: [UInt8]

    fileprivate static func precedes(_ left: Record, _ right: Record) -> Bool {
      if left.key != right.key { return left.key.lexicographicallyPrecedes(right.key) }
      return left.content.lexicographicallyPrecedes(right.content)
    }
  }

  /// Where a record lies in the arena: its key, then its content.
  private struct Entry {
    /// The key's first bytes, which nearly always decide.
    var prefix: UInt64
    var start: Int
    var keyLength: UInt32
    var contentLength: UInt32

    var key: Range<Int> { start..<start + Int(keyLength) }
    var content: Range<Int> { key.upperBound..<key.upperBound + Int(contentLength) }
    var all: Range<Int> { start..<content.upperBound }
  }

  /// One run of sorted records in a file.
  private struct Run {
    var file: UnsafeMutablePointer<FILE>
    /// How often its records were merged.
    var level = 0
    var head: Record?
    /// Of the head's key.
    var prefix: UInt64 = 0
  }

  /// So many runs of a level become one of the next: a process may have few files open, and each record that is read is
  /// compared with all of them.
  private static let fanIn = 32

  private let directory: String
  private let budget: Int
  /// All waiting records end to end: one allocation instead of two for each.
  private var arena: [UInt8] = []
  private var entries: [Entry] = []
  private var runs: [Run] = []
  private var position = 0
  private var isSorted = false
  package private(set) var count = 0

  /// - Parameters:
  ///   - directory: where temporary files go.
  ///   - budget: bytes of records that are kept in memory.
  package init(directory: String, budget: Int = 4 << 20) {
    self.directory = directory
    self.budget = budget
  }

  deinit { for run in runs { fclose(run.file) } }

  /// Adds a record. Not after the first `next`.
  package func add(key: [UInt8], content: [UInt8]) throws(Failure) {
    precondition(!isSorted, "records are added before they are read")
    // At once, because what is outgrown is not always given back; untouched pages cost nothing.
    if count == 0 { arena.reserveCapacity(budget) }
    entries.append(
      Entry(
        prefix: SpillSorter.prefix(key), start: arena.count, keyLength: UInt32(key.count),
        contentLength: UInt32(content.count)))
    arena += key
    arena += content
    count += 1
    if arena.count + entries.count * MemoryLayout<Entry>.stride > budget { try spill() }
  }

  /// Takes over all records of another one, which is left without any. Not after the first `next` of either.
  package func absorb(_ other: SpillSorter) throws(Failure) {
    precondition(!isSorted && !other.isSorted, "records are added before they are read")
    for entry in other.entries {
      try add(key: Array(other.arena[entry.key]), content: Array(other.arena[entry.content]))
    }
    count += other.count - other.entries.count
    // Before its own, which the next merge of a level takes from the end.
    runs.insert(contentsOf: other.runs, at: 0)
    (other.entries, other.arena, other.runs, other.count) = ([], [], [], 0)
  }

  /// The first eight bytes as a number that sorts like them, zeros behind a shorter key.
  private static func prefix(_ key: [UInt8]) -> UInt64 {
    var prefix: UInt64 = 0
    withUnsafeMutableBytes(of: &prefix) { $0.copyBytes(from: key.prefix(8)) }
    return prefix.bigEndian
  }

  /// The next record in order; nil after the last.
  package func next() throws(Failure) -> Record? {
    if !isSorted { try sort() }
    if runs.isEmpty {
      guard position < entries.count else { return nil }
      defer { position += 1 }
      let entry = entries[position]
      return Record(key: Array(arena[entry.key]), content: Array(arena[entry.content]))
    }
    return try least(among: runs.indices)
  }

  /// Takes the least of the heads of some runs; nil after the last.
  private func least(among indices: Range<Int>) throws(Failure) -> Record? {
    var least: Int?
    for index in indices where runs[index].head != nil {
      if let found = least, !isBefore(index, found) { continue }
      least = index
    }
    guard let least, let record = runs[least].head.take() else { return nil }
    try advance(least)
    return record
  }

  private func isBefore(_ one: Int, _ other: Int) -> Bool {
    if runs[one].prefix != runs[other].prefix { return runs[one].prefix < runs[other].prefix }
    guard let left = runs[one].head, let right = runs[other].head else { return false }
    return Record.precedes(left, right)
  }

  private func advance(_ run: Int) throws(Failure) {
    let head = try read(runs[run].file)
    if let head { runs[run].prefix = SpillSorter.prefix(head.key) }
    runs[run].head = head
  }

  /// Goes back to the first record.
  package func restart() throws(Failure) {
    position = 0
    if isSorted, !runs.isEmpty { try rewind(runs.indices) }
  }

  private func sort() throws(Failure) {
    isSorted = true
    if runs.isEmpty {
      sortEntries()
      return
    }
    if !entries.isEmpty { try spill() }
    // Everything is read from the files now.
    (arena, entries) = ([], [])
    try rewind(runs.indices)
  }

  /// Puts each of some runs before its second record, the first being its head.
  private func rewind(_ indices: Range<Int>) throws(Failure) {
    for index in indices {
      Glibc.rewind(runs[index].file)
      try advance(index)
    }
  }

  private func sortEntries() {
    arena.withUnsafeBytes { arena in
      func compare(_ left: Range<Int>, _ right: Range<Int>) -> Int {
        guard let base = arena.baseAddress, !left.isEmpty, !right.isEmpty else { return left.count - right.count }
        let order = memcmp(base + left.lowerBound, base + right.lowerBound, min(left.count, right.count))
        return order == 0 ? left.count - right.count : Int(order)
      }
      entries.sort { left, right in
        if left.prefix != right.prefix { return left.prefix < right.prefix }
        let order = compare(left.key, right.key)
        return order == 0 ? compare(left.content, right.content) < 0 : order < 0
      }
    }
  }

  private func spill() throws(Failure) {
    sortEntries()
    let file = try openFile()
    runs.append(Run(file: file))
    for entry in entries {
      try write(entry.keyLength, entry.contentLength, to: file)
      guard arena.withUnsafeBytes({ write($0[entry.all], to: file) }) else { throw failure() }
    }
    guard fflush(file) == 0 else { throw failure() }
    entries.removeAll(keepingCapacity: true)
    arena.removeAll(keepingCapacity: true)
    try mergeFullLevels()
  }

  private func mergeFullLevels() throws(Failure) {
    while runs.count >= SpillSorter.fanIn {
      let level = runs[runs.count - 1].level
      // The newest runs are the last ones, and of the lowest level.
      let full = runs.count - SpillSorter.fanIn..<runs.count
      guard runs[full.lowerBound].level == level else { return }
      try rewind(full)
      let file = try openFile()
      var isMerged = false
      defer { if !isMerged { fclose(file) } }
      while let record = try least(among: full) {
        try write(UInt32(record.key.count), UInt32(record.content.count), to: file)
        for part in [record.key, record.content] {
          guard part.withUnsafeBytes({ write($0[...], to: file) }) else { throw failure() }
        }
      }
      guard fflush(file) == 0 else { throw failure() }
      isMerged = true
      for run in runs[full] { fclose(run.file) }
      runs.removeSubrange(full)
      runs.append(Run(file: file, level: level + 1))
    }
  }

  private func openFile() throws(Failure) -> UnsafeMutablePointer<FILE> {
    guard let file = TemporaryFile.open(in: directory) else { throw failure() }
    return file
  }

  private func write(
    _ keyLength: UInt32, _ contentLength: UInt32, to file: UnsafeMutablePointer<FILE>
  ) throws(Failure) {
    var lengths = (keyLength, contentLength)
    guard fwrite(&lengths, 8, 1, file) == 1 else { throw failure() }
  }

  /// False, with `errno` set, when the bytes do not fit.
  private func write(_ bytes: Slice<UnsafeRawBufferPointer>, to file: UnsafeMutablePointer<FILE>) -> Bool {
    let bytes = UnsafeRawBufferPointer(rebasing: bytes)
    return fwrite(bytes.baseAddress, 1, bytes.count, file) == bytes.count
  }

  private func read(_ file: UnsafeMutablePointer<FILE>) throws(Failure) -> Record? {
    var lengths: (UInt32, UInt32) = (0, 0)
    guard fread(&lengths, 8, 1, file) == 1 else {
      if feof(file) != 0 { return nil }
      throw failure()
    }
    return Record(key: try bytes(Int(lengths.0), from: file), content: try bytes(Int(lengths.1), from: file))
  }

  private func bytes(_ length: Int, from file: UnsafeMutablePointer<FILE>) throws(Failure) -> [UInt8] {
    var isShort = false
    let bytes = [UInt8](unsafeUninitializedCapacity: length) { buffer, count in
      count = fread(buffer.baseAddress, 1, length, file)
      isShort = count < length
    }
    if isShort { throw failure() }
    return bytes
  }

  private func failure() -> Failure { Failure(directory: directory, code: errno) }
}

/// Walks through what was sorted, one value ahead.
package struct SpillCursor<Value> {
  private let sorter: SpillSorter
  private let decode: (SpillSorter.Record) throws -> Value
  /// The next value; nil after the last.
  package private(set) var head: Value?

  package init(_ sorter: SpillSorter, decode: @escaping (SpillSorter.Record) throws -> Value) throws {
    self.sorter = sorter
    self.decode = decode
    try advance()
  }

  /// Moves on to the one after the head.
  package mutating func advance() throws { head = try sorter.next().map(decode) }

  /// Takes the head; nil after the last.
  package mutating func next() throws -> Value? {
    guard let value = head else { return nil }
    try advance()
    return value
  }
}
