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

  /// One run of sorted records, from memory or from a file.
  private struct Run {
    var file: UnsafeMutablePointer<FILE>
    var head: Record?
  }

  struct Record {
    var key: [UInt8]
    var content: [UInt8]

    fileprivate static func precedes(_ left: Record, _ right: Record) -> Bool {
      if left.key != right.key { return left.key.lexicographicallyPrecedes(right.key) }
      return left.content.lexicographicallyPrecedes(right.content)
    }
  }

  private let directory: String
  private let budget: Int
  private var waiting: [Record] = []
  private var size = 0
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
    waiting.append(Record(key: key, content: content))
    count += 1
    // Two arrays with their headers, beside the bytes themselves.
    size += key.count + content.count + 96
    if size > budget { try spill() }
  }

  /// The next record in order; nil after the last.
  func next() throws(Failure) -> Record? {
    if !isSorted { try sort() }
    if runs.isEmpty {
      guard position < waiting.count else { return nil }
      defer { position += 1 }
      return waiting[position]
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
      waiting.sort(by: Record.precedes)
      return
    }
    if !waiting.isEmpty { try spill() }
    for index in runs.indices {
      rewind(runs[index].file)
      runs[index].head = try read(runs[index].file)
    }
  }

  private func spill() throws(Failure) {
    waiting.sort(by: Record.precedes)
    var path = Array((directory + "/night-audit-XXXXXX").utf8CString)
    let descriptor = mkstemp(&path)
    guard descriptor >= 0, let file = fdopen(descriptor, "w+") else { throw failure() }
    // Nameless from here on: it is gone with the process, however that ends.
    unlink(path)
    runs.append(Run(file: file, head: nil))
    for record in waiting {
      for part in [record.key, record.content] {
        var length = UInt32(part.count)
        guard fwrite(&length, 4, 1, file) == 1, part.isEmpty || fwrite(part, part.count, 1, file) == 1 else {
          throw failure()
        }
      }
    }
    guard fflush(file) == 0 else { throw failure() }
    waiting.removeAll(keepingCapacity: true)
    size = 0
  }

  private func read(_ file: UnsafeMutablePointer<FILE>) throws(Failure) -> Record? {
    guard let key = try readPart(file, mayEnd: true) else { return nil }
    guard let content = try readPart(file, mayEnd: false) else { throw failure() }
    return Record(key: key, content: content)
  }

  private func readPart(_ file: UnsafeMutablePointer<FILE>, mayEnd: Bool) throws(Failure) -> [UInt8]? {
    var length: UInt32 = 0
    guard fread(&length, 4, 1, file) == 1 else {
      if mayEnd, feof(file) != 0 { return nil }
      throw failure()
    }
    var isShort = false
    let part = [UInt8](unsafeUninitializedCapacity: Int(length)) { buffer, count in
      count = fread(buffer.baseAddress, 1, Int(length), file)
      isShort = count < Int(length)
    }
    if isShort { throw failure() }
    return part
  }

  private func failure() -> Failure { Failure(directory: directory, code: errno) }
}
