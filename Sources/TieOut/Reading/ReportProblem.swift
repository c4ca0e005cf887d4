/// Why a report cannot be read. A file is read as a whole or not at all: part of a sum is no sum.
package struct ReportProblem: Error, Hashable, Sendable, CustomStringConvertible {
  /// Counted from 1, the header included; nil when it is about the whole file.
  package var line: Int?
  package var problem: String

  package init(line: Int? = nil, _ problem: String) {
    self.line = line
    self.problem = problem
  }

  package var description: String { line.map { "line \($0): \(problem)" } ?? problem }
}
