import Foundation
import Reconciliation

/// An external sort in bounded memory, with unnamed temporary files. Equal keys are in byte order of their contents, so
/// that the order of arrival does not matter.
public final class SpillSorter {
  public struct Failure: Error, CustomStringConvertible {
    public var directory: String
    public var code: Int32
    public var description: String {
      "cannot use a temporary file in \(directory): \(String(cString: strerror(code))); free some space there\(elsewhere)"
    }

    // The temporary files of a report are created in its directory.
    private var elsewhere: String {
      directory == NSTemporaryDirectory() ? " or set TMPDIR" : ", or write elsewhere: report.directory, or --out"
    }
  }

  /// A key and its content, valid until the next record is read.
  public struct Record {
    public let key: UnsafeRawBufferPointer
    public let content: UnsafeRawBufferPointer
  }

  private struct Entry {
    /// The first bytes of the key, which nearly always decide a comparison.
    var prefix: UInt64
    var start: Int
    var keyLength: UInt32
    var contentLength: UInt32

    var key: Range<Int> { start..<start + Int(keyLength) }
    var content: Range<Int> { key.upperBound..<key.upperBound + Int(contentLength) }
    var all: Range<Int> { start..<content.upperBound }
  }

  /// A run of sorted records in a file. Pointers, because runs are compared for every record and must not count
  /// references.
  private struct Run {
    let file: TemporaryFile
    let level: Int
    private(set) var count = 0
    private var position = 0
    /// The key and content of the next record.
    private(set) var head = UnsafeRawBufferPointer(start: nil, count: 0)
    private(set) var keyLength = 0
    private var prefix: UInt64 = 0

    init(_ file: TemporaryFile, level: Int = 0) { (self.file, self.level) = (file, level) }

