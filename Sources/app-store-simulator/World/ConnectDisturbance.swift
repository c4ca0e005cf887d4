/// One way for a report to be other than Apple's usual ones. What is absent stays as it is.
struct ConnectDisturbance: Decodable, Sendable {
  /// An error of the App Store Connect API instead of the report.
  struct Failure: Decodable, Sendable {
    var status: Int
    var code: String
    var detail: String
  }

  var failure: Failure?
  /// `Content-Encoding`; `none` for no such header.
  var encoding: String?
  /// How often the text is compressed: 0, 1 or 2.
  var compressions: Int?
  /// The last bytes are missing.
  var isCut: Bool?
  /// 64 MiB of blanks in 64 KiB.
  var isBomb: Bool?
  var isHeaderOnly: Bool?
  var extraColumn: String?
  /// Columns in the opposite order.
  var isReversed: Bool?
  var missingColumn: String?
  /// One space instead of nothing in each blank cell.
  var hasBlanks: Bool?
  /// One more tab at the end of each row.
  var hasTrailingTab: Bool?
  /// In the place of every product type.
  var type: String?
  /// The first row has no units.
  var hasZeroUnits: Bool?
  var hasCRLF: Bool?
  /// FINANCE_DETAIL's sums by country below its rows.
  var hasSecondBlock: Bool?
  /// FINANCIAL's totals below its rows are wrong.
  var hasBadTotals: Bool?
  /// Any other version than this is refused.
  var version: String?
}
