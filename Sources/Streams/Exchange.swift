import Reconciliation

/// Passes records by id from the parts of one stage to those of the next, sorted.
public final class Exchange {
  private let cuts: Cuts
  private let budget: Int
  private let directory: String
  private let sorters: [[SpillSorter]]

  /// - Parameter budget: bytes of records that one part keeps in memory.
  public init(from sources: Int, to cuts: Cuts, directory: String, budget: Int = 8 << 20) {
    self.cuts = cuts
    self.directory = directory
    self.budget = max(1 << 20, budget / cuts.count)
    let share = self.budget
    sorters = (0..<sources).map { _ in
      (0..<cuts.count).map { _ in SpillSorter(directory: directory, budget: share) }
    }
  }

  /// The outlet of one writing part. Used by one thread at a time.
  public func outlet(_ source: Int) -> RecordSink {
    let (cuts, sorters) = (cuts, sorters[source])
    if sorters.count == 1 {
      let only = sorters[0]
      return RecordSink { _, key, content in try only.add(key: key, content: content) }
    }
    return RecordSink { id, key, content in try sorters[cuts.part(of: id.id)].add(key: key, content: content) }
  }

  /// Returns the records of each reading part. Must be called after all writes.
  public func gathered() throws(SpillSorter.Failure) -> [SpillSorter] {
    var gathered: [SpillSorter] = []
    for part in 0..<cuts.count {
      let first = sorters.first?[part] ?? SpillSorter(directory: directory, budget: budget)
      for other in sorters.dropFirst() { try first.absorb(other[part]) }
      gathered.append(first)
    }
    return gathered
  }

  public struct RecordSink {
    private let put: (BorrowedText?, UnsafeRawBufferPointer, UnsafeRawBufferPointer) throws -> Void

    public init(_ put: @escaping (BorrowedText?, UnsafeRawBufferPointer, UnsafeRawBufferPointer) throws -> Void) {
      self.put = put
    }

    /// Adds a record by a key from `RecordBytes.put(sorting:)`, for the part of the id in it.
    public func add(sorting key: borrowing RecordBytes, _ record: borrowing RecordBytes) throws {
      try put(BorrowedText(sorting: key.content), key.content, record.content)
    }

    public func add(_ id: BorrowedText, _ record: borrowing RecordBytes) throws {
      try put(id, id.bytes, record.content)
    }

    public func add(_ id: Identifier, _ record: borrowing RecordBytes) throws {
      let content = record.content
      try id.withUTF8 { key in try put(BorrowedText(key), key, content) }
    }
  }
}