    var contentLength: Int { head.count - keyLength }
    var key: UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: head[..<keyLength]) }
    var content: UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: head[keyLength...]) }

    mutating func add(_ records: Int) { count += records }

    mutating func rewind() -> Bool {
      position = 0
      return file.rewind()
    }

    mutating func advance() -> Bool? {
      if position == count { return false }
      position += 1
      guard let lengths = file.take(8)?.loadUnaligned(as: (UInt32, UInt32).self) else { return nil }
      let length = Int(lengths.0) + Int(lengths.1)
      guard let record = file.take(length) else { return nil }
      head = UnsafeRawBufferPointer(start: record, count: length)
      keyLength = Int(lengths.0)
      prefix = SpillSorter.prefix(key)
      return true
    }

    static func precedes(_ left: Run, _ right: Run) -> Bool {
      if left.prefix != right.prefix { return left.prefix < right.prefix }
      let order = SpillSorter.compare(left.key, right.key)
      return order == 0 ? SpillSorter.compare(left.content, right.content) < 0 : order < 0
    }
  }

  // A process may open few files, and every record is compared with the heads of all runs.
  private static let fanIn = 32

  private let directory: String
  private let budget: Int
  /// All records in memory, contiguous: one allocation instead of two per record.
  private var arena = UnsafeMutableRawBufferPointer(start: nil, count: 0)
  private var used = 0
  private var entries: [Entry] = []
  private var runs: [Run] = []
  /// The last key of the newest run, if more records may be appended to it.
  private var newestKey: [UInt8]?
  /// A heap of the indices of runs with a head, the smallest first.
  private var queue: [Int] = []
  private var position = 0
  private var isSorted = false
  private var isTaken = false
  public private(set) var count = 0

  public init(directory: String, budget: Int = 4 << 20) {
    self.directory = directory
    self.budget = budget
  }

  deinit {
    for run in runs { run.file.close() }
    arena.deallocate()
  }

  /// Adds a record. Not allowed between the first `next` and `reopen()`.
  public func add(key: UnsafeRawBufferPointer, content: UnsafeRawBufferPointer) throws(Failure) {
    precondition(!isSorted, "records are added before they are read")
    let length = key.count + content.count
    if arena.count - used < length {
      // At full size, because freed smaller blocks are not always returned to the system, and untouched pages cost
      // nothing.
      let larger = UnsafeMutableRawBufferPointer.allocate(byteCount: max(budget, 2 * used) + length, alignment: 1)
      larger.copyMemory(from: UnsafeRawBufferPointer(rebasing: arena[..<used]))
      arena.deallocate()
      arena = larger
    }
    entries.append(
      Entry(
        prefix: SpillSorter.prefix(key), start: used, keyLength: UInt32(key.count),
        contentLength: UInt32(content.count)))
    UnsafeMutableRawBufferPointer(rebasing: arena[used...]).copyMemory(from: key)
    UnsafeMutableRawBufferPointer(rebasing: arena[(used + key.count)...]).copyMemory(from: content)
    used += length
    count += 1
    if used + entries.count * MemoryLayout<Entry>.stride > budget { try spill() }
  }

  public func add(key: [UInt8], content: UnsafeRawBufferPointer) throws(Failure) {
    try key.withUnsafeBufferPointer { (key) throws(Failure) in
      try add(key: UnsafeRawBufferPointer(key), content: content)
    }
  }

  public func add(key: [UInt8], content: [UInt8]) throws(Failure) {
    try content.withUnsafeBufferPointer { (content) throws(Failure) in
      try add(key: key, content: UnsafeRawBufferPointer(content))
    }
  }

  public func add(_ id: Identifier, _ record: borrowing RecordBytes) throws(Failure) {
    let content = record.content
    try id.withUTF8 { (key) throws(Failure) in try add(key: key, content: content) }
  }

  private func dropArena() {
    arena.deallocate()
    (arena, used) = (UnsafeMutableRawBufferPointer(start: nil, count: 0), 0)
  }

  private func bytes(_ range: Range<Int>) -> UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(rebasing: arena[range])
  }

  /// Moves all records of another sorter into this one. Not allowed after the first `next` of either, unless it was
  /// reopened.
  public func absorb(_ other: SpillSorter) throws(Failure) {
    precondition(!isSorted && !other.isSorted, "records are added before they are read")
    for entry in other.entries { try add(key: other.bytes(entry.key), content: other.bytes(entry.content)) }
    count += other.count - other.entries.count
    if runs.isEmpty { newestKey = nil }
    // Before this sorter's runs, because the next merge of a level takes runs from the end.
    runs.insert(contentsOf: other.runs, at: 0)
    (other.entries, other.runs, other.newestKey, other.count) = ([], [], nil, 0)
    other.dropArena()
  }

  // The first eight bytes as a number with the same order; a shorter key is padded with zeros.
  private static func prefix(_ key: UnsafeRawBufferPointer) -> UInt64 {
    if key.count >= 8 { return UInt64(bigEndian: key.loadUnaligned(as: UInt64.self)) }
    var prefix: UInt64 = 0
    withUnsafeMutableBytes(of: &prefix) { $0.copyMemory(from: key) }
    return prefix.bigEndian
  }

  public func next() throws(Failure) -> Record? {
    if !isSorted { try sort() }
    if runs.isEmpty {
      guard position < entries.count else { return nil }
      defer { position += 1 }
      let entry = entries[position]
      return Record(key: bytes(entry.key), content: bytes(entry.content))
    }
    if isTaken { try passFirst(of: &queue) }
    isTaken = !queue.isEmpty
    guard let least = queue.first else { return nil }
    return Record(key: runs[least].key, content: runs[least].content)
  }

  // MARK: - Merging

  private func rewind(_ indices: Range<Int>) throws(Failure) -> [Int] {
    var queue: [Int] = []
    for index in indices {
      guard runs[index].rewind(), let isThere = runs[index].advance() else { throw failure() }
      if isThere { queue.append(index) }
    }
    for place in stride(from: queue.count / 2, through: 0, by: -1) { sink(place, in: &queue) }
    return queue
  }

  private func passFirst(of queue: inout [Int]) throws(Failure) {
    guard let isThere = runs[queue[0]].advance() else { throw failure() }
    if !isThere {
      queue.swapAt(0, queue.count - 1)
      queue.removeLast()
    }
    // Records that arrived in order are in one run, which needs no heap.
    if queue.count > 1 { sink(0, in: &queue) }
  }

  private func sink(_ start: Int, in queue: inout [Int]) {
    runs.withUnsafeBufferPointer { runs in
      queue.withUnsafeMutableBufferPointer { queue in
        var place = start
        while 2 * place + 1 < queue.count {
          var least = 2 * place + 1
          if least + 1 < queue.count, Run.precedes(runs[queue[least + 1]], runs[queue[least]]) { least += 1 }
          guard Run.precedes(runs[queue[least]], runs[queue[place]]) else { return }
          queue.swapAt(place, least)
          place = least
        }
      }
    }
  }

  /// Allows further records after some were read. The next reading starts with the first record.
  public func reopen() {
    (position, isTaken, isSorted, newestKey) = (0, false, false, nil)
  }

  public func restart() throws(Failure) {
    (position, isTaken) = (0, false)
    if isSorted, !runs.isEmpty { queue = try rewind(runs.indices) }
  }

  private func sort() throws(Failure) {
    isSorted = true
    if runs.isEmpty {
      sortEntries()
      return
    }
    if !entries.isEmpty { try spill() }
    // From here on all records are read from the files.
    entries = []
    dropArena()
    queue = try rewind(runs.indices)
  }

  private func sortEntries() {
    let arena = UnsafeRawBufferPointer(arena)
    func bytes(_ range: Range<Int>) -> UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: arena[range]) }
    entries.sort { left, right in
      if left.prefix != right.prefix { return left.prefix < right.prefix }
      let order = Self.compare(bytes(left.key), bytes(right.key))
      return order == 0 ? Self.compare(bytes(left.content), bytes(right.content)) < 0 : order < 0
    }
  }

  private static func compare(_ left: UnsafeRawBufferPointer, _ right: UnsafeRawBufferPointer) -> Int {
    guard let start = left.baseAddress, let other = right.baseAddress else { return left.count - right.count }
    let order = memcmp(start, other, min(left.count, right.count))
    return order == 0 ? left.count - right.count : Int(order)
  }

  private func spill() throws(Failure) {
    guard !entries.isEmpty else { return }
    sortEntries()
    // Ids mostly count up, so records often arrive in order and make one run that needs no merge.
    if !(newestKey?.lexicographicallyPrecedes(bytes(entries[0].key)) ?? false) { runs.append(Run(try openFile())) }
    let file = runs[runs.count - 1].file
    let isWritten = entries.allSatisfy {
      SpillSorter.write($0.keyLength, $0.contentLength, bytes($0.all), to: file)
    }
    guard isWritten, file.flush() else { throw failure() }
    runs[runs.count - 1].add(entries.count)
    newestKey = [UInt8](bytes(entries[entries.count - 1].key))
    entries.removeAll(keepingCapacity: true)
    used = 0
    try mergeFullLevels()
  }

  private func mergeFullLevels() throws(Failure) {
    while runs.count >= SpillSorter.fanIn {
      let level = runs[runs.count - 1].level
      // The newest runs are at the end, and of the lowest level.
      let full = runs.count - SpillSorter.fanIn..<runs.count
      guard runs[full.lowerBound].level == level else { return }
      var queue = try rewind(full)
      let file = try openFile()
      var isMerged = false
      defer { if !isMerged { file.close() } }
      while let least = queue.first {
        let run = runs[least]
        guard SpillSorter.write(UInt32(run.keyLength), UInt32(run.contentLength), run.head, to: file) else {
          throw failure()
        }
        try passFirst(of: &queue)
      }
      guard file.flush() else { throw failure() }
      isMerged = true
      var merged = Run(file, level: level + 1)
      for run in runs[full] {
        merged.add(run.count)
        run.file.close()
      }
      runs.removeSubrange(full)
      runs.append(merged)
      newestKey = nil
    }
  }

  private func openFile() throws(Failure) -> TemporaryFile {
    // A small buffer, because many such files are open at once.
    guard let file = TemporaryFile(in: directory, bufferSize: 1 << 14) else { throw failure() }
    return file
  }

  private static func write(
    _ keyLength: UInt32, _ contentLength: UInt32, _ bytes: UnsafeRawBufferPointer, to file: TemporaryFile
  ) -> Bool {
    file.append(keyLength) && file.append(contentLength) && file.append(bytes)
  }

  private func failure() -> Failure { Failure(directory: directory, code: errno) }
}

/// Iterates over sorted records with a look-ahead of one value.
public struct SpillCursor<Value> {
  private let sorter: SpillSorter
  private let decode: (SpillSorter.Record) throws -> Value
  public private(set) var head: Value?

  public init(_ sorter: SpillSorter, decode: @escaping (SpillSorter.Record) throws -> Value) throws {
    self.sorter = sorter
    self.decode = decode
    try advance()
  }

  public mutating func advance() throws { head = try sorter.next().map(decode) }

  public mutating func next() throws -> Value? {
    guard let value = head.take() else { return nil }
    try advance()
    return value
  }
}
