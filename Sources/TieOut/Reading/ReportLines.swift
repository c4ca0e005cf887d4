import Gzip
import Reconciliation

/// The lines of a report, compressed or not, as a stream in constant memory.
package enum ReportLines {
  private static let longestLine = 1 << 20
  private static let newline = UInt8(ascii: "\n")

  /// Reads every line with its number, ended by LF or CRLF. Skips empty lines and a byte order mark.
  package static func read(
    _ bytes: [UInt8], limit: Int = Gunzip.usualLimit, _ body: (UnsafeRawBufferPointer, Int) throws -> Void
  ) throws {
    var number = 0
    var rest: [UInt8] = []
    func handOn(_ line: UnsafeRawBufferPointer) throws {
      number += 1
      var line = line
      if line.last == UInt8(ascii: "\r") { line = UnsafeRawBufferPointer(rebasing: line.dropLast()) }
      if number == 1, line.starts(with: [0xEF, 0xBB, 0xBF]) {
        line = UnsafeRawBufferPointer(rebasing: line.dropFirst(3))
      }
      if !line.isEmpty { try body(line, number) }
    }
    func take(_ chunk: UnsafeRawBufferPointer) throws {
      var start = 0
      while let end = chunk[start...].firstIndex(of: newline) {
        let piece = UnsafeRawBufferPointer(rebasing: chunk[start..<end])
        if rest.isEmpty {
          try handOn(piece)
        } else {
          rest += piece
          try rest.withUnsafeBytes { try handOn($0) }
          rest.removeAll(keepingCapacity: true)
        }
        start = end + 1
      }
      rest += chunk[start...]
      if rest.count > longestLine { throw ReportProblem(line: number + 1, "is longer than any line of Apple's") }
    }
    let gunzip = Gunzip(limit: limit)
    try bytes.withUnsafeBytes { bytes in
      // In pieces, so that a plain file is streamed too.
      var start = 0
      while start < bytes.count {
        let end = min(start + (1 << 18), bytes.count)
        try gunzip.push(UnsafeRawBufferPointer(rebasing: bytes[start..<end]), to: take)
        start = end
      }
    }
    try gunzip.finish(to: take)
    if !rest.isEmpty { try rest.withUnsafeBytes { try handOn($0) } }
  }
}

/// A line of tab-separated values; must not outlive the line's bytes.
struct ReportFields {
  private let line: UnsafeRawBufferPointer
  private let number: Int
  private let ends: [Int]

  /// - Parameter ends: a buffer reused for all lines, to avoid allocations.
  init(_ line: UnsafeRawBufferPointer, number: Int, ends: inout [Int]) {
    ends.removeAll(keepingCapacity: true)
    for index in line.indices where line[index] == UInt8(ascii: "\t") { ends.append(index) }
    ends.append(line.count)
    (self.line, self.number, self.ends) = (line, number, ends)
  }

  var count: Int { ends.count }

  /// The field without surrounding spaces; empty beyond the last one, which Apple often leaves out.
  subscript(_ column: Int) -> UnsafeRawBufferPointer {
    guard column < ends.count else { return UnsafeRawBufferPointer(start: nil, count: 0) }
    var (start, end) = (column == 0 ? 0 : ends[column - 1] + 1, ends[column])
    while start < end, line[start] == UInt8(ascii: " ") { start += 1 }
    while end > start, line[end - 1] == UInt8(ascii: " ") { end -= 1 }
    return UnsafeRawBufferPointer(rebasing: line[start..<end])
  }

  func shown(_ column: Int) -> String { String(decoding: self[column].prefix(80), as: UTF8.self) }

  func problem(_ column: ReportColumn, _ expected: String) -> ReportProblem {
    ReportProblem(line: number, "\(column.name) is “\(shown(column.position))”, expected \(expected)")
  }

  func decimal(_ column: ReportColumn) throws(ReportProblem) -> Millionths {
    guard let value = Millionths(utf8: self[column.position]) else { throw problem(column, "a decimal number") }
    return value
  }

  func day(_ column: ReportColumn) throws(ReportProblem) -> ReportDay {
    guard let day = ReportDay(utf8: self[column.position]) else { throw problem(column, "a date such as 11/19/2026") }
    return day
  }
}
