import Reporting
import Run
import Spreadsheet

extension ReportError: RunEndingError {
  package var exitStatus: ExitStatus {
    switch self {
    case .cannotWrite, .workbook: .cannotWrite
    case .unbalanced: .internalError
    }
  }
}

extension WorkbookReadError: RunEndingError {
  package var exitStatus: ExitStatus { .usage }
}
