import AppStore
import Reconciliation
import Run

/// One app whose side at Apple is swept, and how Apple is asked about it. Each question is about one
/// page, which is stored as soon as it has come.
package struct SweptApp: Sendable {
  /// The section's name in the configuration.
  package var name: String
  package var bundleId: String
  /// A page of Get Notification History; throws only when the task is cancelled.
  package var notifications:
    @Sendable (_ query: NotificationQuery, _ paginationToken: String?) async throws(CancellationError)
      -> NotificationAnswer
  /// A page of Get Transaction History for the customer of a transaction; throws only when the task is cancelled.
  package var history:
    @Sendable (_ transactionId: String, _ revision: String?) async throws(CancellationError) -> HistoryAnswer
  /// Makes the next request with a credential made anew.
  package var renewCredential: @Sendable () async -> Void

  package init(
    name: String, bundleId: String,
    notifications:
      @escaping @Sendable (NotificationQuery, String?) async throws(CancellationError) -> NotificationAnswer,
    history: @escaping @Sendable (String, String?) async throws(CancellationError) -> HistoryAnswer,
    renewCredential: @escaping @Sendable () async -> Void = {}
  ) {
    self.name = name
    self.bundleId = bundleId
    self.notifications = notifications
    self.history = history
    self.renewCredential = renewCredential
  }

  /// Asks Apple's production side.
  package init(_ app: Settings.App, client: ServerAPIClient) {
    self.init(
      name: app.name, bundleId: app.bundleId,
      notifications: { query, token throws(CancellationError) in
        try await client.notificationHistory(query, on: .production, paginationToken: token, pages: 1)
      },
      history: { id, revision throws(CancellationError) in
        try await client.transactionHistory(id, on: .production, revision: revision, pages: 1)
      }, renewCredential: { await client.renewToken() })
  }
}
