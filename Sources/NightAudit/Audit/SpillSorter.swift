import Foundation

/// Sorts any number of records by their keys in bounded memory: what does not fit waits in a nameless temporary file.
///
/// Records come out in the byte order of their keys; equal keys in the byte order of their contents, so that the order of
/// arrival plays no part.
final class SpillSorter {
  /// A temporary file that cannot be written or read: a full disk, most likely.
  struct Failure: Error, CustomStringConvertible {
    var directory: String
    var code: Int32
    var description: String {
      "cannot use a temporary file in \(directory): \(String(cString: strerror(code))); free some space or set TMPDIR"
    }
  }

  /// A key and what belongs to it.
  struct Record {
    var key: [UInt8]
    var content: [UInt8]

    fileprivate static func precedes(_ left: Record, _ right: Record) -> Bool {
      if left.key != right.key { return left.key.lexicographicallyPrecedes(right.key) }
      return left.content.lexicographicallyPrecedes(right.content)
    }
  }

  /// Where a record lies in the arena: its key, then its content.
  private struct Entry {
    var start: Int
    var keyLength: Int
    var contentLength: Int
  }

  /// One run of sorted records in a file.
  private struct Run {
    var file: UnsafeMutablePointer<FILE>
    var head: Record?
  }

  private let directory: String
  private let budget: Int
  /// All waiting records end to end: one allocation instead of two for each.
  private var arena: [UInt8] = []
  private var entries: [Entry] = []
  private var runs: [Run] = []
  private var position = 0
  private var isSorted = false
  private(set) var count = 0

  /// - Parameters:
  ///   - directory: where temporary files go.
  ///   - budget: bytes of records that are kept in memory.
  init(directory: String, budget: Int = 8 << 20) {
    self.directory = directory
    self.budget = budget
  }

  deinit { for run in runs { fclose(run.file) } }

  /// Adds a record. Not after the first `next`.
  func add(key: [UInt8], content: [UInt8]) throws(Failure) {
    precondition(!isSorted, "records are added before they are read")
    entries.append(Entry(start: arena.count, keyLength: key.count, contentLength: content.count))
    arena += key
    arena += content
    count += 1
    if arena.count + entries.count * MemoryLayout<Entry>.stride > budget { try spill() }
  }

  /// The next record in order; nil after the last.
  func next() throws(Failure) -> Record? {
    if !isSorted { try sort() }
    if runs.isEmpty {
      guard position < entries.count else { return nil }
      defer { position += 1 }
      let entry = entries[position]
      let middle = entry.start + entry.keyLength
      return Record(
        key: Array(arena[entry.start..<middle]), content: Array(arena[middle..<middle + entry.contentLength]))
    }
    var least: Int?
    for (index, run) in runs.enumerated() {
      guard let head = run.head else { continue }
      if let found = least, let best = runs[found].head, !Record.precedes(head, best) { continue }
      least = index
    }
    guard let least, let record = runs[least].head else { return nil }
    runs[least].head = try read(runs[least].file)
    return record
  }

  private func sort() throws(Failure) {
    isSorted = true
    if runs.isEmpty {
      sortEntries()
      return
    }
    if !entries.isEmpty { try spill() }
    for index in runs.indices {
      rewind(runs[index].file)
      runs[index].head = try read(runs[index].file)
    }
  }

  private func sortEntries() {
    arena.withUnsafeBytes { arena in
      func compare(_ left: Int, _ leftLength: Int, _ right: Int, _ rightLength: Int) -> Int {
        guard let base = arena.baseAddress, min(leftLength, rightLength) > 0 else { return leftLength - rightLength }
        let order = memcmp(base + left, base + right, min(leftLength, rightLength))
        return order == 0 ? leftLength - rightLength : Int(order)
      }
      entries.sort { left, right in
        let order = compare(left.start, left.keyLength, right.start, right.keyLength)
        if order != 0 { return order < 0 }
        return compare(
          left.start + left.keyLength, left.contentLength, right.start + right.keyLength, right.contentLength) < 0
      }
    }
  }

  private func spill() throws(Failure) {
    sortEntries()
    var path = Array((directory + "/night-audit-XXXXXX").utf8CString)
    let descriptor = mkstemp(&path)
    guard descriptor >= 0, let file = fdopen(descriptor, "w+") else { throw failure() }
    // Nameless from here on: it is gone with the process, however that ends.
    unlink(path)
    runs.append(Run(file: file, head: nil))
    for entry in entries {
      var lengths = (UInt32(entry.keyLength), UInt32(entry.contentLength))
      let length = entry.keyLength + entry.contentLength
      let isWritten = arena.withUnsafeBytes { arena in
        fwrite(&lengths, 8, 1, file) == 1
          && (length == 0 || arena.baseAddress.map { fwrite($0 + entry.start, length, 1, file) == 1 } ?? false)
      }
      guard isWritten else { throw failure() }
    }
    guard fflush(file) == 0 else { throw failure() }
    entries.removeAll(keepingCapacity: true)
    arena.removeAll(keepingCapacity: true)
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
