import CXLSXWriter

/// A conditional format. Its cell formats have no font size and no alignment.
package enum ConditionalFormat {
  package enum Comparison: Sendable { case greater, less }

  /// Cells with exactly this text, at most 255 characters, regardless of case.
  case text(equals: String, CellFormat)
  case number(Comparison, Double, CellFormat)
  /// A formula for the range's upper left cell; relative references move with the cell.
  case formula(Formula, CellFormat)
}

extension Sheet {
  /// Adds a drop-down list, and rejects other input. Excel stores the list in one string of at most 255 characters,
  /// commas included. The library's buffer has 255 bytes but it counts characters, so the limit here is in bytes.
  package func addChoice(of values: [String], in range: CellRange) throws(SpreadsheetError) {
    let operation: StaticString = "add choice"
    let area = try area(range, operation)
    let list = values.joined(separator: ",")
    try located { () throws(SpreadsheetError) in try OwnText.check(list, limit: 255, bytes: 255, operation) }
    guard !values.isEmpty, values.allSatisfy({ !$0.isEmpty && !$0.contains(",") && !$0.contains("\"") }) else {
      throw failure(.parameterNotAllowed, operation)
    }
    var strings = CStrings()
    var pointers: [UnsafeMutablePointer<CChar>?] = unsafe []
    for value in values { unsafe pointers.append(strings.copy(value)) }
    unsafe pointers.append(nil)
    let result = unsafe pointers.withUnsafeMutableBufferPointer { list in
      var validation = unsafe lxw_data_validation()
      unsafe validation.validate = UInt8(LXW_VALIDATION_TYPE_LIST.rawValue)
      unsafe na_set_list(&validation, list.baseAddress)
      return unsafe worksheet_data_validation_range(
        worksheet, area.firstRow, area.firstColumn, area.lastRow, area.lastColumn, &validation)
    }
    try check(result, operation)
  }

  package func addDayEntry(in range: CellRange) throws(SpreadsheetError) {
    let operation: StaticString = "add day entry"
    let area = try area(range, operation)
    var validation = unsafe lxw_data_validation()
    unsafe validation.validate = UInt8(LXW_VALIDATION_TYPE_DATE.rawValue)
    unsafe validation.criteria = UInt8(LXW_VALIDATION_CRITERIA_GREATER_THAN_OR_EQUAL_TO.rawValue)
    unsafe validation.value_datetime = lxw_datetime(year: 2000, month: 1, day: 1, hour: 0, min: 0, sec: 0)
    let result = unsafe worksheet_data_validation_range(
      worksheet, area.firstRow, area.firstColumn, area.lastRow, area.lastColumn, &validation)
    try check(result, operation)
  }

  /// Rejects all input; sorting still moves the cells. The title has at most 32 characters, the message 255.
  package func refuseEntry(in range: CellRange, title: StaticString, message: StaticString) throws(SpreadsheetError) {
    let operation: StaticString = "refuse entry"
    let area = try area(range, operation)
    var strings = CStrings()
    var validation = unsafe lxw_data_validation()
    unsafe validation.validate = UInt8(LXW_VALIDATION_TYPE_CUSTOM_FORMULA.rawValue)
    unsafe validation.value_formula = strings.copy("=FALSE")
    unsafe validation.error_title = strings.copy(title.description)
    unsafe validation.error_message = strings.copy(message.description)
    let result = unsafe worksheet_data_validation_range(
      worksheet, area.firstRow, area.firstColumn, area.lastRow, area.lastColumn, &validation)
    try check(result, operation)
  }

  /// Suppresses Excel's mark for numbers stored as text. A second call replaces the ranges of the first.
  package func ignoreNumbersAsText(in ranges: [CellRange]) throws(SpreadsheetError) {
    let operation: StaticString = "ignore numbers as text"
    try ensureOpen(operation)
    guard !ranges.isEmpty else { return }
    for range in ranges { _ = try area(range, operation) }
    try check(
      unsafe worksheet_ignore_errors(
        worksheet, UInt8(LXW_IGNORE_NUMBER_STORED_AS_TEXT.rawValue), ranges.map(\.a1).joined(separator: " ")),
      operation)
  }

  /// Adds a rule for the cells of the range; of contradicting rules the first wins.
  package func addConditionalFormat(_ rule: ConditionalFormat, in range: CellRange) throws(SpreadsheetError) {
    let operation: StaticString = "add conditional format"
    let area = try area(range, operation)
    var strings = CStrings()
    var options = unsafe lxw_conditional_format()
    switch rule {
    case .text(let text, let format):
      try located { () throws(SpreadsheetError) in try OwnText.check(text, limit: 255, operation) }
      unsafe options.type = UInt8(LXW_CONDITIONAL_TYPE_CELL.rawValue)
      unsafe options.criteria = UInt8(LXW_CONDITIONAL_CRITERIA_EQUAL_TO.rawValue)
      unsafe na_set_value(&options, strings.copy("\"\(text.replacing("\"", with: "\"\""))\""))
      unsafe options.format = try pointer(format, operation)
    case .number(let comparison, let number, let format):
      guard number.isFinite else { throw failure(.notFinite, operation) }
      unsafe options.type = UInt8(LXW_CONDITIONAL_TYPE_CELL.rawValue)
      unsafe options.criteria = comparison.criterion
      unsafe options.value = number
      unsafe options.format = try pointer(format, operation)
    case .formula(let formula, let format):
      guard formula.text.utf16.count <= 8_192 else { throw failure(.textTooLong, operation) }
      unsafe options.type = UInt8(LXW_CONDITIONAL_TYPE_FORMULA.rawValue)
      unsafe na_set_value(&options, strings.copy("=\(formula.text)"))
      unsafe options.format = try pointer(format, operation)
    }
    try check(
      unsafe worksheet_conditional_format_range(
        worksheet, area.firstRow, area.firstColumn, area.lastRow, area.lastColumn, &options), operation)
  }
}

extension ConditionalFormat.Comparison {
  fileprivate var criterion: UInt8 {
    let criterion =
      switch self {
      case .greater: LXW_CONDITIONAL_CRITERIA_GREATER_THAN
      case .less: LXW_CONDITIONAL_CRITERIA_LESS_THAN
      }
    return UInt8(criterion.rawValue)
  }
}
