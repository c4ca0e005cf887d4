import Spreadsheet

/// The colours of the workbook. Words carry the same information.
enum Palette {
  static let navy = Colour(0x1F3864)
  static let blue = Colour(0x2F5597)
  static let paleBlue = Colour(0xDCE6F1)
  static let tile = Colour(0xF3F6FA)
  static let grey = Colour(0x595959)
  static let line = Colour(0xBFBFBF)
  static let white = Colour(0xFFFFFF)
  static let entry = Colour(0xFFF9E5)
  static let red = Colour(0x9C0006)
  static let paleRed = Colour(0xFFC7CE)
  static let orange = Colour(0x7F6000)
  static let paleOrange = Colour(0xFFE699)
  static let green = Colour(0x375623)
  static let paleGreen = Colour(0xE2EFDA)
}
