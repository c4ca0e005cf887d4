import Foundation
import Logging
import Postgres
import Reconciliation
import Settings
import Synchronization

@testable import AppStore
@testable import Asking
@testable import AuditStore
@testable import Run

/// A database, and Apple's feeds read from a scripted Apple.
struct FeedFixture {
  static let bundleId = "com.example.game"

  let shop: RecheckFixture
  let apple = ScriptedApple()
  var session: PostgresSession { shop.session }

  init() async throws { shop = try await RecheckFixture() }

  func value(_ sql: String) async throws -> String? {
    try await session.execute("SELECT (\(sql))::text").single().optionalText(0)
  }

  func stage(
    _ asOf: Instant, apps: [SweptApp]?, stop: StopSignal = StopSignal(), waitLimit: Duration = .seconds(600),
    drainPeriod: Duration = .seconds(60), limit: Duration
  ) -> FeedStage {
    let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
    let apps = apps ?? [apple.app()]
    return FeedStage(
      apps: apps, asOf: asOf, settings: Settings(), gate: AskingGate(apps: apps.map(\.name)),
      session: OpenSession(open: shop.connect), runId: UUID().uuidString, logger: logger, stop: stop,
      progress: WorkProgress(logger: logger, isQuiet: true), deadline: .now + limit, waitLimit: waitLimit,
      drainPeriod: drainPeriod, now: { asOf })
  }

  @discardableResult
  func sweep(
    _ asOf: Instant, apps: [SweptApp]? = nil, stop: StopSignal = StopSignal(), waitLimit: Duration = .zero,
    limit: Duration = .seconds(60)
  ) async throws -> SweepSummary {
    try await stage(asOf, apps: apps, stop: stop, waitLimit: waitLimit, limit: limit).sweep()
  }

  /// The stored cursor of a type.
  func cursor(_ type: SweptType) async throws -> SweepCursor? {
    let table = SweepTable(bundleId: Self.bundleId)
    return try await session.withConnection { try table.cursors($0) }.first { $0.type == type }
  }
}

/// Apple's notification history of one app in memory: pages of twenty, tokens for one window, faults on request.
final class ScriptedApple: Sendable {
  struct Request: Hashable {
    var type: String
    var start: Instant
    var end: Instant
    var token: String?
  }

  private struct State {
    var notifications: [AppleNotification] = []
    var requests: [Request] = []
    var troubles: [(Request) -> NotificationAnswer.End?] = []
    var refused: Set<String> = []
    var historyRequests: [String] = []
    var histories: [String: HistoryAnswer] = [:]
  }

  private let state = Mutex(State())

  var requests: [Request] { state.withLock { $0.requests } }
  var historyRequests: [String] { state.withLock { $0.historyRequests } }

  /// The requests of one type since the last call for it.
  func takeRequests(_ type: SweptType) -> [Request] {
    state.withLock { state in
      defer { state.requests.removeAll { $0.type == type.rawValue } }
      return state.requests.filter { $0.type == type.rawValue }
    }
  }

  func notify(_ type: SweptType, _ fact: TransactionFact) throws {
    let notification = AppleNotification(
      uuid: UUID().uuidString, type: type.rawValue, signedDate: fact.signedDate,
      transaction: .success(try fact.signed))
    state.withLock { $0.notifications.append(notification) }
  }

  /// A notification with a valid signature, whose transaction has an invalid one.
  func notifyForged(_ type: SweptType, at date: Instant) {
    let notification = AppleNotification(
      uuid: UUID().uuidString, type: type.rawValue, signedDate: date, transaction: .failure(.otherBundle))
    state.withLock { state in
      state.refused.insert(notification.uuid)
      state.notifications.append(notification)
    }
  }

  func mendForgeries() {
    state.withLock { state in
      let refused = state.refused
      state.notifications.removeAll { refused.contains($0.uuid) }
      state.refused = []
    }
  }

