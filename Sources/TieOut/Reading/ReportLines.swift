import Gzip
import Reconciliation

/// The lines of a report, compressed or not, as a stream in constant memory.
package enum ReportLines {
  private static let longestLine = 1 << 20
  private static let newline = UInt8(ascii: "\n")
  private static let carriageReturn = UInt8(ascii: "\r")

  /// Why a spreadsheet's “Unicode text” is not read.
  static let inUTF16 = ReportProblem("is text in UTF-16; save it as UTF-8, or download it again")

  /// Reads every line with its number, ended by LF or CRLF. Skips empty lines and a byte order mark. Returns whether
  /// the last line has its end.
  @discardableResult
  package static func read(
    _ bytes: [UInt8], limit: Int = Gunzip.usualLimit, _ body: (UnsafeRawBufferPointer, Int) throws -> Void
  ) throws -> Bool {
    var number = 0
    var rest: [UInt8] = []
    func handOn(_ line: UnsafeRawBufferPointer) throws {
      number += 1
      var line = line
      if line.last == carriageReturn { line = UnsafeRawBufferPointer(rebasing: line.dropLast()) }
      if number == 1, line.starts(with: [0xEF, 0xBB, 0xBF]) {
        line = UnsafeRawBufferPointer(rebasing: line.dropFirst(3))
      }
      if number == 1, line.starts(with: [0xFF, 0xFE]) || line.starts(with: [0xFE, 0xFF]) { throw inUTF16 }
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
    if rest.isEmpty { return true }
    try rest.withUnsafeBytes { try handOn($0) }
    return false
  }

  /// True for bytes that no line of a report has.
  ///
  /// Postgres cannot store NUL. If lines end with CR alone, the text is one line, and its rows would be lost.
  static func isForeign(_ byte: UInt8) -> Bool { byte == 0 || byte == carriageReturn }

  static func foreignByte(in line: Int) -> ReportProblem {
    ReportProblem(line: line, "has a NUL byte, or a carriage return before its end; download the file again")
  }
}

/// A line of tab-separated values; must not outlive the line's bytes.
struct ReportFields {
  private let line: UnsafeRawBufferPointer
  private let number: Int
  private let ends: [Int]

  /// - Parameter ends: a buffer reused for all lines, to avoid allocations.
  init(_ line: UnsafeRawBufferPointer, number: Int, ends: inout [Int]) throws(ReportProblem) {
    ends.removeAll(keepingCapacity: true)
    for index in line.indices {
      let byte = line[index]
      if byte == UInt8(ascii: "\t") { ends.append(index) }
      if ReportLines.isForeign(byte) { throw ReportLines.foreignByte(in: number) }
    }
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
