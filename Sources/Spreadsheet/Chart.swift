import CXLSXWriter

/// A chart over cells of the same workbook. Its texts are the program's own, at most 255 characters.
package struct Chart: Sendable {
  package enum Kind: Sendable {
    /// `bar` is horizontal, its first category on top, with each number at the end of its bar.
    case column, stackedColumn, bar, line, pie
  }

  package enum Legend: Sendable {
    case none, right, bottom
  }

  package struct Series: Sendable {
    package var name: String
    package var categories: SheetRange
    package var values: SheetRange
    /// nil: Excel's own colour. Ignored in a pie.
    package var colour: Colour?

    package init(name: String, categories: SheetRange, values: SheetRange, colour: Colour? = nil) {
      self.name = name
      self.categories = categories
      self.values = values
      self.colour = colour
    }
  }

  package let kind: Kind
  /// At least one.
  package var series: [Series]
  package var title: String?
  package var categoryAxis: String?
  package var valueAxis: String?
  package var valueFormat: String?
  /// The start of the value axis; nil: chosen by Excel, which makes small changes look large.
  package var valueMinimum: Double?
  package var legend = Legend.right
  /// In pixels at 96 per inch, 50...10,000.
  package var width = 480
  package var height = 288
  package var description: String?

  package init(_ kind: Kind, series: [Series]) {
    self.kind = kind
    self.series = series
  }
}

struct ChartOptions {
  let horizontalScale: Double
  let verticalScale: Double
  let description: String?
}

extension Chart {
  var options: ChartOptions {
    // The library scales a size of 480 by 288.
    ChartOptions(
      horizontalScale: Double(width) / 480, verticalScale: Double(height) / 288, description: description)
  }

  func check() throws(SpreadsheetError) {
    let operation: StaticString = "add chart"
    let sizes = 50...10_000
    guard !series.isEmpty, sizes.contains(width), sizes.contains(height) else {
      throw SpreadsheetError(.parameterNotAllowed, operation)
    }
    for text in series.map(\.name) + [title, categoryAxis, valueAxis, valueFormat, description].compactMap(\.self) {
      try OwnText.check(text, limit: 255, operation)
      // The library would take it for a cell reference.
      guard !text.hasPrefix("=") else { throw SpreadsheetError(.parameterNotAllowed, operation) }
    }
    for place in series.flatMap({ [$0.categories, $0.values] }) {
      guard place.sheet.isAllowed else { throw SpreadsheetError(.nameNotAllowed, operation) }
      guard place.range.isOnSheet else { throw SpreadsheetError(.outOfRange, operation) }
    }
  }

  func fill(_ chart: UnsafeMutablePointer<lxw_chart>) throws(SpreadsheetError) {
    for item in series {
      guard let pointer = unsafe chart_add_series(chart, nil, nil) else {
        throw SpreadsheetError(.outOfMemory, "add chart")
      }
      unsafe fill(pointer, from: item)
    }
    if let title {
      var font = unsafe lxw_chart_font()
      unsafe font.size = 12
      unsafe font.bold = 1
      unsafe chart_title_set_name(chart, title)
      unsafe chart_title_set_name_font(chart, &font)
    } else {
      unsafe chart_title_off(chart)
    }
    switch kind {
    case .pie: break
    case .bar:
      // The library swaps the axes of a bar chart: its y axis has the categories.
      if let categoryAxis { unsafe chart_axis_set_name(chart.pointee.y_axis, categoryAxis) }
      unsafe chart_axis_set_reverse(chart.pointee.y_axis)
      // The numbers at the bars make the axis and its gridlines unnecessary.
      unsafe chart_axis_off(chart.pointee.x_axis)
      unsafe chart_axis_major_gridlines_set_visible(chart.pointee.x_axis, 0)
    case .column, .stackedColumn, .line:
      if let categoryAxis { unsafe chart_axis_set_name(chart.pointee.x_axis, categoryAxis) }
      if let valueAxis { unsafe chart_axis_set_name(chart.pointee.y_axis, valueAxis) }
      if let valueFormat { unsafe chart_axis_set_num_format(chart.pointee.y_axis, valueFormat) }
      if let valueMinimum { unsafe chart_axis_set_min(chart.pointee.y_axis, valueMinimum) }
      // Beside the axis the labels would overlap negative columns.
      unsafe chart_axis_set_label_position(chart.pointee.x_axis, UInt8(LXW_CHART_AXIS_LABEL_POSITION_LOW.rawValue))
    }
    unsafe chart_legend_set_position(chart, legend.position)
    if kind == .bar { unsafe chart_set_series_gap(chart, 40) }
  }