  /// Sets the end of requests from now on; nil: the regular end.
  func trouble(_ trouble: @escaping @Sendable (Request) -> NotificationAnswer.End?) {
    state.withLock { $0.troubles = [trouble] }
  }

  func noTrouble() { state.withLock { $0.troubles = [] } }

  func reply(_ answer: HistoryAnswer, about id: String, after revision: String?) {
    state.withLock { $0.histories["\(id) \(revision ?? "-")"] = answer }
  }

  func app(_ name: String = "game") -> SweptApp {
    SweptApp(
      name: name, bundleId: "com.example.\(name)",
      notifications: { query, token throws(CancellationError) in self.page(query, token) },
      history: { id, revision throws(CancellationError) in
        self.state.withLock { state in
          state.historyRequests.append("\(id) \(revision ?? "-")")
          return state.histories["\(id) \(revision ?? "-")"] ?? HistoryAnswer(revision: revision, end: .notFound)
        }
      })
  }

  private func page(_ query: NotificationQuery, _ token: String?) -> NotificationAnswer {
    state.withLock { state in
      let request = Request(
        type: [query.type, query.subtype].compactMap(\.self).joined(separator: "/"), start: query.start, end: query.end,
        token: token)
      state.requests.append(request)
      var answer = NotificationAnswer(paginationToken: token, end: .complete)
      if let end = state.troubles.compactMap({ $0(request) }).first {
        answer.end = end
        return answer
      }
      let window = "\(query.start.milliseconds)-\(query.end.milliseconds)"
      if let token, !token.hasPrefix(window) {
        answer.end = .restartWindow
        return answer
      }
      let all = state.notifications.filter {
        $0.type == request.type && $0.signedDate >= query.start && $0.signedDate < query.end
      }.sorted { $0.signedDate < $1.signedDate }
      let offset = token.flatMap { Int($0.split(separator: "+").last ?? "") } ?? 0
      answer.notifications = Array(all.dropFirst(offset).prefix(20))
      let unverifiable = answer.notifications.filter { state.refused.contains($0.uuid) }
      answer.unverifiable = unverifiable.map {
        NotificationAnswer.UnverifiableNotification(jws: $0.uuid, reason: "forged")
      }
      guard all.count > offset + 20 else { return answer }
      answer.paginationToken = "\(window)+\(offset + 20)"
      answer.end = .pageLimit
      return answer
    }
  }
}

extension TransactionFact {
  /// A sale in the app `com.example.game`, as Apple signs it.
  static func sale(
    _ id: String, signed: Instant, revoked: Instant? = nil, original: String? = nil, isRenewal: Bool = false
  ) -> TransactionFact {
    var fact = TransactionFact(
      environment: .production, transactionId: id, productId: "gems", channel: .notification, signedDate: signed)
    fact.bundleId = "com.example.game"
    fact.originalTransactionId = original
    fact.purchaseDate = signed
    fact.isRenewal = isRenewal
    fact.revocation = .stated(revoked.map { Revocation(date: $0) })
    return fact
  }

  struct Unreadable: Error {}

  /// The fact as a payload with a valid signature.
  var signed: TransactionFact {
    get throws {
      var fields: [String: Any] = [
        "transactionId": transactionId, "originalTransactionId": originalTransactionId ?? transactionId,
        "productId": productId, "bundleId": bundleId ?? "", "environment": environment.rawValue,
        "type": "Consumable", "quantity": 1, "signedDate": signedDate.milliseconds,
        "purchaseDate": purchaseDate?.milliseconds ?? 0,
        "transactionReason": isRenewal == true ? "RENEWAL" : "PURCHASE",
      ]
      if case .stated(.some(let revocation)) = revocation { fields["revocationDate"] = revocation.date.milliseconds }
      guard let json = JSONFields(Array(try JSONSerialization.data(withJSONObject: fields))) else { throw Unreadable() }
      var signed = try TransactionFact(signed: json, channel: channel)
      // The field comes from the notification around the transaction.
      signed.reversesRefund = reversesRefund
      return signed
    }
  }
}
