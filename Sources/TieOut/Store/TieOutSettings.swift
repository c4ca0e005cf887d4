import AppStore
import Reconciliation
import Run

/// What the tie-out is configured with.
package struct TieOutSettings: Sendable {
  /// A key for the App Store Connect API, and where it is asked.
  package struct Connect: Sendable {
    package var credentials: ConnectCredentials
    package var vendors: [String]
    package var url: EndpointURL
    /// `1_0`
    package var salesVersion: String

    package init(credentials: ConnectCredentials, vendors: [String], url: EndpointURL, salesVersion: String) {
      self.credentials = credentials
      self.vendors = vendors
      self.url = url
      self.salesVersion = salesVersion
    }
  }

  package var connect: Connect?
  /// Files that somebody drops in.
  package var folder: String?
  package var zone: ReportZone
  package var trailingDays: Int
  /// Raw files are kept for so long; nil: for ever.
  package var keepRaw: Reconciliation.Span?
  /// Weeks are compared for as long as orders are looked at.
  package var lookback: Reconciliation.Span
  /// From so many units of a product in a week a difference is a major finding.
  package var alertUnits: Int
  package var apps: [Scope.App]
  package var salesSchema: String
  package var timeout: Reconciliation.Span

  package init(
    connect: Connect?, folder: String?, zone: ReportZone, trailingDays: Int, keepRaw: Reconciliation.Span?,
    lookback: Reconciliation.Span, alertUnits: Int, apps: [Scope.App], salesSchema: String, timeout: Reconciliation.Span
  ) {
    self.connect = connect
    self.folder = folder
    self.zone = zone
    self.trailingDays = trailingDays
    self.keepRaw = keepRaw
    self.lookback = lookback
    self.alertUnits = alertUnits
    self.apps = apps
    self.salesSchema = salesSchema
    self.timeout = timeout
  }
}
