import Glibc
import Reconciliation
import Spreadsheet

/// Why a report failed. The caller removes the staging directory.
package enum ReportError: Error, Equatable {
  /// `systemError` is `errno`.
  case cannotWrite(file: String, systemError: Int32)
  case workbook(SpreadsheetError)
  /// Control totals disagree: a defect of the program. The report must not be published.
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

func inWorkbook<Result: ~Copyable>(_ calls: () throws(SpreadsheetError) -> Result) throws(ReportError) -> Result {
  do {
    return try calls()
  } catch {
    throw ReportError.workbook(error)
  }
}
