import AppStore
import Reconciliation
import Run

package struct TieOutSettings: Sendable {
  package struct Connect: Sendable {
    package var credentials: ConnectCredentials
    package var vendors: [String]
    package var url: EndpointURL
    package var salesVersion: String

    package init(credentials: ConnectCredentials, vendors: [String], url: EndpointURL, salesVersion: String) {
      (self.credentials, self.vendors, self.url, self.salesVersion) = (credentials, vendors, url, salesVersion)
    }
  }

  package var connect: Connect?
  package var folder: String?
  package var zone: ReportZone
  package var trailingDays: Int
  /// How long raw files are kept; nil: forever.
  package var keepRaw: Reconciliation.Span?
  package var lookback: Reconciliation.Span
  /// Units of a product in a week from which a difference is a major finding.
  package var alertUnits: Int
  package var apps: [Scope.App]
  package var salesSchema: String
  package var timeout: Reconciliation.Span

  package init(
    connect: Connect?, folder: String?, zone: ReportZone, trailingDays: Int, keepRaw: Reconciliation.Span?,
    lookback: Reconciliation.Span, alertUnits: Int, apps: [Scope.App], salesSchema: String, timeout: Reconciliation.Span
  ) {
    (self.connect, self.folder, self.zone, self.trailingDays) = (connect, folder, zone, trailingDays)
    (self.keepRaw, self.lookback, self.alertUnits, self.apps) = (keepRaw, lookback, alertUnits, apps)
    (self.salesSchema, self.timeout) = (salesSchema, timeout)
  }
}
