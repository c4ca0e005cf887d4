import Reconciliation

/// What the parts of one stage leave for the parts of the next: each record goes to the part that its id lies in, and comes
/// out there in the order of a `SpillSorter`, whoever has left it.
public final class Exchange {
  private let cuts: Cuts
  private let budget: Int
  private let directory: String
  /// By who leaves, then by who gets it.
  private let sorters: [[SpillSorter]]

  /// - Parameters:
  ///   - sources: how many parts leave records.
  ///   - cuts: of the ids that records go by.
  ///   - budget: bytes of records that one part keeps in memory.
  public init(from sources: Int, to cuts: Cuts, directory: String, budget: Int = 8 << 20) {
    self.cuts = cuts
    self.directory = directory
    self.budget = max(1 << 20, budget / cuts.count)
    let share = self.budget
    sorters = (0..<sources).map { _ in
      (0..<cuts.count).map { _ in SpillSorter(directory: directory, budget: share) }
    }
  }

  /// Where one part leaves its records. Used by one thread at a time.
  public func outlet(_ source: Int) -> Outlet {
    let (cuts, sorters) = (cuts, sorters[source])
    if sorters.count == 1 {
      let only = sorters[0]
      return Outlet { _, key, content in try only.add(key: key, content: content) }
    }
    return Outlet { id, key, content in try sorters[cuts.part(of: id.id)].add(key: key, content: content) }
  }

  /// For each part what was left for it. Not before everything was.
  public func gathered() throws(SpillSorter.Failure) -> [SpillSorter] {
    var gathered: [SpillSorter] = []
    for part in 0..<cuts.count {
      let first = sorters.first?[part] ?? SpillSorter(directory: directory, budget: budget)
      for other in sorters.dropFirst() { try first.absorb(other[part]) }
      gathered.append(first)
    }
    return gathered
  }

  public struct Outlet {
    private let put: (BorrowedText?, UnsafeRawBufferPointer, UnsafeRawBufferPointer) throws -> Void

    public init(_ put: @escaping (BorrowedText?, UnsafeRawBufferPointer, UnsafeRawBufferPointer) throws -> Void) {
      self.put = put
    }

    /// Leaves a record for the part that an id lies in, by a key as `RecordBytes.put(sorting:)` puts it.
    public func add(sorting key: borrowing RecordBytes, _ record: borrowing RecordBytes) throws {
      try put(BorrowedText(sorting: key.content), key.content, record.content)
    }

    /// The same, by the bytes of the id.
    public func add(_ id: BorrowedText, _ record: borrowing RecordBytes) throws {
      try put(id, id.bytes, record.content)
    }

    /// The same.
    public func add(_ id: Identifier, _ record: borrowing RecordBytes) throws {
      let content = record.content
      try id.withUTF8 { key in try put(BorrowedText(key), key, content) }
    }
  }
}
