import CXLSXWriter

package struct Colour: Hashable, Sendable {
  package let rgb: UInt32

  package init(_ rgb: UInt32) { self.rgb = rgb & 0xFF_FFFF }

  // The library takes 0 for "unset", and has another value for black.
  var value: lxw_color_t { rgb == 0 ? lxw_color_t(LXW_COLOR_BLACK.rawValue) : rgb }
}

/// The appearance of a cell, as a value; ``Workbook/addFormat(_:)`` converts it to a format.
package struct CellStyle: Hashable, Sendable {
  package enum Line: Sendable { case none, thin, medium, hair }

  package enum HorizontalAlignment: Sendable { case general, left, centre, right }

  package enum VerticalAlignment: Sendable { case bottom, centre, top }

  package struct Borders: Hashable, Sendable {
    package var top: Line
    package var bottom: Line
    package var left: Line
    package var right: Line
    package var colour: Colour?

    package init(
      top: Line = .none, bottom: Line = .none, left: Line = .none, right: Line = .none, colour: Colour? = nil
    ) {
      (self.top, self.bottom, self.left, self.right, self.colour) = (top, bottom, left, right, colour)
    }
  }

  /// A number format of Excel, such as `#,##0.00`; at most 127 bytes. nil: General.
  package var numberFormat: String?
  package var isBold = false
  /// In points; nil: 11.
  package var fontSize: Double?
  package var fontColour: Colour?
  package var background: Colour?
  package var borders = Borders()
  package var horizontal = HorizontalAlignment.general
  package var vertical = VerticalAlignment.bottom
  package var wraps = false
  package var shrinks = false
  /// Steps of about three spaces, 0...15.
  package var indent = 0
  /// Blue and underlined, by Excel's own style for hyperlinks.
  package var isHyperlink = false
  /// True if a protected sheet refuses changes, as is Excel's default.
  package var isLocked = true

  package init() {}

  package init(_ change: (inout CellStyle) -> Void) {
    self.init()
    change(&self)
  }

  func check() throws(SpreadsheetError) {
    let operation: StaticString = "add format"
    try OwnText.check(numberFormat ?? "", limit: 127, bytes: 127, operation)
    guard (0...15).contains(indent), (1...409).contains(fontSize ?? 11) else {
      throw SpreadsheetError(.parameterNotAllowed, operation)
    }
  }

  func apply(to format: UnsafeMutablePointer<lxw_format>) {
    if let numberFormat { unsafe format_set_num_format(format, numberFormat) }
    // First, because it sets underline and the theme's colour, which a font colour replaces.
    if isHyperlink { unsafe format_set_hyperlink(format) }
    if isBold { unsafe format_set_bold(format) }
    if let fontSize { unsafe format_set_font_size(format, fontSize) }
    if let fontColour { unsafe format_set_font_color(format, fontColour.value) }
    if let background { unsafe format_set_bg_color(format, background.value) }
    unsafe format_set_top(format, borders.top.style)
    unsafe format_set_bottom(format, borders.bottom.style)
    unsafe format_set_left(format, borders.left.style)
    unsafe format_set_right(format, borders.right.style)
    if let colour = borders.colour { unsafe format_set_border_color(format, colour.value) }
    if let alignment = horizontal.alignment { unsafe format_set_align(format, alignment) }
    if let alignment = vertical.alignment { unsafe format_set_align(format, alignment) }
    if wraps { unsafe format_set_text_wrap(format) }
    if shrinks { unsafe format_set_shrink(format) }
    if indent > 0 { unsafe format_set_indent(format, UInt8(indent)) }
    if !isLocked { unsafe format_set_unlocked(format) }
  }
}

extension CellStyle.Line {
  fileprivate var style: UInt8 {
    let border =
      switch self {
      case .none: LXW_BORDER_NONE
      case .thin: LXW_BORDER_THIN
      case .medium: LXW_BORDER_MEDIUM
      case .hair: LXW_BORDER_HAIR
      }
    return UInt8(border.rawValue)
  }
}

extension CellStyle.HorizontalAlignment {
  fileprivate var alignment: UInt8? {
    switch self {
    case .general: nil
    case .left: UInt8(LXW_ALIGN_LEFT.rawValue)
    case .centre: UInt8(LXW_ALIGN_CENTER.rawValue)
    case .right: UInt8(LXW_ALIGN_RIGHT.rawValue)
    }
  }
}

extension CellStyle.VerticalAlignment {
  fileprivate var alignment: UInt8? {
    switch self {
    case .bottom: nil
    case .centre: UInt8(LXW_ALIGN_VERTICAL_CENTER.rawValue)
    case .top: UInt8(LXW_ALIGN_VERTICAL_TOP.rawValue)
    }
  }
}
