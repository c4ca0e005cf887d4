/// The parameters of one report (Apple: "Download Sales and Trends Reports", "Download Finance Reports").
package struct ConnectQuery: Hashable, Sendable {
  package enum Kind: Hashable, Sendable {
    /// A SALES SUMMARY report. The frequency is `DAILY`, `WEEKLY`, `MONTHLY` or `YEARLY`; the version is such as `1_0`.
    case sales(frequency: String, version: String)
    /// A finance report: `FINANCIAL` with region `ZZ` (all regions in one file), or `FINANCE_DETAIL` with `Z1`.
    case finance(type: String, region: String)
  }

  package var vendor: String
  package var kind: Kind
  /// A calendar day, month or year; for finance reports a fiscal year and period.
  package var reportDate: String

  package init(vendor: String, kind: Kind, reportDate: String) {
    (self.vendor, self.kind, self.reportDate) = (vendor, kind, reportDate)
  }

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
    return endpoint + "?" + items.map { "filter%5B\($0)%5D=\($1.percentEncoded)" }.joined(separator: "&")
  }

  func inVersion(_ version: String) -> ConnectQuery {
    guard case .sales(let frequency, _) = kind else { return self }
    var query = self
    query.kind = .sales(frequency: frequency, version: version)
    return query
  }
}