  private func fill(_ pointer: UnsafeMutablePointer<lxw_chart_series>, from item: Series) {
    unsafe chart_series_set_name(pointer, item.name)
    let categories = item.categories.range
    unsafe chart_series_set_categories(
      pointer, item.categories.sheet.description,
      lxw_row_t(categories.rows.lowerBound), lxw_col_t(categories.columns.lowerBound),
      lxw_row_t(categories.rows.upperBound), lxw_col_t(categories.columns.upperBound))
    let values = item.values.range
    unsafe chart_series_set_values(
      pointer, item.values.sheet.description,
      lxw_row_t(values.rows.lowerBound), lxw_col_t(values.columns.lowerBound),
      lxw_row_t(values.rows.upperBound), lxw_col_t(values.columns.upperBound))
    if kind == .bar {
      unsafe chart_series_set_labels(pointer)
    }
    // Without markers a line of a single point would be invisible.
    if kind == .line {
      unsafe chart_series_set_marker_type(pointer, UInt8(LXW_CHART_MARKER_CIRCLE.rawValue))
      unsafe chart_series_set_marker_size(pointer, 5)
    }
    guard let colour = item.colour else { return }
    switch kind {
    case .line:
      var line = lxw_chart_line()
      line.color = colour.value
      line.width = 2
      unsafe chart_series_set_line(pointer, &line)
      var fill = lxw_chart_fill()
      fill.color = colour.value
      unsafe chart_series_set_marker_fill(pointer, &fill)
      unsafe chart_series_set_marker_line(pointer, &line)
    case .column, .stackedColumn, .bar, .pie:
      var fill = lxw_chart_fill()
      fill.color = colour.value
      unsafe chart_series_set_fill(pointer, &fill)
    }
  }
}

extension Chart.Kind {
  var type: UInt8 {
    let type =
      switch self {
      case .column: LXW_CHART_COLUMN
      case .stackedColumn: LXW_CHART_COLUMN_STACKED
      case .bar: LXW_CHART_BAR
      case .line: LXW_CHART_LINE
      case .pie: LXW_CHART_PIE
      }
    return UInt8(type.rawValue)
  }
}

extension Chart.Legend {
  fileprivate var position: UInt8 {
    let position =
      switch self {
      case .none: LXW_CHART_LEGEND_NONE
      case .right: LXW_CHART_LEGEND_RIGHT
      case .bottom: LXW_CHART_LEGEND_BOTTOM
      }
    return UInt8(position.rawValue)
  }
}

extension Sheet {
  func insert(
    _ chart: UnsafeMutablePointer<lxw_chart>, _ options: ChartOptions, row: Int, column: Int
  ) throws(SpreadsheetError) {
    let operation: StaticString = "add chart"
    let cell = try cell(row, column, operation)
    var strings = CStrings()
    var place = unsafe lxw_chart_options()
    unsafe place.x_scale = options.horizontalScale
    unsafe place.y_scale = options.verticalScale
    unsafe na_set_description(&place, strings.copy(options.description))
    try check(
      unsafe worksheet_insert_chart_opt(worksheet, cell.row, cell.column, chart, &place), operation, row, column)
  }
}
