import Glibc
import Reconciliation
import Spreadsheet

/// Why there is no report. What was written until then is in the staging directory, which the caller removes.
package enum ReportError: Error, Equatable {
  /// A file could not be created, written or brought to disk; `systemError` is the call's `errno`.
  case cannotWrite(file: String, systemError: Int32)
  /// The workbook could not be made or written.
  case workbook(SpreadsheetError)
  /// Sums that must agree do not: a defect of the program. Nothing may be published.
  case unbalanced([ControlTotal])
}

extension ReportError: CustomStringConvertible {
  private static let remedy =
    "; check the free space and the owner of the folder that reports go to: report.directory, or --out"

  package var description: String {
    switch self {
    case .cannotWrite(let file, let systemError):
      "cannot write \(file): \(String(cString: strerror(systemError)))\(ReportError.remedy)"
    case .workbook(let error):
      "cannot write the workbook: \(error)\(error.systemError == nil ? "" : ReportError.remedy)"
    case .unbalanced(let totals):
      "control totals do not balance, nothing is published: "
        + totals.map { "\($0.name): \($0.left) is not \($0.right)" }.joined(separator: "; ")
    }
  }
}

/// Runs calls of the workbook's, and gives their error a place among the report's.
func inWorkbook<Result: ~Copyable>(_ calls: () throws(SpreadsheetError) -> Result) throws(ReportError) -> Result {
  do {
    return try calls()
  } catch {
    throw ReportError.workbook(error)
  }
}
