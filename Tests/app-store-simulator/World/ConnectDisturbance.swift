/// A fault of a report. nil leaves a property unchanged.
struct ConnectDisturbance: Decodable, Sendable {
  struct Failure: Decodable, Sendable {
    var status: Int
    var code: String
    var detail: String
  }

  var failure: Failure?
  /// `Content-Encoding`; `none` removes the header.
  var encoding: String?
  /// How often the text is compressed: 0, 1 or 2.
  var compressions: Int?
  var isCut: Bool?
  /// 64 MiB of spaces in 64 KiB.
  var isBomb: Bool?
  var isHeaderOnly: Bool?
  var extraColumn: String?
  var isReversed: Bool?
  var missingColumn: String?
  /// A space in each empty cell.
  var hasBlanks: Bool?
  /// An extra tab at the end of each row.
  var hasTrailingTab: Bool?
  var type: String?
  var hasZeroUnits: Bool?
  var hasCRLF: Bool?
  /// Makes FINANCIAL's totals wrong.
  var hasBadTotals: Bool?
  var version: String?
}
