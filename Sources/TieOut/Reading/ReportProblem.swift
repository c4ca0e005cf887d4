/// Why a report cannot be read. A file is read whole or not at all, because a partial sum is wrong.
/// Only payments are read line by line.
package struct ReportProblem: Error, Hashable, Sendable, CustomStringConvertible {
  /// From 1, including the header; nil for the whole file.
  package var line: Int?
  package var problem: String

  package init(line: Int? = nil, _ problem: String) { (self.line, self.problem) = (line, problem) }

  /// Without rows and without the end of its last line, a report may be cut within its header.
  static let cutHeader = ReportProblem("the report ends within its header line; download it again")

  package var description: String { line.map { "line \($0): \(problem)" } ?? problem }
}
