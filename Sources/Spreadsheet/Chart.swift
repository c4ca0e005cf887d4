import CXLSXWriter

/// A chart of one series over cells of the same workbook, without a legend. Its texts are the program's own, at most
/// 255 characters.
package struct Chart: Sendable {
  package enum Kind: Sendable {
    /// `bar` is horizontal, its first category on top, with each number at the end of its bar.
    case column, bar, line
  }

  package let kind: Kind
  package let title: String
  package let name: String
  package let categories: SheetRange
  package let values: SheetRange
  package let colour: Colour
  package var valueFormat: String?
  /// The start of the value axis; nil: chosen by Excel, which makes small changes look large.
  package var valueMinimum: Double?
  /// In pixels at 96 per inch, 50...10,000.
  package var width = 480
  package var height = 288
  package var description: String?

  package init(
    _ kind: Kind, title: String, series name: String, categories: SheetRange, values: SheetRange, colour: Colour
  ) {
    (self.kind, self.title, self.name) = (kind, title, name)
    (self.categories, self.values, self.colour) = (categories, values, colour)
  }
}

extension Chart {
  func check() throws(SpreadsheetError) {
    let operation: StaticString = "add chart"
    let sizes = 50...10_000
    guard sizes.contains(width), sizes.contains(height) else { throw SpreadsheetError(.parameterNotAllowed, operation) }
    for text in [name, title, valueFormat, description].compactMap(\.self) {
      try OwnText.check(text, limit: 255, operation)
      // The library would take it for a cell reference.
      guard !text.hasPrefix("=") else { throw SpreadsheetError(.parameterNotAllowed, operation) }
    }
    for place in [categories, values] {
      guard place.sheet.isAllowed else { throw SpreadsheetError(.nameNotAllowed, operation) }
      guard place.range.isOnSheet else { throw SpreadsheetError(.outOfRange, operation) }
    }
  }

  func fill(_ chart: UnsafeMutablePointer<lxw_chart>) throws(SpreadsheetError) {
    guard let series = unsafe chart_add_series(chart, nil, nil) else {
      throw SpreadsheetError(.outOfMemory, "add chart")
    }
    unsafe chart_series_set_name(series, name)
    let (categories, values) = (categories.range, values.range)
    unsafe chart_series_set_categories(
      series, self.categories.sheet.description,
      lxw_row_t(categories.rows.lowerBound), lxw_col_t(categories.columns.lowerBound),
      lxw_row_t(categories.rows.upperBound), lxw_col_t(categories.columns.upperBound))
    unsafe chart_series_set_values(
      series, self.values.sheet.description, lxw_row_t(values.rows.lowerBound), lxw_col_t(values.columns.lowerBound),
      lxw_row_t(values.rows.upperBound), lxw_col_t(values.columns.upperBound))
    var font = unsafe lxw_chart_font()
    unsafe font.size = 12
    unsafe font.bold = 1
    unsafe chart_title_set_name(chart, title)
    unsafe chart_title_set_name_font(chart, &font)
    unsafe chart_legend_set_position(chart, UInt8(LXW_CHART_LEGEND_NONE.rawValue))
    var fill = lxw_chart_fill()
    fill.color = colour.value
    switch kind {
    case .bar:
      // The library swaps the axes of a bar chart: its y axis has the categories.
      unsafe chart_axis_set_reverse(chart.pointee.y_axis)
      // The numbers at the bars make the axis and its gridlines unnecessary.
      unsafe chart_axis_off(chart.pointee.x_axis)
      unsafe chart_axis_major_gridlines_set_visible(chart.pointee.x_axis, 0)
      unsafe chart_set_series_gap(chart, 40)
      unsafe chart_series_set_labels(series)
    case .column, .line:
      if let valueFormat { unsafe chart_axis_set_num_format(chart.pointee.y_axis, valueFormat) }
      if let valueMinimum { unsafe chart_axis_set_min(chart.pointee.y_axis, valueMinimum) }
      // Beside the axis the labels would overlap negative columns.
      unsafe chart_axis_set_label_position(chart.pointee.x_axis, UInt8(LXW_CHART_AXIS_LABEL_POSITION_LOW.rawValue))
    }
    guard kind == .line else { return unsafe chart_series_set_fill(series, &fill) }
    // Without markers a line of a single point would be invisible.
    unsafe chart_series_set_marker_type(series, UInt8(LXW_CHART_MARKER_CIRCLE.rawValue))
    unsafe chart_series_set_marker_size(series, 5)
    var line = lxw_chart_line()
    line.color = colour.value
    line.width = 2
    unsafe chart_series_set_line(series, &line)
    unsafe chart_series_set_marker_fill(series, &fill)
    unsafe chart_series_set_marker_line(series, &line)
  }
}

extension Chart.Kind {
  var type: UInt8 {
    let type =
      switch self {
      case .column: LXW_CHART_COLUMN
      case .bar: LXW_CHART_BAR
      case .line: LXW_CHART_LINE
      }
    return UInt8(type.rawValue)
  }
}

extension Sheet {
  func insert(
    _ chart: UnsafeMutablePointer<lxw_chart>, _ options: Chart, row: Int, column: Int
  ) throws(SpreadsheetError) {
    let operation: StaticString = "add chart"
    let cell = try cell(row, column, operation)
    var strings = CStrings()
    var place = unsafe lxw_chart_options()
    // The library scales a size of 480 by 288.
    unsafe place.x_scale = Double(options.width) / 480
    unsafe place.y_scale = Double(options.height) / 288
    unsafe na_set_description(&place, strings.copy(options.description))
    try check(
      unsafe worksheet_insert_chart_opt(worksheet, cell.row, cell.column, chart, &place), operation, row, column)
  }
}
