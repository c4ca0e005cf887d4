import Foundation

/// Get Notification History.
struct NotificationPages: Sendable {
  private static let pageSize = 20
  private static let day: Int64 = 86_400_000

  var interface: ServerAPIInterface
  var environment: World.Environment
  var bundleId: String?
  var world: World
  var time: SimulatedClock.Reading

  private struct Window: Codable, Hashable {
    var startDate: Int64
    var endDate: Int64
    var notificationType: String?
    var notificationSubtype: String?
    var transactionId: String?
  }

  private struct Cursor: Codable {
    var window: Window
    /// The position in the feed of the whole world.
    var position: Int
  }

  func answer(_ request: ServerAPIRequest) throws -> Answer {
    guard let fields = try? JSONSerialization.jsonObject(with: request.body) as? [String: Any] else {
      return ServerAPIError.requestInvalid.answer
    }
    guard fields["startDate"] is Int64 else { return ServerAPIError.startDateInvalid.answer }
    guard fields["endDate"] is Int64 else { return ServerAPIError.endDateInvalid.answer }
    guard let window = try? JSONDecoder().decode(Window.self, from: request.body) else {
      return ServerAPIError.requestInvalid.answer
    }
    guard window.startDate >= time.now - 180 * Self.day else { return ServerAPIError.startDateTooOld.answer }
    guard window.startDate < window.endDate else { return ServerAPIError.startDateAfterEnd.answer }
    guard window.notificationType == nil || window.transactionId == nil else {
      return ServerAPIError.severalFilters.answer
    }
    var position = world.feed.position(at: window.startDate)
    if let token = request.paginationToken {
      guard let data = Data(base64Encoded: token), let cursor = try? JSONDecoder().decode(Cursor.self, from: data),
        cursor.window == window, world.feed.items.indices.contains(cursor.position)
      else { return ServerAPIError.paginationTokenInvalid.answer }
      position = cursor.position
    }
    return try page(from: position, window: window)
  }

  private func page(from start: Int, window: Window) throws -> Answer {
    var items: [NotificationFeed.Item] = []
    var next: Int?
    for (position, item) in world.feed.items.enumerated().dropFirst(start) {
      guard item.signedDate < window.endDate, item.signedDate <= time.horizon else { break }
      guard isWanted(item, window) else { continue }
      guard items.count < Self.pageSize else {
        next = position
        break
      }
      items.append(item)
    }
    var fields: [String: Any] = [
      "notificationHistory": try items.map { item in
        let payloads = SignedPayloads(
          authority: interface.authority, signedDate: item.signedDate, horizon: item.signedDate)
        return [
          "signedPayload": try payloads.notification(item, in: world),
          "sendAttempts": [["attemptDate": item.signedDate, "sendAttemptResult": "SUCCESS"] as [String: Any]],
        ] as [String: Any]
      },
      "hasMore": next != nil,
    ]
    if let next {
      let encoder = JSONEncoder()
      encoder.outputFormatting = [.sortedKeys]
      fields["paginationToken"] = try encoder.encode(Cursor(window: window, position: next)).base64EncodedString()
    }
    return .json(fields)
  }

  private func isWanted(_ item: NotificationFeed.Item, _ window: Window) -> Bool {
    item.environment == environment && (bundleId == nil || item.bundleId == bundleId)
      && item.bundleId.flatMap { world.app(bundleId: $0)?.sendsNotifications } != false
      && (window.notificationType == nil || item.type == window.notificationType)
      && (window.notificationSubtype == nil || item.subtype == window.notificationSubtype)
      && (window.transactionId == nil || item.transaction?.transactionId == window.transactionId)
  }
}
