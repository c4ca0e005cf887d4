import AppStore
import Reconciliation
import Run
import Settings

/// An app with the requests of its sweep. Each request returns one page, which is stored at once.
package struct SweptApp: Sendable {
  package var name: String
  package var bundleId: String
  /// A page of Get Notification History. Throws only if the task is cancelled.
  package var notifications:
    @Sendable (_ query: NotificationQuery, _ paginationToken: String?) async throws(CancellationError)
      -> NotificationAnswer
  /// A page of Get Transaction History for a transaction's customer. Throws only if the task is cancelled.
  package var history:
    @Sendable (_ transactionId: String, _ revision: String?) async throws(CancellationError) -> HistoryAnswer
  package var renewCredential: @Sendable () async -> Void = {}
}

extension SweptApp {
  init(_ app: Settings.App, client: ServerAPIClient) {
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
