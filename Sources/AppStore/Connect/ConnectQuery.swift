import Foundation

/// Which report is asked for (Apple: "Download Sales and Trends Reports", "Download Finance Reports").
package struct ConnectQuery: Hashable, Sendable {
  package enum Kind: Hashable, Sendable {
    /// SALES SUMMARY.
    /// - Parameters:
    ///   - frequency: `DAILY`, `WEEKLY`, `MONTHLY` or `YEARLY`.
    ///   - version: such as `1_0`.
    case sales(frequency: String, version: String)
    /// - Parameters:
    ///   - type: `FINANCIAL` or `FINANCE_DETAIL`.
    ///   - region: `ZZ` for all of FINANCIAL in one file, `Z1` for FINANCE_DETAIL.
    case finance(type: String, region: String)
  }

  package var vendor: String
  package var kind: Kind
  /// A day, a month or a year of the calendar; of finance reports a fiscal year and period.
  package var reportDate: String

  package init(vendor: String, kind: Kind, reportDate: String) {
    self.vendor = vendor
    self.kind = kind
    self.reportDate = reportDate
  }

  /// Path and query, brackets and all percent-encoded.
  var path: String {
    let items: [(String, String)]
    let endpoint: String
    switch kind {
    case .sales(let frequency, let version):
      endpoint = "/v1/salesReports"
      items = [
        ("vendorNumber", vendor), ("reportType", "SALES"), ("reportSubType", "SUMMARY"), ("frequency", frequency),
        ("reportDate", reportDate), ("version", version),
      ]
    case .finance(let type, let region):
      endpoint = "/v1/financeReports"
      items = [("vendorNumber", vendor), ("reportType", type), ("regionCode", region), ("reportDate", reportDate)]
    }
    return endpoint + "?" + items.map { "filter%5B\($0)%5D=\(Self.escaped($1))" }.joined(separator: "&")
  }

  /// The same in another version; finance reports have none.
  func inVersion(_ version: String) -> ConnectQuery {
    guard case .sales(let frequency, _) = kind else { return self }
    var query = self
    query.kind = .sales(frequency: frequency, version: version)
    return query
  }

  private static func escaped(_ text: String) -> String {
    text.addingPercentEncoding(withAllowedCharacters: unreserved) ?? ""
  }

  /// RFC 3986, 2.3.
  private static let unreserved = CharacterSet(
    charactersIn: "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
}
