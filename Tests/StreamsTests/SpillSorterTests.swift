import Foundation
import TestSupport
import Testing

@testable import Streams

/// Sorting with spill files gives the same order as sorting in memory.
@Suite struct SpillSorterTests {
  private func sorted(_ records: [(key: [UInt8], content: [UInt8])], budget: Int) throws -> [[UInt8]] {
    let sorter = SpillSorter(directory: NSTemporaryDirectory(), budget: budget)
    for record in records { try sorter.add(key: record.key, content: record.content) }
    var found: [[UInt8]] = []
    while let record = try sorter.next() { found.append(record.key + [0xFF] + record.content) }
    return found
  }

  /// A file that its volume has truncated, at the end of a record or within one, is detected.
  @Test(arguments: [0, 3, 104, 107, 150])
  func aTruncatedSpillFileIsDetected(_ size: Int) throws {
    let directory = NSTemporaryDirectory() + "night-audit-spills-" + UUID().uuidString
    try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: directory) }
    func cut() throws {
      for descriptor in try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd") {
        let path = "/proc/self/fd/\(descriptor)"
        guard let file = try? FileManager.default.destinationOfSymbolicLink(atPath: path), file.hasPrefix(directory)
        else { continue }
        #expect(truncate(path, size) == 0)
      }
    }
    let file = try SpillFile(directory: directory)
    for number in 0..<3 { try file.add(Array(repeating: UInt8(number), count: 100)) }
    try file.restart()
    try cut()
    #expect(throws: SpillSorter.Failure.self) { while try file.next() != nil {} }
    let sorter = SpillSorter(directory: directory, budget: 1)
    for number in [3, 1, 2] {
      try sorter.add(key: [UInt8(number)], content: [UInt8](repeating: UInt8(number), count: 100))
    }
    try cut()
    #expect(throws: SpillSorter.Failure.self) { while try sorter.next() != nil {} }
  }

  @Test func recordsLongerThanTheBufferAreWhole() throws {
    let records = [1, 100_000, 0, 16_384, 300_000, 65_532].map { [UInt8](repeating: UInt8($0 % 251), count: $0) }
    let file = try SpillFile(directory: NSTemporaryDirectory())
    for record in records { try file.add(record) }
    for _ in 0..<2 {
      try file.restart()
      for record in records { #expect(try file.next().map { $0.elementsEqual(record) } == true) }
      #expect(try file.next() == nil)
    }
    let keyed = records.enumerated().map { (key: [UInt8($0)], content: $1) }
    #expect(try sorted(keyed.reversed(), budget: 1) == sorted(keyed, budget: 1 << 30))
  }

  @Test(arguments: [0, 1, 2, 50, 2_000])
  func memoryAndDiskSortEqually(_ count: Int) throws {
    var generator = SeededGenerator(seed: UInt64(count) + 7)
    var records = (0..<count).map { _ in
      (
        key: (0..<Int.random(in: 0...6, using: &generator)).map { _ in UInt8.random(in: 0...3, using: &generator) },
        content: (0..<Int.random(in: 0...40, using: &generator)).map { _ in
          UInt8.random(in: .min ... .max, using: &generator)
        }
      )
    }
    let inMemory = try sorted(records, budget: 1 << 30)
    records.shuffle(using: &generator)
    #expect(inMemory.count == count)
    // The smaller budget is one record: there are so many runs that merged runs are merged again.
    for budget in [1_000, 20] { #expect(try sorted(records, budget: budget) == inMemory) }
    let keys = inMemory.map { Array($0.prefix { $0 != 0xFF }) }
    for (earlier, later) in zip(keys, keys.dropFirst()) { #expect(!later.lexicographicallyPrecedes(earlier)) }
  }

  @Test func anUnusableDirectoryIsNamed() throws {
    let sorter = SpillSorter(directory: "/nonexistent/directory", budget: 0)
    let error = #expect(throws: SpillSorter.Failure.self) { try sorter.add(key: [1], content: [2]) }
    #expect(error?.description.contains("/nonexistent/directory") == true)
    // TMPDIR moves temporary files only.
    #expect(error?.description.contains("TMPDIR") == false)
    #expect(error?.description.hasSuffix(", or write elsewhere: report.directory, or --out") == true)
    let temporary = SpillSorter.Failure(directory: NSTemporaryDirectory(), code: ENOSPC).description
    #expect(temporary.contains("set TMPDIR") && !temporary.contains("report.directory"), "\(temporary)")
  }
}
